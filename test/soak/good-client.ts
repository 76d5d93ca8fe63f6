import { setTimeout as sleep } from 'node:timers/promises';
import { HttpConnection } from '../../bench/serve/http-connection.ts';
import { type Expected, faultOf } from './expected-answers.ts';

/** A request and the check of its answer. */
interface CheckedRequest {
  readonly request: Buffer;
  /** Says what is wrong with the body of the answer; undefined if nothing is. */
  faultOf(body: string): string | undefined;
}

/** Makes a request for queries. */
export type MakeRequest = (queries: readonly string[], k: number) => CheckedRequest;

/** Requests to POST /retrieve with scores; the answers must be the expected ones. */
export function retrieveRequests(expected: ReadonlyMap<string, Expected>): MakeRequest {
  return (queries, k) => ({
    request: requestBytes({ queries, topk: k, return_scores: true }),
    faultOf: (body) => faultOf(body, queries, k, expected),
  });
}

/** What all good clients saw. */
export class GoodTally {
  answered = 0;
  queries = 0;
  refused = 0;
  /** Wrong answers and failed connections: how often each happened. */
  readonly wrong: Record<string, number> = {};
  /** Requests with one query: when each was answered, and its latency. */
  readonly singles: { readonly atMs: number; readonly ms: number }[] = [];

  fault(what: string): void {
    this.wrong[what] = (this.wrong[what] ?? 0) + 1;
  }

  get faults(): number {
    return Object.values(this.wrong).reduce((sum, count) => sum + count, 0);
  }
}

export interface GoodClientOptions {
  readonly port: number;
  readonly makeRequest: MakeRequest;
  readonly queries: readonly string[];
  readonly tally: GoodTally;
  /** Random numbers in [0, 1). */
  readonly random: () => number;
  /** Numbers of queries in a request, chosen at random. */
  readonly sizes: readonly number[];
  readonly stopped: () => boolean;
}

const KS = [1, 3, 10];
/** Pause after a 503; shorter than its Retry-After, to keep up the load. */
const AFTER_REFUSAL_MS = 100;

/** Sends requests one after another and checks each answer, until `stopped`. */
export async function goodClient(options: GoodClientOptions): Promise<void> {
  const { port, makeRequest, queries, tally, random, sizes, stopped } = options;
  const pick = <Value>(values: readonly Value[]): Value => values[Math.floor(random() * values.length)]!;
  const connection = new HttpConnection(port);
  try {
    while (!stopped()) {
      const batch = Array.from({ length: pick(sizes) }, () => pick(queries));
      const { request, faultOf } = makeRequest(batch, pick(KS));
      const keepAlive = random() < 0.5;
      const begun = performance.now();
      let reply: Awaited<ReturnType<HttpConnection['send']>>;
      try {
        reply = await connection.send(request, { keepAlive });
      } catch (error) {
        tally.fault(`connection: ${(error as Error).message}`);
        await sleep(AFTER_REFUSAL_MS);
        continue;
      }
      if (reply.status === 503 && /\r\nretry-after: *\d/i.test(reply.head)) {
        tally.refused++;
        await sleep(AFTER_REFUSAL_MS);
        continue;
      }
      const fault = reply.status === 200 ? faultOf(reply.body.toString()) : `status ${reply.status}`;
      if (fault !== undefined) tally.fault(fault);
      tally.answered++;
      tally.queries += batch.length;
      if (batch.length === 1) tally.singles.push({ atMs: performance.now(), ms: performance.now() - begun });
    }
  } finally {
    connection.close();
  }
}

/** The bytes of a POST request with a JSON body. */
export function requestBytes(body: object, path = '/retrieve'): Buffer {
  const json = JSON.stringify(body);
  const head =
    `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n` +
    `content-length: ${Buffer.byteLength(json)}\r\n\r\n`;
  return Buffer.from(head + json);
}
