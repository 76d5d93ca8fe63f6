import {
  formatChange,
  formatCount,
  formatDuration,
  formatNumberOf,
  formatPercent,
  formatTable,
  quoteForShell,
} from '../../src/base/format.ts';
import type { ModelOverrides } from '../../src/encoder/model/model-overrides.ts';
import type { IterationSummary } from '../../training/iteration/iteration-work.ts';
import type { Journal, Measures, PublishedIteration, Trial } from '../../training/iteration/records.ts';
import { optionsOf } from '../model/model-options.ts';
import { lines } from '../output/lines.ts';

/** The report of `--json`. */
export function summaryJson({ settings, ...summary }: IterationSummary): string {
  return JSON.stringify({ ...summary, modelOptions: modelOptionsOf(settings) });
}

/** The options with which `trawl index` and `trawl triage` give the imported model the settings of the iteration. */
function modelOptionsOf(settings: IterationSummary['settings']): string[] {
  if (settings === null) return [];
  return ['--precision', settings.precision, ...optionsOf(settings.overrides as ModelOverrides)];
}

/** What a run did, for people. `root`: as given. */
export function summaryLines(summary: IterationSummary, root: string): string[] {
  const { number, state, index, generation, model, changes, settings, sameCorpus, trial, measures, servers, removed } =
    summary;
  const done = {
    published: 'published',
    refused: 'refused, not published',
    stopped: 'not published yet',
    current: 'was published before; nothing to do',
  };
  return lines(
    `iteration ${number}: ${done[state]}`,
    model !== null && `  model       ${[model, ...changes].join('; ')}`,
    state === 'stopped' &&
      generation === null &&
      `  options     ${modelOptionsOf(settings).map(quoteForShell).join(' ')}`,
    generation !== null && `  index       ${index}, generation ${generation}`,
    sameCorpus === false && '  corpus      differs from the index before',
    servers.length > 0 && `  served by   ${servers.join(', ')}`,
    removed.length > 0 && `  removed     ${formatNumberOf(removed.length, 'iteration')}: ${removed.join(', ')}`,
    ...(trial === null ? [] : trialLines(trial)),
    ...(measures === null ? [] : measureLines(measures)),
    ...nextLines(summary, root),
  );
}

function limits({ low, high }: NonNullable<Trial['estimate']>): string {
  return low === null || high === null ? '' : ` [${low.toFixed(4)}, ${high.toFixed(4)}]`;
}

function trialLines({ judged, k, estimate, bound, present, error, pool, whole, wholeMs }: Trial): string[] {
  const estimated = estimate === null ? '' : `estimated ${estimate.value.toFixed(4)}${limits(estimate)}, `;
  return [
    `triage: recall@${k} of ${formatNumberOf(judged, 'judged question')}: ${estimated}at most ${bound.toFixed(4)}; served index ${present.toFixed(4)}`,
    `  ${formatCount(pool)} of ${formatNumberOf(whole, 'passage')} embedded; all would take ${formatDuration(wholeMs)}` +
      (error === null ? '' : `; error of the estimate for the present encoder ${formatChange(error)}`),
  ];
}

function nextLines({ state, refusals, servers, index, generation }: IterationSummary, root: string): string[] {
  if (state === 'refused') {
    const next =
      generation === null
        ? 'No index was built. Build it all the same by the same command with the option that accepts it or without --triage, or discard it'
        : `The index stays in ${index}. Publish it by the same command with the option that accepts it, or remove it`;
    const discard = `trawl iterate --discard --root ${root}`;
    return [...refusals.map(({ text }) => `refused: ${text}`), `${next}: ${discard}`];
  }
  if (state !== 'published' || servers.length > 0) return [];
  return [`${root}/current points to it. Reload the servers: kill -HUP, or POST /admin/indexes/NAME/reload.`];
}

function measureLines({ judged, before, now, answers }: Measures): string[] {
  const metrics = Object.keys(now).filter((name) => /^(recall|ndcg|mrr|answer_hit)@/.test(name));
  const width = Math.max(...metrics.map((name) => name.length));
  const { of, k, queries, changed, replaced, rbo } = answers;
  const what = formatNumberOf(queries, of === 'records' ? 'record' : 'held-out question');
  return [
    `${formatNumberOf(judged, 'judged question')}, held out`,
    `  ${''.padEnd(width)}  before     now    change`,
    ...metrics.map((name) => {
      const [old, found] = [before[name] ?? 0, now[name]!];
      return `  ${name.padEnd(width)}  ${old.toFixed(4)}  ${found.toFixed(4)}  ${formatChange(found - old)}`;
    }),
    queries === 0 || replaced === null
      ? 'answers: nothing could be compared'
      : `answers to ${what}, first ${k} passages: ${formatPercent(changed / queries)} changed, ${formatPercent(replaced)} of the passages replaced, RBO ${rbo!.toFixed(4)}`,
  ];
}

/** The iterations as a table, and the unfinished one. `current`: number of the one that is served; null if the link is wrong. */
export function statusLines(
  iterations: readonly PublishedIteration[],
  current: number | null,
  unfinished: Journal | undefined,
): string[] {
  const rows = [
    ['', 'iteration', 'generation', 'model', 'recall', 'before', 'changed', 'published'],
    ...iterations.map(({ number, generation, model, measures, publishedAt, kept }) => [
      number === current ? '*' : '',
      `${number}${kept ? '' : ' (removed)'}`,
      generation.slice(0, 12),
      model ?? '(none)',
      ...measureCells(measures),
      publishedAt ?? (number === 0 ? '(start)' : '(not yet)'),
    ]),
  ];
  return [
    ...formatTable(rows, { allLeft: true }),
    ...(unfinished === undefined ? [] : [`unfinished: iteration ${unfinished.number}, ${progressOf(unfinished)}`]),
  ];
}

function progressOf({ model, trial, index, measures, inputs }: Journal): string {
  const done =
    (measures !== null && 'measured') ||
    (index !== null && 'built') ||
    (trial !== undefined && 'its model is tried') ||
    (model !== null && 'its model is made') ||
    'begun';
  return `${done}; checkpoint ${inputs.checkpoint}`;
}

function measureCells(measures: Measures | null): string[] {
  if (measures === null) return ['', '', ''];
  const { recallK, before, now, answers } = measures;
  const recall = `recall@${recallK}`;
  return [
    `@${recallK} ${now[recall]!.toFixed(4)}`,
    before[recall]!.toFixed(4),
    answers.queries === 0 ? '' : formatPercent(answers.changed / answers.queries),
  ];
}
