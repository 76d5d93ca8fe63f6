import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { packageRoot } from '../../src/package-root.ts';
import { openRetriever } from '../../src/retrieval/open-retriever.ts';

/** Ids and scores, best first, as many as the largest k that is asked for. */
export interface Expected {
  readonly ids: readonly string[];
  readonly scores: readonly number[];
}

export const LARGEST_K = 10;
const QUESTIONS = join(packageRoot, 'corpus', 'sample', 'questions.jsonl');
const AT_ONCE = 256;

/** `count` different queries: the questions of the sample corpus, then pairs of them. */
export async function soakQueries(count: number): Promise<string[]> {
  const lines = (await readFile(QUESTIONS, 'utf8')).split('\n').filter((line) => line !== '');
  const questions = lines.map((line) => (JSON.parse(line) as { question: string }).question);
  const queries = [...questions];
  for (let step = 1; queries.length < count && step < questions.length; step++) {
    for (const [i, question] of questions.entries())
      queries.push(`${question} ${questions[(i + step) % questions.length]}`);
  }
  return queries.slice(0, count);
}

/** What each query has to get: asked of the retriever in this process, without a server, a queue or a cache. */
export async function expectedAnswers(index: string, queries: readonly string[]): Promise<Map<string, Expected>> {
  const retriever = await openRetriever(index);
  const expected = new Map<string, Expected>();
  try {
    for (let at = 0; at < queries.length; at += AT_ONCE) {
      const some = queries.slice(at, at + AT_ONCE);
      const { outcomes } = await retriever.retrieve({ queries: some, k: LARGEST_K });
      for (const [i, outcome] of outcomes.entries()) {
        if (!outcome.ok) throw outcome.error;
        expected.set(some[i]!, {
          ids: outcome.hits.map(({ document }) => String((JSON.parse(document) as { id: unknown }).id)),
          scores: outcome.hits.map(({ score }) => score),
        });
      }
    }
  } finally {
    await retriever.close();
  }
  return expected;
}

/** The generation that an index has. */
export async function generationOf(index: string): Promise<string> {
  const retriever = await openRetriever(index);
  await retriever.close();
  return retriever.info.generation;
}

/** What is wrong with a reply of POST /retrieve with scores; undefined: nothing. */
export function faultOf(
  body: string,
  queries: readonly string[],
  k: number,
  expected: ReadonlyMap<string, Expected>,
): string | undefined {
  let result: { document: { id: unknown }; score: number }[][];
  try {
    ({ result } = JSON.parse(body) as { result: typeof result });
  } catch {
    return 'not JSON';
  }
  if (!Array.isArray(result)) return 'no list';
  return faultOfLists(
    result.map((hits) => hits.map(({ document, score }) => ({ id: document.id, score }))),
    queries,
    k,
    expected,
  );
}

/** What is wrong with one list of hits for each query; undefined: nothing. */
export function faultOfLists(
  lists: readonly (readonly { readonly id: unknown; readonly score: number }[])[],
  queries: readonly string[],
  k: number,
  expected: ReadonlyMap<string, Expected>,
): string | undefined {
  if (lists.length !== queries.length) return 'another number of lists';
  for (const [i, query] of queries.entries()) {
    const { ids, scores } = expected.get(query)!;
    const hits = lists[i]!;
    if (hits.length !== Math.min(k, ids.length)) return 'a list of another length';
    for (const [rank, { id, score }] of hits.entries()) {
      if (String(id) !== ids[rank]) return 'another passage';
      if (score !== scores[rank]) return 'another score';
    }
  }
  return undefined;
}
