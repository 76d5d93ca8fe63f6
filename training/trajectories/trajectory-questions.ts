import type { QueryJudgements } from '../../evaluation/judgements.ts';
import type { QuestionSet } from '../../evaluation/question-set.ts';
import type { Question } from '../../evaluation/read-questions.ts';
import type { SearchedSystem } from '../../evaluation/systems/searched-system.ts';
import { comparableText } from '../../src/base/comparable-text.ts';
import { KnownQuestions } from '../records/known-questions.ts';
import { type TrajectoryReport, trajectoryReport } from './report/trajectory-report.ts';
import type { Trajectory } from './trajectory.ts';

export type TrajectoryQuestions = Awaited<ReturnType<typeof trajectoryQuestions>>;

/**
 * Makes a question of each trajectory: the judged question that `KnownQuestions` finds, with the trajectory's queries. The second
 * trajectory of a question has the id `ID#2`. A trajectory without a known question has only its golden answers; without these it is
 * left out. An id is unique only with its data set, so data set and text distinguish unknown questions too.
 */
export async function trajectoryQuestions(trajectories: AsyncIterable<Trajectory>, set: QuestionSet) {
  const known = new KnownQuestions(set.questions);
  const questions = new Map<string, Question>();
  const judgements = new Map<string, QueryJudgements>();
  const byId = new Map<string, Trajectory>();
  const questionIds = new Map<string, string>();
  const ownIds = new Set(set.questions.map(({ id }) => id));
  const firstIds = new Map<string, string>();
  const counts = { all: 0, unknown: 0, leftOut: 0, withoutSearch: 0 };
  const unasked = new Set(ownIds);
  for await (const trajectory of trajectories) {
    counts.all += 1;
    const { questionId, dataset, question: text, goldenAnswers, searches } = trajectory;
    const found = known.find({ id: questionId, dataset, text });
    if (found === undefined) counts.unknown += 1;
    if (found === undefined && goldenAnswers.length === 0) {
      counts.leftOut += 1;
      continue;
    }
    if (searches.length === 0) counts.withoutSearch += 1;
    const base = found ?? { id: questionId ?? trajectory.id, question: text ?? '', goldenAnswers };
    const isTaken = (id: string): boolean => questions.has(id) || (id !== found?.id && ownIds.has(id));
    const id = freeId(base.id, isTaken);
    questions.set(id, { ...base, id, queries: searches.map(({ query }) => query) });
    byId.set(id, trajectory);
    const comparable = comparableText(base.question);
    const named = questionId ?? (comparable === '' ? trajectory.id : null);
    const key = JSON.stringify(found === undefined ? [named, dataset, comparable] : [found.id]);
    if (!firstIds.has(key)) firstIds.set(key, id);
    questionIds.set(id, firstIds.get(key)!);
    if (found === undefined) continue;
    unasked.delete(found.id);
    const grades = set.judgements.get(found.id);
    if (grades !== undefined) judgements.set(id, grades);
  }
  return {
    questions: [...questions.values()],
    judgements,
    /** By the id of the question that stands for it. */
    trajectories: byId,
    /** The same id → the id of the first trajectory of its question: for a judged question its own id. */
    questionIds,
    source: `${set.source}; queries of ${counts.all} trajectories`,
    notes: [...set.notes, ...notesOn(counts, unasked.size, ownIds.size)],
  };
}

function freeId(id: string, isTaken: (id: string) => boolean): string {
  if (!isTaken(id)) return id;
  for (let number = 2; ; number++) if (!isTaken(`${id}#${number}`)) return `${id}#${number}`;
}

function* notesOn(
  { all, unknown, leftOut, withoutSearch }: Readonly<Record<'all' | 'unknown' | 'leftOut' | 'withoutSearch', number>>,
  unasked: number,
  questions: number,
): Generator<string, void> {
  if (unknown > 0)
    yield `${unknown} of ${all} trajectories have a question that is not in the questions; ${leftOut} of them have no golden answers either and are left out.`;
  if (withoutSearch > 0) yield `${withoutSearch} of ${all} trajectories have no search: they count as 0.`;
  if (unasked > 0) yield `${unasked} of ${questions} questions have no trajectory: they are left out.`;
}

/**
 * What each trajectory would have been shown by a system, up to `k` passages a query: the report of `trawl trajectories`. Questions whose
 * search failed are left out; judgements of passages count only for a system with their ids.
 */
export async function coverageOf(
  { lists, run, failed, hasIds }: SearchedSystem,
  { questions: all, judgements, trajectories }: TrajectoryQuestions,
  k: number,
): Promise<TrajectoryReport> {
  const questions = all.filter(({ id }) => !failed.has(id));
  const judged = questions.map((question): Question => {
    const grades = (hasIds ? judgements.get(question.id) : undefined) ?? new Map<string, number>();
    return { ...question, goldIds: Array.from(grades).flatMap(([id, grade]) => (grade > 0 ? [id] : [])) };
  });
  return trajectoryReport(shownBy(), judged);

  async function* shownBy(): AsyncGenerator<Trajectory, void> {
    for (const { id, question } of questions) {
      const trajectory = trajectories.get(id)!;
      const found = lists?.get(id) ?? [run.get(id) ?? []];
      yield {
        ...trajectory,
        questionId: id,
        // The question that was made of the trajectory is found by id and text alone.
        dataset: undefined,
        question,
        searches: trajectory.searches.map((search, i) => ({
          ...search,
          // An agent is shown the title, too.
          shown: (found[i] ?? []).slice(0, k).map(({ id, title, text = '' }) => ({
            id,
            contents: title === undefined ? text : `"${title}"\n${text}`,
          })),
        })),
      };
    }
  }
}
