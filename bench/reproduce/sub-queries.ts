import { writeFile } from 'node:fs/promises';
import { entriesOf } from './encoded-set.ts';

/** A question with the queries that an agent sent for it. */
export interface QuestionWithQueries {
  readonly id: string;
  readonly question: string;
  readonly queries: readonly string[];
  readonly gold_ids: readonly string[];
}

/** The questions of a file of sub-queries, whose ids are `QUESTION.NUMBER`. A question has the gold passages of all. */
export async function queriesOfSteps(file: string): Promise<QuestionWithQueries[]> {
  const questions = new Map<string, QuestionWithQueries>();
  for (const step of await entriesOf<Omit<QuestionWithQueries, 'queries'> & { readonly query: string }>(file)) {
    const id = step.id.replace(/\.\d+$/, '');
    const { queries, gold_ids: gold } = questions.get(id) ?? { queries: [], gold_ids: [] };
    questions.set(id, {
      id,
      question: step.question,
      queries: [...queries, step.query],
      gold_ids: [...new Set([...gold, ...step.gold_ids])],
    });
  }
  return [...questions.values()];
}

/**
 * The questions that agents also sent as a query, with the other queries of that trajectory: recorded calls do not name their question.
 * Of several trajectories the first counts.
 *
 * @param questions JSON lines of `{id, question, gold_ids}`.
 * @param calls JSON lines of `{source, traj, queries}`.
 */
export async function queriesOfCalls(questions: string, calls: string): Promise<QuestionWithQueries[]> {
  const trajectories = new Map<string, string[]>();
  for (const { source, traj, queries } of await entriesOf<{ source: string; traj: number; queries: string[] }>(calls)) {
    const key = `${source} ${traj}`;
    trajectories.set(key, [...(trajectories.get(key) ?? []), ...queries]);
  }
  const sentWith = new Map<string, readonly string[]>();
  for (const queries of trajectories.values()) {
    for (const key of queries.map(comparable)) {
      const others = queries.filter((other) => comparable(other) !== key);
      if (others.length > 0 && !sentWith.has(key)) sentWith.set(key, others);
    }
  }
  return (await entriesOf<Omit<QuestionWithQueries, 'queries'>>(questions)).flatMap(({ id, question, gold_ids }) => {
    const queries = sentWith.get(comparable(question));
    return queries === undefined ? [] : [{ id, question, queries, gold_ids }];
  });
}

/** Agents change case and the spaces around a question. */
function comparable(text: string): string {
  return text.trim().toLowerCase();
}

export async function writeQuestions(questions: readonly QuestionWithQueries[], file: string): Promise<void> {
  await writeFile(file, questions.map((question) => `${JSON.stringify(question)}\n`).join(''));
}
