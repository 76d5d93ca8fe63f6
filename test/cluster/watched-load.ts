import { setTimeout as pause } from 'node:timers/promises';

/** A request with the reply of the folder's server. */
export interface WatchedRequest {
  readonly path: string;
  readonly body: object;
  /** By `comparable`. */
  readonly expected: string;
}

/** `refused`: 503 with Retry-After. `wrong`: everything else but the expected reply. */
interface WatchedReply {
  readonly sentMs: number;
  readonly endMs: number;
  readonly outcome: 'same' | 'refused' | 'wrong';
}

/** What happened to the requests that were answered in a span of time. Times in milliseconds. */
export interface LoadFigures {
  readonly seconds: number;
  readonly clients: number;
  /** Replies that were the expected ones. */
  readonly answers: number;
  readonly refused: number;
  readonly wrong: number;
  readonly queriesPerS: number;
  readonly medianMs: number;
  readonly p99Ms: number;
  /** Of answers and refusals. */
  readonly slowestMs: number;
  /** From the beginning to the end of the last refusal; null if none was refused. */
  readonly refusedUntilMs: number | null;
}

/** Pause of a client that was refused. Shorter than Retry-After, so that the time of recovery is seen. */
const REFUSED_PAUSE_MS = 200;
/** A client that waits longer than this for a reply gives up; the reply counts as wrong. */
const GIVE_UP_MS = 120_000;

/** The text of a reply without what differs from call to call. */
export function comparable(text: string): string {
  const varies = new Set(['timings', 'rescored', 'took', 'took_ms', 'latency_ms']);
  return JSON.stringify(JSON.parse(text, (key, value: unknown) => (varies.has(key) ? undefined : value)));
}

/** Clients that send requests in turn, each its next one when the reply is there, and compare every reply. */
export class WatchedLoad {
  readonly #url: string;
  readonly #requests: readonly WatchedRequest[];
  readonly #queriesOf: (request: WatchedRequest) => number;
  readonly #replies: (WatchedReply & { readonly queries: number })[] = [];
  /** Descriptions of wrong replies. */
  readonly wrong: string[] = [];
  #clients: Promise<void>[] = [];
  #isOver = false;

  constructor(
    url: string,
    requests: readonly WatchedRequest[],
    queriesOf: (request: WatchedRequest) => number = () => 1,
  ) {
    this.#url = url;
    this.#requests = requests;
    this.#queriesOf = queriesOf;
  }

  start(clients: number): void {
    this.#isOver = false;
    this.#clients = Array.from({ length: clients }, (_, i) => this.#client(i, clients));
  }

  /** Resolves when the last replies are there. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#clients);
  }

  /** Runs an action under the load of some clients. The figures are of the requests whose replies came before its end. */
  async during(clients: number, action: () => Promise<unknown>): Promise<LoadFigures> {
    const from = performance.now();
    this.start(clients);
    try {
      await action();
    } finally {
      await this.stop();
    }
    return this.#figures(from, performance.now(), clients);
  }

  #figures(from: number, to: number, clients: number): LoadFigures {
    const replies = this.#replies.filter(({ sentMs }) => sentMs >= from && sentMs <= to);
    const of = (wanted: WatchedReply['outcome']) => replies.filter(({ outcome }) => outcome === wanted);
    const times = of('same')
      .map(({ sentMs, endMs }) => endMs - sentMs)
      .sort((a, b) => a - b);
    const at = (share: number): number => times[Math.min(times.length - 1, Math.floor(share * times.length))] ?? 0;
    const refused = of('refused');
    return {
      seconds: (to - from) / 1000,
      clients,
      answers: times.length,
      refused: refused.length,
      wrong: of('wrong').length,
      queriesPerS: of('same').reduce((sum, { queries }) => sum + queries, 0) / ((to - from) / 1000),
      medianMs: at(0.5),
      p99Ms: at(0.99),
      slowestMs: Math.max(0, ...replies.map(({ sentMs, endMs }) => endMs - sentMs)),
      refusedUntilMs: refused.length === 0 ? null : Math.max(...refused.map(({ endMs }) => endMs)) - from,
    };
  }

  async #client(first: number, step: number): Promise<void> {
    for (let i = first; !this.#isOver; i += step) {
      const request = this.#requests[i % this.#requests.length]!;
      const sentMs = performance.now();
      const outcome = await this.#ask(request);
      this.#replies.push({ sentMs, endMs: performance.now(), outcome, queries: this.#queriesOf(request) });
      if (outcome === 'refused') await pause(REFUSED_PAUSE_MS);
    }
  }

  async #ask({ path, body, expected }: WatchedRequest): Promise<WatchedReply['outcome']> {
    const shown = `${path} ${JSON.stringify(body).slice(0, 200)}`;
    try {
      const reply = await fetch(this.#url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(GIVE_UP_MS),
      });
      const text = await reply.text();
      if (reply.status === 503 && Number(reply.headers.get('retry-after')) >= 1) return 'refused';
      if (reply.status === 200 && comparable(text) === expected) return 'same';
      this.wrong.push(`${shown}: ${reply.status} ${text.slice(0, 500)}`);
    } catch (error) {
      this.wrong.push(`${shown}: ${(error as Error).message}`);
    }
    return 'wrong';
  }
}
