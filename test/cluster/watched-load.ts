import { setTimeout as pause } from 'node:timers/promises';
import type { LoadFigures } from './cluster-figures.ts';
import { type Addresses, ask, type DialectRequest } from './dialect-requests.ts';

/** A request with the reply of the folder's server. */
export interface WatchedRequest {
  readonly request: DialectRequest;
  /** By `comparable`. */
  readonly expected: string;
}

/** `refused`: 503 with Retry-After. `wrong`: everything else but the expected reply. */
interface WatchedReply {
  readonly sentMs: number;
  readonly endMs: number;
  readonly outcome: 'same' | 'refused' | 'wrong';
  readonly queries: number;
}

/** Pause of a client that was not answered. Shorter than Retry-After, so that the time of recovery is seen. */
const REFUSED_PAUSE_MS = 200;
/** A client that waits longer than this for a reply gives up; the reply counts as wrong. */
const GIVE_UP_MS = 120_000;

/** Times and counts of work, which differ from call to call. */
const VARIES = new Set([
  'timings',
  'timings_ms',
  'processing_time_ms',
  't_embed',
  't_ann',
  't_thread',
  'rescored',
  'took',
  'took_ms',
  'latency_ms',
  'created',
]);
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The text of a reply without what differs from call to call. */
export function comparable(text: string): string {
  const varies = (key: string, value: unknown): boolean =>
    VARIES.has(key) || (key === 'id' && typeof value === 'string' && UUID.test(value));
  return JSON.stringify(JSON.parse(text, (key, value: unknown) => (varies(key, value) ? undefined : value)));
}

/** Clients that send requests in turn, each its next one when the reply is there, and compare every reply. */
export class WatchedLoad {
  readonly #server: Addresses;
  readonly #requests: readonly WatchedRequest[];
  readonly #queriesOf: (request: WatchedRequest) => number;
  readonly #replies: WatchedReply[] = [];
  /** Descriptions of wrong replies. */
  readonly wrong: string[] = [];
  /** The last reply with 503, for messages. */
  lastRefusal = '';
  #clients: Promise<void>[] = [];
  #isOver = false;

  constructor(
    server: Addresses,
    requests: readonly WatchedRequest[],
    queriesOf: (request: WatchedRequest) => number = () => 1,
  ) {
    this.#server = server;
    this.#requests = requests;
    this.#queriesOf = queriesOf;
  }

  /** Runs an action under the load of some clients. The figures are of the requests that were sent before its end. */
  async during(clients: number, action: () => Promise<unknown>): Promise<LoadFigures> {
    const from = performance.now();
    this.#isOver = false;
    this.#clients = Array.from({ length: clients }, (_, i) => this.#client(i, clients));
    try {
      await action();
    } finally {
      this.#isOver = true;
      await Promise.all(this.#clients);
    }
    return this.#figures(from, performance.now(), clients);
  }

  /** Right answers to requests that were sent and answered in a span of time. */
  answersBetween(from: number, to: number): number {
    return this.#replies.filter(({ outcome, sentMs, endMs }) => outcome === 'same' && sentMs >= from && endMs <= to)
      .length;
  }

  #figures(from: number, to: number, clients: number): LoadFigures {
    const replies = this.#replies.filter(({ sentMs }) => sentMs >= from && sentMs <= to);
    const of = (wanted: WatchedReply['outcome']) => replies.filter(({ outcome }) => outcome === wanted);
    const same = of('same');
    const times = same.map(({ sentMs, endMs }) => endMs - sentMs).sort((a, b) => a - b);
    const at = (share: number): number => times[Math.min(times.length - 1, Math.floor(share * times.length))] ?? 0;
    const answered = [from, ...same.map(({ endMs }) => endMs).sort((a, b) => a - b), to];
    const refused = of('refused');
    return {
      seconds: (to - from) / 1000,
      clients,
      answers: times.length,
      refused: refused.length,
      wrong: of('wrong').length,
      queriesPerS: same.reduce((sum, { queries }) => sum + queries, 0) / ((to - from) / 1000),
      medianMs: at(0.5),
      p99Ms: at(0.99),
      slowestMs: Math.max(0, ...replies.map(({ sentMs, endMs }) => endMs - sentMs)),
      refusedUntilMs: refused.length === 0 ? null : Math.max(...refused.map(({ endMs }) => endMs)) - from,
      longestSilenceMs: Math.max(...answered.slice(1).map((ms, i) => ms - answered[i]!)),
    };
  }

  async #client(first: number, step: number): Promise<void> {
    for (let i = first; !this.#isOver; i += step) {
      const watched = this.#requests[i % this.#requests.length]!;
      const sentMs = performance.now();
      const outcome = await this.#ask(watched);
      this.#replies.push({ sentMs, endMs: performance.now(), outcome, queries: this.#queriesOf(watched) });
      if (outcome !== 'same') await pause(REFUSED_PAUSE_MS);
    }
  }

  async #ask({ request, expected }: WatchedRequest): Promise<WatchedReply['outcome']> {
    const shown = `${request.dialect} ${request.path} ${JSON.stringify(request.body).slice(0, 200)}`;
    try {
      const { status, text, retryAfter } = await ask(this.#server, request, GIVE_UP_MS);
      if (status === 503 && retryAfter >= 1) {
        this.lastRefusal = `${shown}: ${text.slice(0, 500)}`;
        return 'refused';
      }
      if (status === 200 && comparable(text) === expected) return 'same';
      this.wrong.push(`${shown}: ${status} ${text.slice(0, 500)}`);
    } catch (error) {
      this.wrong.push(`${shown}: ${(error as Error).message}`);
    }
    return 'wrong';
  }
}
