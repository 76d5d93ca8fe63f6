import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { packageRoot } from '../../src/base/package-root.ts';
import { openRetriever } from '../../src/search/opening/open-retriever.ts';

/** The expected hits of a query: ids and scores, best first, for the largest k that clients request. */
export interface Expected {
  readonly ids: readonly string[];
  readonly scores: readonly number[];
}

const LARGEST_K = 10;
const QUESTIONS = join(packageRoot, 'corpus', 'sample', 'questions.jsonl');
const BATCH_SIZE = 256;

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

/** Computes the expected answer of each query in this process, without server, queue or cache. */
export async function expectedAnswers(index: string, queries: readonly string[]): Promise<Map<string, Expected>> {
  const retriever = await openRetriever(index, { encoderThreads: 1 });
  const expected = new Map<string, Expected>();
  try {
    for (let at = 0; at < queries.length; at += BATCH_SIZE) {
      const batch = queries.slice(at, at + BATCH_SIZE);
      const { outcomes } = await retriever.retrieve({ queries: batch, k: LARGEST_K });
      for (const [i, outcome] of outcomes.entries()) {
        if (!outcome.ok) throw outcome.error;
        expected.set(batch[i]!, {
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

/** The generation of an index. */
export async function generationOf(index: string): Promise<string> {
  const retriever = await openRetriever(index, { encoderThreads: 1 });
  await retriever.close();
  return retriever.info.generation;
}

/** Says what is wrong with the body of an answer of POST /retrieve with scores; undefined if it is as expected. */
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
  if (!Array.isArray(result)) return 'no result list';
  return faultOfLists(
    result.map((hits) => hits.map(({ document, score }) => ({ id: document.id, score }))),
    queries,
    k,
    expected,
  );
}

/** Says what is wrong with the lists of hits, one for each query; undefined if they are as expected. */
export function faultOfLists(
  lists: readonly (readonly { readonly id: unknown; readonly score: number }[])[],
  queries: readonly string[],
  k: number,
  expected: ReadonlyMap<string, Expected>,
): string | undefined {
  if (lists.length !== queries.length) return 'wrong number of lists';
  for (const [i, query] of queries.entries()) {
    const { ids, scores } = expected.get(query)!;
    const hits = lists[i]!;
    if (hits.length !== Math.min(k, ids.length)) return 'wrong number of hits';
    for (const [rank, { id, score }] of hits.entries()) {
      if (String(id) !== ids[rank]) return 'wrong passage';
      if (score !== scores[rank]) return 'wrong score';
    }
  }
  return undefined;
}
