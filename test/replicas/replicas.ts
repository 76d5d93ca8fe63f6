import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { removePassages } from '../../indexer/update/remove-passages.ts';
import { TrawlClient } from '../../src/client/client.ts';
import { openRetriever } from '../../src/search/opening/open-retriever.ts';
import { freePort } from '../cli/free-port.ts';
import { cleanEnvironment, endOf, SAMPLE, TRAWL } from '../cli/run-trawl.ts';
import { sync } from '../indexer/sync/sync-helpers.ts';

const K = 5;
/** Queries of a request: 1 to this many. */
const MAX_BATCH = 8;
/** Every third passage is removed from the new index, so that most answers change. */
const REMOVED = 3;

export interface ReplicasTest {
  /** Folder to work in. */
  readonly folder: string;
  /** An index of the sample corpus. */
  readonly index: string;
  /** Answers (one for each query) that are wanted; the load goes on until the swap has ended and some more are there. */
  readonly answers: number;
  /** Requests at the same time. */
  readonly clients: number;
  readonly onStep?: (text: string) => void;
}

export interface ReplicasResult {
  readonly answers: number;
  readonly requests: number;
  /** Requests that the client gave up, with their reasons. */
  readonly failed: readonly string[];
  /** Replies that are neither wholly of the old nor wholly of the new index. */
  readonly mixed: readonly string[];
  readonly ofOld: number;
  readonly ofNew: number;
  /** Requests sent after the rollout whose answers were of the old index. */
  readonly oldAfterSwap: number;
  readonly afterSwap: number;
  /** Tries that the client repeated on another server: connections that failed, and statuses 503. */
  readonly repeatedTries: number;
  readonly queries: number;
  /** Queries whose answers differ between the indexes. */
  readonly changedQueries: number;
  readonly killedMs: number;
  readonly rolloutMs: number;
  readonly seconds: number;
}

/**
 * Three servers over copies of an index, under load by a client that has the URLs of all: one is killed and restarted, then all get
 * another index by the function of `trawl sync` and by `trawl admin rollout`. Every answer is compared with those of the two indexes.
 */
export async function replicas({
  folder,
  index,
  answers,
  clients,
  onStep = () => undefined,
}: ReplicasTest): Promise<ReplicasResult> {
  const queries = readFileSync(join(SAMPLE, 'questions.jsonl'), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => (JSON.parse(line) as { question: string }).question);
  const ids = readFileSync(join(SAMPLE, 'passages.jsonl'), 'utf8')
    .split('\n')
    .filter((line, i) => line !== '' && i % REMOVED === 0)
    .map((line) => (JSON.parse(line) as { id: string }).id);
  const next = join(folder, 'next');
  cpSync(index, next, { recursive: true });
  await removePassages(next, ids, {});
  const [old, changed] = [await expectedOf(index, queries), await expectedOf(next, queries)];
  const expected = new Map([old, changed].map((each) => [each.generation, each.answers]));

  const places = await Promise.all(
    [0, 1, 2].map(async (i) => {
      const own = join(folder, `server${i}`);
      mkdirSync(own);
      return { port: await freePort(), index: join(own, 'wiki') };
    }),
  );
  for (const place of places) await sync(index, place.index);
  const urls = places.map(({ port }) => `http://127.0.0.1:${port}`);
  const servers = await Promise.all(places.map(startServer));
  onStep(`three servers answer with generation ${old.generation}`);

  const begun = performance.now();
  let [count, requests, ofOld, ofNew, oldAfterSwap, afterSwap, repeatedTries] = [0, 0, 0, 0, 0, 0, 0];
  const failed: string[] = [];
  const mixed: string[] = [];
  let swapped = false;
  const countedFetch: typeof fetch = async (...args) => {
    try {
      const response = await fetch(...args);
      if (response.status === 503) repeatedTries++;
      return response;
    } catch (error) {
      repeatedTries++;
      throw error;
    }
  };
  const client = new TrawlClient(urls, { fetch: countedFetch, retry: { cooldownMs: 500 } });
  const ask = async (first: number, size: number): Promise<void> => {
    const places = Array.from({ length: size }, (_, i) => (first + i) % queries.length);
    const isAfter = swapped;
    requests++;
    try {
      const reply = await client.search({ queries: places.map((place) => queries[place]!), k: K, documents: false });
      const { generation } = reply.index;
      const wanted = expected.get(generation);
      const wrong = places.filter((place, i) => wanted?.[place] !== textOf(reply.results[i]));
      if (wrong.length > 0) mixed.push(`${wrong.length} of ${size} answers are not those of generation ${generation}`);
      count += size;
      if (generation === old.generation) ofOld += size;
      else ofNew += size;
      if (isAfter) afterSwap += size;
      if (isAfter && generation === old.generation) oldAfterSwap += size;
    } catch (error) {
      failed.push((error as Error).message);
    }
  };
  let done = false;
  const load = async (seed: number): Promise<void> => {
    for (let i = seed; !done; i += clients) await ask(i * 7, 1 + (i % MAX_BATCH));
  };
  const loads = Array.from({ length: clients }, (_, i) => load(i));
  const until = async (share: number): Promise<void> => {
    while (count < share * answers) await sleep(20);
  };
  let killedMs = 0;
  let rolloutMs = 0;
  try {
    await until(0.15);
    const killedAt = performance.now();
    servers[1]!.kill('SIGKILL');
    onStep(`${urls[1]} killed after ${count} answers`);
    await until(0.35);
    servers[1] = await startServer(places[1]!);
    killedMs = Math.round(performance.now() - killedAt);
    onStep(`${urls[1]} answers again after ${killedMs} ms, ${count} answers`);
    await until(0.5);
    for (const place of places) await sync(next, place.index);
    onStep(`the new index is copied, ${count} answers`);
    const rolloutAt = performance.now();
    const questions = ['--eval', join(SAMPLE, 'questions.jsonl'), '--max-recall-drop', '1'];
    await trawl('admin', 'rollout', ...urls, '--index', 'wiki', ...questions);
    rolloutMs = Math.round(performance.now() - rolloutAt);
    swapped = true;
    onStep(`all servers are swapped after ${rolloutMs} ms, ${count} answers`);
    await until(1);
    // Whatever the rollout took, some answers come after it.
    while (afterSwap < answers / 20) await sleep(20);
  } finally {
    done = true;
    await Promise.all(loads);
    for (const server of servers) server.kill('SIGTERM');
    await Promise.all(servers.map((server) => (server.exitCode === null ? once(server, 'close') : undefined)));
  }
  return {
    answers: count,
    requests,
    failed,
    mixed,
    ofOld,
    ofNew,
    oldAfterSwap,
    afterSwap,
    repeatedTries,
    queries: queries.length,
    changedQueries: queries.filter((_, i) => old.answers[i] !== changed.answers[i]).length,
    killedMs,
    rolloutMs,
    seconds: Number(((performance.now() - begun) / 1000).toFixed(1)),
  };
}

/** The answers of an index as texts, by query. */
async function expectedOf(
  index: string,
  queries: readonly string[],
): Promise<{ generation: string; answers: string[] }> {
  const retriever = await openRetriever(index, { encoderThreads: 1 });
  try {
    const { outcomes } = await retriever.retrieve({ queries, k: K });
    const answers = outcomes.map((outcome) => {
      if (!outcome.ok) throw outcome.error;
      return JSON.stringify(outcome.hits.map(({ row, score }) => [row, Math.fround(score)]));
    });
    return { generation: retriever.info.generation, answers };
  } finally {
    await retriever.close();
  }
}

function textOf(result: { ok: boolean; hits?: readonly { row: number; score: number }[] } | undefined): string {
  return JSON.stringify(result?.hits?.map(({ row, score }) => [row, Math.fround(score)]));
}

async function startServer({ port, index }: { port: number; index: string }): Promise<ChildProcess> {
  const [program, ...args] = [...TRAWL, 'serve', index, '--port', String(port), '--quiet', '--encoder-threads', '1'];
  const child = spawn(program!, args, { env: cleanEnvironment(), stdio: ['ignore', 'ignore', 'inherit'] });
  await new TrawlClient(`http://127.0.0.1:${port}`).waitUntilReady({ timeoutMs: 60_000, pollMs: 50 });
  return child;
}

async function trawl(...args: string[]): Promise<void> {
  const [program, ...first] = TRAWL;
  const child = spawn(program!, [...first, ...args], { env: cleanEnvironment(), stdio: ['ignore', 'pipe', 'pipe'] });
  const { code, stdout, stderr } = await endOf(child);
  if (code !== 0) throw new Error(`trawl ${args.join(' ')} ended with ${code}: ${stdout}${stderr}`);
}
