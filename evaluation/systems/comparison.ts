import { type TrawlError, usageError } from '../../src/base/errors.ts';
import { type ComparedMetric, changedQueries, compareEvaluations } from '../compare-evaluations.ts';
import { evaluateRun, type Metrics } from '../evaluate-run.ts';
import type { Judgements } from '../judgements.ts';
import { titleKey } from '../page-title.ts';
import { answersOf, type Question, titleJudgementsOf } from '../read-questions.ts';
import type { RankedPassage } from '../run.ts';
import { type EvalContext, evaluationJson, type MeasuredSystem } from './measured-system.ts';
import { answeredByAll, type ServerReport } from './searched-system.ts';

/** Characters of a passage's text in a report. */
const SHOWN_CHARACTERS = 300;

export interface ShownPassage {
  readonly id: string;
  readonly title: string | null;
  readonly score: number;
  /** Whether the passage, or its page, is judged relevant. */
  readonly relevant: boolean;
  /** The beginning; null if the system has no texts. */
  readonly text: string | null;
}

export interface ChangedQuestion {
  readonly id: string;
  readonly question: string;
  readonly query: string | null;
  readonly goldIds: readonly string[];
  readonly goldTitles: readonly string[];
  readonly goldenAnswers: readonly string[];
  /** The value of the metric by which questions are chosen, and what was found. */
  readonly first: { readonly value: number; readonly passages: readonly ShownPassage[] };
  readonly second: { readonly value: number; readonly passages: readonly ShownPassage[] };
}

/** A system against the first one. */
export interface Comparison {
  readonly first: string;
  readonly second: string;
  readonly metrics: Readonly<Record<string, ComparedMetric>>;
  readonly changed: {
    readonly metric: string;
    readonly queries: number;
    readonly better: number;
    readonly worse: number;
    readonly most: readonly ChangedQuestion[];
  } | null;
}

export interface ComparisonReport {
  readonly source: string;
  readonly seed: number;
  /** Questions that the systems were asked; those that all of them answered, of which the metrics are. */
  readonly asked: number;
  readonly answered: number;
  readonly systems: readonly {
    readonly name: string;
    readonly what: string;
    readonly failed: number;
    readonly server?: ServerReport;
    readonly metrics: Metrics;
    readonly notes: readonly string[];
  }[];
  readonly comparisons: readonly Comparison[];
}

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
export function checkBy({
  questions,
  judgements,
  by,
  cutoffs,
}: Pick<ComparisonInput, 'questions' | 'judgements' | 'by' | 'cutoffs'>): void {
  if (by === undefined) return;
  const ids = questions.map(({ id }) => id);
  // What is measured does not depend on what is found.
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
export function compareSystems(measured: readonly MeasuredSystem[], input: ComparisonInput): ComparisonReport {
  const [first, ...others] = measured;
  return {
    source: input.context.source,
    seed: input.context.seed,
    asked: input.questions.length,
    answered: answeredByAll(
      input.questions,
      measured.map(({ system }) => system),
    ).length,
    systems: measured.map(({ system, evaluation, notes }) => {
      const { source: _source, seed: _seed, ...values } = evaluationJson(evaluation, input.context) as EvalValues;
      return {
        name: system.name,
        what: system.what,
        failed: system.failed.size,
        server: system.server,
        ...values,
        notes,
      };
    }),
    comparisons: others.map((second) => compare(first!, second, input)),
  };
}

type EvalValues = { readonly source: string; readonly seed: number; readonly metrics: Metrics };

function compare(first: MeasuredSystem, second: MeasuredSystem, input: ComparisonInput): Comparison {
  const metrics = compareEvaluations(first.evaluation, second.evaluation, input.context.seed, input.context.questionOf);
  const answeredAny = first.evaluation.queries > 0;
  // Where no question was answered by all, no system has any metric, and the report says why.
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

/** The share of what is relevant within the largest cutoff, else of pages, else answers; undefined without any of them. */
function defaultMetric(metrics: Readonly<Record<string, unknown>>, k: number): string | undefined {
  return ['recall', 'title_recall', 'answer_hit'].map((name) => `${name}@${k}`).find((name) => name in metrics);
}

function changedOf(
  first: MeasuredSystem,
  second: MeasuredSystem,
  metric: string,
  { questions, judgements, examples, cutoffs }: ComparisonInput,
): Comparison['changed'] {
  const { most, ...counts } = changedQueries(first.evaluation, second.evaluation, metric, examples);
  const byId = new Map(questions.map((question) => [question.id, question]));
  // A changed recall@5 is seen within the first five.
  const k = Number(metric.split('@')[1] ?? Math.max(...cutoffs));
  return {
    ...counts,
    most: most.map((change) => {
      const question = byId.get(change.queryId)!;
      const grades = judgements.get(question.id);
      const pages = new Set((question.goldTitles ?? []).map(titleKey));
      const shown = ({ system }: MeasuredSystem): ShownPassage[] =>
        (system.run.get(question.id) ?? []).slice(0, k).map((passage) => ({
          id: passage.id,
          title: passage.title ?? null,
          score: passage.score,
          relevant:
            (grades?.get(passage.id) ?? 0) > 0 || (passage.title !== undefined && pages.has(titleKey(passage.title))),
          text: system.hasTexts ? beginning(passage) : null,
        }));
      return {
        id: question.id,
        question: question.question,
        query: question.query ?? null,
        goldIds: [...(grades ?? [])].flatMap(([id, grade]) => (grade > 0 ? [id] : [])),
        goldTitles: question.goldTitles ?? [],
        goldenAnswers: question.goldenAnswers ?? [],
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
