import { type TrawlError, usageError } from '../../src/base/errors.ts';
import { changedQueries, compareEvaluations } from '../compare-evaluations.ts';
import { evaluateRun } from '../evaluate-run.ts';
import { type Judgements, relevantIds } from '../judgements.ts';
import { answersOf, type Question, titleJudgementsOf, titleKey } from '../read-questions.ts';
import type { RankedPassage } from '../run.ts';
import { answeredByAll, type EvalContext, evaluationJson, type MeasuredSystem } from './searched-system.ts';

const SHOWN_CHARACTERS = 300;

export type ComparisonReport = ReturnType<typeof compareSystems>;
export type Comparison = ReturnType<typeof compare>;
export type ChangedQuestion = NonNullable<Comparison['changed']>['most'][number];
export type ShownPassage = ChangedQuestion['first']['passages'][number];

export interface ComparisonInput {
  readonly questions: readonly Question[];
  readonly judgements: Judgements;
  /** The metric by which changed questions are chosen. Default: `defaultMetric`. */
  readonly by: string | undefined;
  /** Most changed questions shown of a system. */
  readonly examples: number;
  readonly cutoffs: readonly number[];
  readonly context: EvalContext;
}

/** Checks `--by` before systems are searched. @throws TrawlError USAGE for a metric that no system can have. */
export function checkBy(input: Pick<ComparisonInput, 'questions' | 'judgements' | 'by' | 'cutoffs'>): void {
  const { questions, judgements, by, cutoffs } = input;
  if (by === undefined) return;
  const ids = questions.map(({ id }) => id);
  // A run without results has the same metrics, all of them 0.
  const { means } = evaluateRun({
    queryIds: ids,
    run: new Map(),
    judgements,
    titleJudgements: titleJudgementsOf(questions),
    answers: answersOf(questions),
    lists: new Map(questions.flatMap(({ id, queries }) => (queries === undefined ? [] : [[id, []]]))),
    cutoffs,
  });
  if (!Object.hasOwn(means, by)) throw unknownMetric(by, 'a metric of these questions and cutoffs', means);
}

function unknownMetric(by: string, expected: string, metrics: object): TrawlError {
  return usageError(`--by is ${JSON.stringify(by)}; expected ${expected}: ${Object.keys(metrics).join(', ')}.`);
}

/** Compares every further system with the first. @throws TrawlError USAGE for a metric that is not measured. */
export function compareSystems(measured: readonly MeasuredSystem[], input: ComparisonInput) {
  const [first, ...others] = measured;
  return {
    source: input.context.source,
    seed: input.context.seed,
    asked: input.questions.length,
    /** Questions that all systems answered. The metrics are means over these questions. */
    answered: answeredByAll(
      input.questions,
      measured.map(({ system }) => system),
    ).length,
    systems: measured.map(({ system, evaluation, notes }) => {
      const { name, what, failed, server } = system;
      const { source: _source, seed: _seed, ...values } = evaluationJson(evaluation, input.context);
      return { name, what, failed: failed.size, server, ...values, notes };
    }),
    comparisons: others.map((second) => compare(first!, second, input)),
  };
}

/** A system against the first one. */
function compare(first: MeasuredSystem, second: MeasuredSystem, input: ComparisonInput) {
  const metrics = compareEvaluations(first.evaluation, second.evaluation, input.context.seed, input.context.questionOf);
  const answeredAny = first.evaluation.queries > 0;
  // If no question was answered by all systems, nothing is measured, and the report says why.
  if (answeredAny && input.by !== undefined && !Object.hasOwn(metrics, input.by))
    throw unknownMetric(input.by, 'a metric that both systems have', metrics);
  const by = answeredAny ? (input.by ?? defaultMetric(metrics, Math.max(...input.cutoffs))) : undefined;
  return {
    first: first.system.name,
    second: second.system.name,
    metrics,
    changed: by === undefined ? null : changedOf(first, second, by, input),
  };
}

/** The first that was measured of recall of passages, recall of pages, and answer hits, at the largest cutoff k. */
function defaultMetric(metrics: Readonly<Record<string, unknown>>, k: number): string | undefined {
  return ['recall', 'title_recall', 'answer_hit'].map((name) => `${name}@${k}`).find((name) => name in metrics);
}

function changedOf(
  first: MeasuredSystem,
  second: MeasuredSystem,
  metric: string,
  { questions, judgements, examples, cutoffs }: ComparisonInput,
) {
  const { most, ...counts } = changedQueries(first.evaluation, second.evaluation, metric, examples);
  const byId = new Map(questions.map((question) => [question.id, question]));
  // A change of recall@5 shows in the first five passages.
  const k = Number(metric.split('@')[1] ?? Math.max(...cutoffs));
  return {
    ...counts,
    most: most.map((change) => {
      const question = byId.get(change.queryId)!;
      const relevant = relevantIds(judgements.get(question.id) ?? new Map());
      const pages = new Set((question.goldTitles ?? []).map(titleKey));
      const shown = ({ system }: MeasuredSystem) =>
        (system.run.get(question.id) ?? []).slice(0, k).map((passage) => ({
          id: passage.id,
          title: passage.title ?? null,
          score: passage.score,
          /** Whether the passage, or its page, is judged relevant. */
          relevant: relevant.has(passage.id) || (passage.title !== undefined && pages.has(titleKey(passage.title))),
          /** The beginning; null if the system has no texts. */
          text: system.hasTexts ? beginning(passage) : null,
        }));
      return {
        id: question.id,
        question: question.question,
        query: question.query ?? null,
        goldIds: [...relevant],
        goldTitles: question.goldTitles ?? [],
        goldenAnswers: question.goldenAnswers ?? [],
        /** The value of the metric by which questions are chosen, and what was found. */
        first: { value: change.first, passages: shown(first) },
        second: { value: change.second, passages: shown(second) },
      };
    }),
  };
}

function beginning({ text = '' }: RankedPassage): string {
  const line = text.replaceAll(/\s+/g, ' ').trim();
  const characters = Array.from(line);
  return characters.length <= SHOWN_CHARACTERS ? line : `${characters.slice(0, SHOWN_CHARACTERS - 1).join('')}…`;
}
