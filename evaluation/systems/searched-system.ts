import { formatCount, formatNumberOf } from '../../src/base/format.ts';
import { metricIntervals } from '../compare-evaluations.ts';
import { type Evaluation, evaluateRun, meansOf, metricsByGroup } from '../evaluate-run.ts';
import type { Judgements } from '../judgements.ts';
import { answersOf, type Question, titleJudgementsOf } from '../read-questions.ts';
import type { RankedPassage, Run } from '../run.ts';
import type { ServerReport } from './ask-server.ts';

export interface SearchedSystem {
  readonly name: string;
  /** Describes it for people: the index with its mode, the run file. */
  readonly what: string;
  readonly run: Run;
  /** The lists of the questions with several queries, or none; undefined for a run file. */
  readonly lists?: ReadonlyMap<string, readonly (readonly RankedPassage[])[]>;
  /** Whether its passages have the ids of the judgements. */
  readonly hasIds: boolean;
  /** Whether its passages have titles and texts. A run file has only ids. */
  readonly hasTexts: boolean;
  /**
   * Whether it has none of the relevant passages: an index with other ids, or a run or server that returned no passage that is relevant to
   * any question. The judgements are probably of another corpus.
   */
  readonly lacksGold?: boolean;
  /** Question id → why its search failed. These questions are left out of the metrics of all systems. */
  readonly failed: ReadonlyMap<string, string>;
  readonly server?: ServerReport;
  readonly notes: readonly string[];
}

/** The questions that every system answered: systems are measured and compared over the same questions. */
export function answeredByAll(
  questions: readonly Question[],
  systems: readonly Pick<SearchedSystem, 'failed'>[],
): readonly Question[] {
  return questions.filter(({ id }) => !systems.some(({ failed }) => failed.has(id)));
}

export interface Asked {
  readonly questions: readonly Question[];
  readonly judgements: Judgements;
  readonly k: number;
  /** The id of a query's question, whose passage does not count; undefined: all passages count. */
  readonly ownId: ((id: string) => string) | undefined;
  readonly gold: ReadonlySet<string>;
  readonly signal: AbortSignal;
  note(text: string): void;
}

type Counting = Pick<Asked, 'k'> & Partial<Pick<Asked, 'ownId'>>;

/** The number of passages per query to retrieve so that k count. */
export function depthOf({ k, ownId }: Counting): number {
  return ownId === undefined ? k : k + 1;
}

/**
 * At most k passages of each list, without the one that has the id of its question, if that does not count: as in BEIR's evaluation
 * (`ignore_identical_ids`), because the queries of ArguAna and Quora are passages of the corpus.
 *
 * @param ids the query id of each list.
 */
export function countingPassages(
  ids: readonly string[],
  lists: readonly (readonly RankedPassage[])[],
  { k, ownId }: Counting,
) {
  /** Ids of the questions that found their own passage. */
  const foundOwn = new Set<string>();
  const counting = lists.map((list, i) => {
    const own = ownId?.(ids[i]!);
    const others = list.filter(({ id }) => id !== own);
    if (own !== undefined && others.length < list.length) foundOwn.add(own);
    return others.slice(0, k);
  });
  return { lists: counting, foundOwn };
}

/** Says how many of the questions, by their query ids, found their own passage; nothing if none did. */
export function ownNotes(
  name: string,
  foundOwn: ReadonlySet<string>,
  ids: Iterable<string>,
  ownId: Asked['ownId'],
): string[] {
  if (ownId === undefined || foundOwn.size === 0) return [];
  const questions = new Set(Array.from(ids, ownId)).size;
  return [
    `${name}: ${formatNumberOf(foundOwn.size, 'question')} of ${formatCount(questions)} found the passage with the question's own id, which does not count (--ignore-identical-ids).`,
  ];
}

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
    lists,
    judgements: hasIds ? judgements : new Map(),
    titleJudgements: hasTexts ? titles : undefined,
    answers: hasTexts ? answers : undefined,
    cutoffs,
  });
  const notes = [...system.notes];
  const unmeasured = [...(titles.size > 0 ? ['title_*'] : []), ...(answers.size > 0 ? ['answer_*'] : [])];
  if (!hasTexts && unmeasured.length > 0)
    notes.push(
      `${name} has no titles and texts, so ${unmeasured.join(' and ')} are not measured. Compare it with an index that has its passages: --compare INDEX.`,
    );
  return { system, evaluation, notes };
}

export function hasMeasured({ judged, titleJudged, answerable }: Evaluation): boolean {
  return judged > 0 || titleJudged > 0 || answerable > 0;
}

export interface EvalContext {
  /** The format of the questions, for people. */
  readonly source: string;
  /** Question id → type, for the questions that have one. */
  readonly types: ReadonlyMap<string, string>;
  /** The id of the question that a query id stands for: the same but for trajectories. */
  questionOf(id: string): string;
  readonly seed: number;
}

/** The number of questions; undefined if none has several trajectories. */
export function questionCount(ids: Iterable<string>, { questionOf }: EvalContext): number | undefined {
  const all = [...ids];
  const questions = new Set(all.map(questionOf)).size;
  return questions === all.length ? undefined : questions;
}

export function metricsByType({ perQuery }: Evaluation, context: EvalContext) {
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

export function evaluationJson(evaluation: Evaluation, context: EvalContext) {
  const { perQuery, means: metrics, ...counts } = evaluation;
  const { source, seed, questionOf } = context;
  const questions = questionCount(perQuery.keys(), context);
  const intervals = metricIntervals(perQuery, seed, questionOf);
  const groups = metricsByType(evaluation, context);
  const byType = groups.map(({ type, means, ...group }) => [type, { ...group, metrics: means }] as const);
  return {
    source,
    ...counts,
    questions,
    metrics,
    intervals,
    seed,
    byType: groups.length === 0 ? undefined : Object.fromEntries(byType),
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
      const question = questionOf(id) === id ? undefined : questionOf(id);
      const name = measured.length === 1 ? undefined : system.name;
      yield `${JSON.stringify({ id, question, system: name, metrics })}\n`;
    }
  }
}
