import { type Evaluation, type Metrics, meansByGroup } from '../../evaluation/evaluate-run.ts';

export interface EvalContext {
  /** The format of the questions, for people. */
  readonly source: string;
  /** Question id → type, for the questions that have one. */
  readonly types: ReadonlyMap<string, string>;
}

/** The report of `trawl eval --json`. */
export function evalJson(evaluation: Evaluation, { source, types }: EvalContext): string {
  const { queries, judged, unjudged, titleJudged, answerable, means, perQuery } = evaluation;
  const groups = meansByGroup(perQuery, (id) => types.get(id));
  return JSON.stringify({
    source,
    queries,
    judged,
    unjudged,
    titleJudged,
    answerable,
    metrics: means,
    ...(groups.size === 0
      ? {}
      : {
          byType: Object.fromEntries(
            Array.from(groups, ([type, group]) => [type, { queries: group.queries, metrics: group.means }]),
          ),
        }),
  });
}

/** The report of `trawl eval` in a terminal: a table of metrics by cutoff, then one for each type of question. */
export function evalText(evaluation: Evaluation, { source, types }: EvalContext): string {
  const { queries, judged, unjudged, titleJudged, answerable, means, perQuery } = evaluation;
  const counts = [
    `queries ${queries} (${source})`,
    `judged ${judged}${unjudged > 0 && judged > 0 ? ` (${unjudged} without judgements skipped)` : ''}`,
    ...(titleJudged > 0 ? [`judged by page ${titleJudged}`] : []),
    `with answers ${answerable}`,
  ];
  const groups = meansByGroup(perQuery, (id) => types.get(id));
  return [
    counts.join(', '),
    ...metricTable(means),
    ...Array.from(groups, ([type, group]) => [
      '',
      `${type}: ${group.queries === 1 ? '1 query' : `${group.queries} queries`}`,
      ...metricTable(group.means),
    ]).flat(),
  ].join('\n');
}

/** Metrics with a cutoff, a row each with a column for each cutoff; then those of the whole ranking. */
function metricTable(means: Metrics): string[] {
  const names = Object.keys(means).map((name) => {
    const [metric, cutoff] = name.split('@');
    return { metric: metric!, cutoff };
  });
  const cutoffs = [...new Set(names.flatMap(({ cutoff }) => (cutoff === undefined ? [] : [cutoff])))];
  if (names.length === 0) return [];
  // Without a cutoff, mrr and map are those of the largest cutoff: no more passages were retrieved.
  const atCutoffs = new Set(names.flatMap(({ metric, cutoff }) => (cutoff === undefined ? [] : [metric])));
  const rows = [...new Set(names.map(({ metric }) => metric))];
  const width = Math.max(...rows.map((metric) => metric.length));
  const line = (first: string, cells: readonly string[]) =>
    [first.padEnd(width), ...cells.map((cell) => cell.padStart(6))].join('  ').trimEnd();
  return [
    line(
      '',
      cutoffs.map((cutoff) => `@${cutoff}`),
    ),
    ...rows.map((metric) =>
      atCutoffs.has(metric)
        ? line(
            metric,
            cutoffs.map((cutoff) => means[`${metric}@${cutoff}`]?.toFixed(4) ?? ''),
          )
        : line(metric, [means[metric]!.toFixed(4)]),
    ),
  ];
}
