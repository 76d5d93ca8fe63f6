import { setTimeout as sleep } from 'node:timers/promises';
import { HttpConnection } from '../../bench/http-connection.ts';
import { type Expected, faultOf } from './expected-answers.ts';

/** A request, and what is wrong with the body of its answer; undefined: nothing. */
export interface Asked {
  readonly request: Buffer;
  faultOf(body: string): string | undefined;
}

/** Makes one request for queries. */
export type Asking = (queries: readonly string[], k: number) => Asked;

/** POST /retrieve with scores, whose lists have to be those expected. */
export function askRetrieve(expected: ReadonlyMap<string, Expected>): Asking {
  return (queries, k) => ({
    request: requestBytes({ queries, topk: k, return_scores: true }),
    faultOf: (body) => faultOf(body, queries, k, expected),
  });
}

/** What all good clients saw together. */
export class GoodTally {
  answered = 0;
  queries = 0;
  refused = 0;
  /** What was wrong, with how often. Anything here is a failure. */
  readonly wrong: Record<string, number> = {};
  /** Of requests with one query: when they were answered, and how long they took. */
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
  readonly asking: Asking;
  readonly queries: readonly string[];
  readonly tally: GoodTally;
  /** In [0, 1). */
  readonly random: () => number;
  /** Queries in a request, by chance. */
  readonly sizes: readonly number[];
  readonly stopped: () => boolean;
}

const KS = [1, 3, 10];
/** After 503, as its Retry-After would have it, but sooner. */
const AFTER_REFUSAL_MS = 100;

/** Asks, checks each answer against the expected one, and asks again. */
export async function goodClient(options: GoodClientOptions): Promise<void> {
  const { port, asking, queries, tally, random, sizes, stopped } = options;
  const pick = <Value>(values: readonly Value[]): Value => values[Math.floor(random() * values.length)]!;
  const connection = new HttpConnection(port);
  try {
    while (!stopped()) {
      const some = Array.from({ length: pick(sizes) }, () => pick(queries));
      const asked = asking(some, pick(KS));
      const keepAlive = random() < 0.5;
      const begun = performance.now();
      let reply: Awaited<ReturnType<HttpConnection['send']>>;
      try {
        reply = await connection.send(asked.request, { keepAlive });
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
      const fault = reply.status === 200 ? asked.faultOf(reply.body.toString()) : `status ${reply.status}`;
      if (fault !== undefined) tally.fault(fault);
      tally.answered++;
      tally.queries += some.length;
      if (some.length === 1) tally.singles.push({ atMs: performance.now(), ms: performance.now() - begun });
    }
  } finally {
    connection.close();
  }
}

/** A whole POST, to /retrieve. */
export function requestBytes(body: object, path = '/retrieve'): Buffer {
  const json = JSON.stringify(body);
  const head =
    `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n` +
    `content-length: ${Buffer.byteLength(json)}\r\n\r\n`;
  return Buffer.from(head + json);
}
