import { readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { HttpConnection, type HttpReply } from './http-connection.ts';
import { type ClientGroup, type LoadPlan, type LoadResult, type QueryAnswer, SERVER_STAGES } from './load-plan.ts';

/**
 * Runs the clients in their own process, so that they do not share an event loop with the server or the command. It reads
 * requests from stdin, one line of JSON each (bench/script-process.ts):
 *
 *     {"do": "run", "plan": FILE, "answers": FILE}  ->  LoadResult
 */

/** A client waits this long after a failed request, so that it does not flood a server that is down. */
const PAUSE_AFTER_ERROR_MS = 20;

for await (const line of createInterface({ input: process.stdin })) {
  const { plan, answers } = JSON.parse(line) as { plan: string; answers: string };
  let reply: object;
  try {
    reply = await run(JSON.parse(readFileSync(plan, 'utf8')) as LoadPlan, answers);
  } catch (error) {
    reply = { error: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
  process.stdout.write(`${JSON.stringify(reply)}\n`);
}

interface Answered {
  readonly queries: readonly string[];
  readonly body: Buffer;
}

interface Measurements {
  requests: number;
  queries: number;
  lastMs: number;
  readonly latenciesMs: number[];
  readonly overheadsMs: number[];
  readonly stagesMs: number[][];
  readonly errors: Record<string, number>;
  readonly kept: Answered[];
}

interface ReadyRequest {
  readonly queries: readonly string[];
  readonly bytes: Buffer;
}

async function run(plan: LoadPlan, answersFile: string): Promise<LoadResult> {
  const groups = plan.groups.map((group) => ({
    group,
    sequences: group.sequences.map((sequence) => sequence.map((queries) => requestOf(queries, plan.topk, group))),
  }));
  const measured: Measurements = {
    requests: 0,
    queries: 0,
    lastMs: 0,
    latenciesMs: [],
    overheadsMs: [],
    stagesMs: [],
    errors: {},
    kept: [],
  };
  const background = new AbortController();
  const started = performance.now();
  const running = groups.map(({ group, sequences }) => {
    const sequence = sequencesOf(sequences, group.seconds);
    return {
      group,
      ended: Promise.all(
        Array.from({ length: group.clients }, () =>
          client(group, sequence, { plan, started, measured, background: background.signal }),
        ),
      ),
    };
  });
  await Promise.all(running.filter(({ group }) => group.timed).map(({ ended }) => ended));
  background.abort();
  await Promise.all(running.map(({ ended }) => ended));
  const { requests, queries, latenciesMs, overheadsMs, stagesMs, errors } = measured;
  writeFileSync(answersFile, JSON.stringify(measured.kept.flatMap((answered) => answersOf(answered, errors))));
  return { elapsedMs: measured.lastMs - started, requests, queries, latenciesMs, overheadsMs, stagesMs, errors };
}

/** The clients of a group share this iterator: each takes the next sequence. */
function* sequencesOf(
  sequences: readonly (readonly ReadyRequest[])[],
  seconds: number | null,
): Generator<readonly ReadyRequest[], void> {
  do yield* sequences;
  while (seconds !== null && sequences.length > 0);
}

/** What all clients of a run share. */
interface Load {
  readonly plan: LoadPlan;
  /** By `performance.now()`. */
  readonly started: number;
  readonly measured: Measurements;
  /** Stops the clients that are not timed. */
  readonly background: AbortSignal;
}

async function client(
  { keepAlive, seconds, pauseMs, timed }: ClientGroup,
  sequences: Iterator<readonly ReadyRequest[], void>,
  { plan, started, measured, background }: Load,
): Promise<void> {
  const connection = new HttpConnection(plan.port);
  const until = seconds === null ? Number.POSITIVE_INFINITY : started + seconds * 1000;
  const stop = (): void => connection.close();
  if (!timed) background.addEventListener('abort', stop, { once: true });
  try {
    for (let next = sequences.next(); next.done !== true; next = sequences.next()) {
      for (const request of next.value) {
        if (performance.now() >= until || background.aborted) return;
        const begun = performance.now();
        let reply: HttpReply;
        try {
          reply = await connection.send(request.bytes, { keepAlive });
        } catch (error) {
          if (background.aborted) return;
          note(measured, (error as Error).message);
          await sleep(PAUSE_AFTER_ERROR_MS);
          continue;
        }
        if (!timed && reply.status === 200) continue;
        record(measured, request, reply, performance.now() - begun, plan.keepAnswers);
        if (pauseMs > 0) await sleep(pauseMs);
      }
    }
  } finally {
    background.removeEventListener('abort', stop);
    connection.close();
  }
}

function record(measured: Measurements, { queries }: ReadyRequest, reply: HttpReply, ms: number, keep: boolean): void {
  if (reply.status !== 200) {
    note(measured, String(reply.status));
    return;
  }
  measured.requests++;
  measured.lastMs = performance.now();
  measured.queries += queries.length;
  measured.latenciesMs.push(ms);
  const times = serverTimes(reply.head);
  if (times !== undefined) {
    measured.overheadsMs.push(times.overhead);
    measured.stagesMs.push(times.stages);
  }
  if (keep) measured.kept.push({ queries, body: reply.body });
}

function note(measured: Measurements, what: string): void {
  measured.requests++;
  measured.lastMs = performance.now();
  measured.errors[what] = (measured.errors[what] ?? 0) + 1;
}

/** The stages of the server-timing header, and its total less queueing, embedding and search. */
function serverTimes(head: string): { stages: number[]; overhead: number } | undefined {
  const line = /\r\nserver-timing: ([^\r]*)/i.exec(head)?.[1];
  if (line === undefined) return undefined;
  const ms = (name: string): number => Number(new RegExp(`\\b${name};dur=([\\d.]+)`).exec(line)?.[1] ?? Number.NaN);
  const overhead = ms('total') - ms('queue') - ms('embed') - ms('search');
  return Number.isNaN(overhead) ? undefined : { stages: SERVER_STAGES.map(ms), overhead };
}

function requestOf(queries: readonly string[], topk: number, { keepAlive }: ClientGroup): ReadyRequest {
  const body = Buffer.from(JSON.stringify({ queries, topk, return_scores: true }));
  const head =
    'POST /retrieve HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: */*\r\ncontent-type: application/json\r\n' +
    `connection: ${keepAlive ? 'keep-alive' : 'close'}\r\ncontent-length: ${body.length}\r\n\r\n`;
  return { queries, bytes: Buffer.concat([Buffer.from(head), body]) };
}

function answersOf({ queries, body }: Answered, errors: Record<string, number>): QueryAnswer[] {
  const { result } = JSON.parse(body.toString()) as {
    result: { document: { id: string | number }; score: number }[][];
  };
  if (!Array.isArray(result) || result.length !== queries.length) {
    errors['wrong number of lists'] = (errors['wrong number of lists'] ?? 0) + 1;
    return [];
  }
  return result.map((hits, i) => ({
    query: queries[i]!,
    ids: hits.map(({ document }) => String(document.id)),
    scores: hits.map(({ score }) => score),
  }));
}
