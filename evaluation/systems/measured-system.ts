import { type Evaluation, evaluateRun, type Metrics, meansOf, metricsByGroup } from '../evaluate-run.ts';
import type { Judgements } from '../judgements.ts';
import { type MetricIntervals, metricIntervals } from '../metric-intervals.ts';
import { answersOf, type Question, titleJudgementsOf } from '../read-questions.ts';
import type { SearchedSystem } from './searched-system.ts';

/** A system with its metrics. */
export interface MeasuredSystem {
  readonly system: SearchedSystem;
  readonly evaluation: Evaluation;
  /** The notes of the system, and on what could not be measured. */
  readonly notes: readonly string[];
}

/** Computes the metrics of a system over questions that it answered. */
export function measureSystem(
  system: SearchedSystem,
  {
    questions,
    judgements,
    cutoffs,
  }: { readonly questions: readonly Question[]; readonly judgements: Judgements; readonly cutoffs: readonly number[] },
): MeasuredSystem {
  const { run, lists, hasIds, hasTexts, name } = system;
  const titles = titleJudgementsOf(questions);
  const answers = answersOf(questions);
  const evaluation = evaluateRun({
    queryIds: questions.map(({ id }) => id),
    run,
    ...(lists === undefined ? {} : { lists }),
    judgements: hasIds ? judgements : new Map(),
    ...(hasTexts ? { titleJudgements: titles, answers } : {}),
    cutoffs,
  });
  const unmeasured = [...(titles.size > 0 ? ['title_*'] : []), ...(answers.size > 0 ? ['answer_*'] : [])];
  return {
    system,
    evaluation,
    notes: [
      ...system.notes,
      ...(hasTexts || unmeasured.length === 0
        ? []
        : [
            `${name} has no titles and texts, so ${unmeasured.join(' and ')} are not measured. Compare it with an index that has its passages: --compare INDEX.`,
          ]),
    ],
  };
}

/** Whether a system measured anything. */
export function hasMeasured({ judged, titleJudged, answerable }: Evaluation): boolean {
  return judged > 0 || titleJudged > 0 || answerable > 0;
}

/** What is known of the questions of an evaluation. */
export interface EvalContext {
  /** The format of the questions, for people. */
  readonly source: string;
  /** Question id → type, for the questions that have one. */
  readonly types: ReadonlyMap<string, string>;
  /** The id of the question that a query id stands for: the same but for trajectories. */
  questionOf(id: string): string;
  /** Of the draws of the intervals. */
  readonly seed: number;
}

/** The number of questions, if some have several trajectories. */
export function questionCount(ids: Iterable<string>, { questionOf }: EvalContext): number | undefined {
  const all = [...ids];
  const questions = new Set(all.map(questionOf)).size;
  return questions === all.length ? undefined : questions;
}

/** The metrics of the questions of one type. */
export interface TypeMetrics {
  readonly type: string;
  readonly queries: number;
  /** As `questionCount`. */
  readonly questions: number | undefined;
  readonly means: Metrics;
  readonly intervals: MetricIntervals;
}

export function metricsByType({ perQuery }: Evaluation, context: EvalContext): TypeMetrics[] {
  const { types, seed, questionOf } = context;
  return Array.from(
    metricsByGroup(perQuery, (id) => types.get(id)),
    ([type, members]) => ({
      type,
      queries: members.size,
      questions: questionCount(members.keys(), context),
      means: meansOf(members.values()),
      intervals: metricIntervals(members, seed, questionOf),
    }),
  );
}

/** The report of `trawl eval --json`. */
export function evaluationJson(evaluation: Evaluation, context: EvalContext): object {
  const { queries, judged, unjudged, titleJudged, answerable, means, perQuery } = evaluation;
  const { source, seed, questionOf } = context;
  const groups = metricsByType(evaluation, context);
  return {
    source,
    queries,
    questions: questionCount(perQuery.keys(), context),
    judged,
    unjudged,
    titleJudged,
    answerable,
    metrics: means,
    intervals: metricIntervals(perQuery, seed, questionOf),
    seed,
    ...(groups.length === 0
      ? {}
      : {
          byType: Object.fromEntries(
            groups.map(({ type, queries, questions, means, intervals }) => [
              type,
              { queries, questions, metrics: means, intervals },
            ]),
          ),
        }),
  };
}

/**
 * The lines of `--per-question`, with line ends: for each system and question `{"id", "question"?, "system"?, "metrics"}`. `question` is the
 * question's id where it has several trajectories; `system` is there with several systems.
 */
export function* perQuestionLines(
  measured: readonly MeasuredSystem[],
  { questionOf }: EvalContext,
): Generator<string, void> {
  for (const { system, evaluation } of measured) {
    for (const [id, metrics] of evaluation.perQuery) {
      const question = questionOf(id);
      yield `${JSON.stringify({
        id,
        ...(question === id ? {} : { question }),
        ...(measured.length === 1 ? {} : { system: system.name }),
        metrics,
      })}\n`;
    }
  }
}
