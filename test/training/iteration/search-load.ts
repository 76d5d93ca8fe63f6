import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { openRetriever } from '../../../src/search/opening/open-retriever.ts';

interface Reply {
  readonly generation: string;
  /** Of each query, best first. */
  readonly hits: readonly { readonly row: number; readonly score: number }[][];
}

const ASKED = ['designer of the Brooklyn Bridge', 'longest river', 'Who wrote the opera?'];
const K = 5;

/** Sends three queries to a server. Fails if it does not answer all of them. */
export async function searchServer(url: string, key?: string): Promise<Reply> {
  const response = await fetch(`${url}/v1/search`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(key === undefined ? {} : { authorization: `Bearer ${key}` }) },
    body: JSON.stringify({ queries: ASKED, k: K }),
  });
  const body = (await response.json()) as {
    index: { generation: string };
    results: { hits: { row: number; score: number }[] }[];
  };
  assert.equal(response.status, 200, JSON.stringify(body));
  return {
    generation: body.index.generation,
    hits: body.results.map(({ hits }) => hits.map(({ row, score }) => ({ row, score }))),
  };
}

/** What an index answers without a server. */
export async function answersOf(index: string): Promise<Reply> {
  const retriever = await openRetriever(index, { encoderThreads: 1 });
  try {
    const { outcomes } = await retriever.retrieve({ queries: ASKED, k: K });
    return {
      generation: retriever.info.generation,
      hits: outcomes.map((outcome) => (outcome.ok ? outcome.hits.map(({ row, score }) => ({ row, score })) : [])),
    };
  } finally {
    await retriever.close();
  }
}

/** Asks a server until it is stopped, with several requests at a time. `stop` rejects if one of them failed. */
export function searchLoad(url: string, key?: string): { stop(): Promise<Reply[]> } {
  const replies: Reply[] = [];
  let running = true;
  const ask = async (): Promise<void> => {
    while (running) {
      replies.push(await searchServer(url, key));
      await sleep(20);
    }
  };
  const asking = [ask(), ask(), ask()];
  // Reported by `stop`.
  for (const each of asking) each.catch(() => undefined);
  return {
    async stop() {
      running = false;
      await Promise.all(asking);
      return replies;
    },
  };
}

/** Every reply is that of one of the indexes, and each index has answered. */
export async function assertOwnAnswers(replies: readonly Reply[], indexes: readonly string[]): Promise<void> {
  const own = await Promise.all(indexes.map(answersOf));
  const answers = new Map(own.map((answer) => [answer.generation, answer]));
  assert.equal(answers.size, indexes.length, 'the indexes have generations of their own');
  for (const reply of replies) assert.deepEqual(reply, answers.get(reply.generation));
  const seen = [...new Set(replies.map(({ generation }) => generation))];
  assert.deepEqual(seen.sort(), [...answers.keys()].sort(), 'the load saw every index');
}
