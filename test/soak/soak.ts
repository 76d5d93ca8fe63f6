import { setTimeout as sleep } from 'node:timers/promises';
import { median, percentile, sortedSamples } from '../../bench/statistics.ts';
import { seededRandom } from '../helpers/seeded-random.ts';
import { type Expected, expectedAnswers, soakQueries } from './expected-answers.ts';
import { askRetrieve, GoodTally, goodClient } from './good-client.ts';
import { HOSTILITIES, HostileTally, hostileClient } from './hostile-clients.ts';
import { type ProcessSample, startSoakServer } from './soak-server.ts';

export interface SoakOptions {
  readonly index: string;
  readonly seconds: number;
  readonly goodClients: number;
  readonly hostileClients: number;
  readonly seed: number;
  /** Options of `trawl serve`. */
  readonly args?: readonly string[];
  onProgress?(line: string): void;
}

export interface SoakResult {
  readonly seconds: number;
  readonly requests: number;
  readonly queries: number;
  /** 503 with Retry-After. */
  readonly refused: number;
  /** What good clients got that they should not have; empty is right. */
  readonly wrong: Readonly<Record<string, number>>;
  readonly hostile: Readonly<Record<string, number>>;
  /** Answers that hostile clients saw, by status. */
  readonly statuses: Readonly<Record<string, number>>;
  /** 5xx but 503. */
  readonly failures: readonly string[];
  /** Of requests with one query, of the first fifth after the warm-up and of the last one. */
  readonly latencyMs: { readonly first: Latency; readonly last: Latency };
  /** After a few requests, when the warm-up was over (a fifth of the time; medians of a fifth), at the end, and when all clients were gone. */
  readonly memory: { readonly [moment in Moment]: ProcessSample };
  readonly samples: readonly ProcessSample[];
  /** Of SIGTERM at the end. */
  readonly exit: number | string;
}

export type Moment = 'idleBefore' | 'warm' | 'end' | 'idleAfter';

export interface Latency {
  readonly requests: number;
  readonly p50: number;
  readonly p99: number;
}

const QUERIES = 2_000;
/** Mostly small requests, some batches. */
const SIZES = [1, 1, 1, 1, 1, 2, 3, 1, 2, 64];
const WARM_UP_MS = 1_500;
/** After the clients have gone, for sockets to close and timers to run. */
const SETTLE_MS = 3_000;

/** Full load for a while, with clients of every bad kind beside good ones whose every answer is checked. */
export async function soak(options: SoakOptions): Promise<SoakResult> {
  const { index, seconds, seed, onProgress = () => undefined } = options;
  const queries = await soakQueries(QUERIES);
  const expected = await expectedAnswers(index, queries);
  const server = await startSoakServer(index, options.args === undefined ? {} : { args: options.args });
  const good = new GoodTally();
  const hostile = new HostileTally();
  // Threads and buffers that come with the first requests are no growth.
  await warmUp(server.port, queries, expected);
  const idleBefore = await server.sample();
  const began = performance.now();
  const until = began + seconds * 1000;
  const stopped = (): boolean => performance.now() >= until || !server.alive;
  const samples: ProcessSample[] = [];
  const names = Object.keys(HOSTILITIES);
  const clients = [
    ...Array.from({ length: options.goodClients }, (_, i) =>
      goodClient({
        port: server.port,
        asking: askRetrieve(expected),
        queries,
        tally: good,
        random: seededRandom(seed + i),
        sizes: i === 0 ? [1] : SIZES,
        stopped,
      }),
    ),
    ...Array.from({ length: options.hostileClients }, (_, i) =>
      hostileClient(names, {
        port: server.port,
        queries,
        tally: hostile,
        random: seededRandom(seed + 10_000 + i),
        stopped,
        holdMs: Math.min(10_000, seconds * 100),
      }),
    ),
  ];
  const everyMs = Math.max(500, (seconds * 1000) / 240);
  while (!stopped()) {
    await sleep(Math.min(everyMs, Math.max(1, until - performance.now())));
    if (!server.alive) break;
    const sample = await server.sample();
    samples.push(sample);
    onProgress(
      `${Math.round((performance.now() - began) / 1000)} s: ${good.answered} answers, ${good.faults} wrong, ` +
        `${good.refused} refused, ${(sample.rssBytes / 1e6).toFixed(0)} MB, ${sample.handles} handles, ${sample.threads} threads`,
    );
  }
  await Promise.all(clients);
  if (!server.alive) good.fault('the server died');
  await sleep(SETTLE_MS);
  const idleAfter = server.alive ? await server.sample() : samples.at(-1)!;
  const exit = await server.stop();
  const fifth = Math.max(1, Math.floor(samples.length / 5));
  return {
    seconds,
    requests: good.answered,
    queries: good.queries,
    refused: good.refused,
    wrong: good.wrong,
    hostile: hostile.done,
    statuses: hostile.statuses,
    failures: hostile.failures,
    latencyMs: {
      first: latencyOf(good, began + seconds * 200, began + seconds * 400),
      last: latencyOf(good, began + seconds * 800, Number.POSITIVE_INFINITY),
    },
    memory: {
      idleBefore,
      warm: medianSample(samples.slice(fifth, 2 * fifth)),
      end: medianSample(samples.slice(-fifth)),
      idleAfter,
    },
    samples,
    exit,
  };
}

async function warmUp(
  port: number,
  queries: readonly string[],
  expected: ReadonlyMap<string, Expected>,
): Promise<void> {
  const until = performance.now() + WARM_UP_MS;
  const tally = new GoodTally();
  const stopped = (): boolean => performance.now() >= until;
  await Promise.all(
    Array.from({ length: 4 }, (_, i) =>
      goodClient({
        port,
        asking: askRetrieve(expected),
        queries,
        tally,
        random: seededRandom(i),
        sizes: [1, 64],
        stopped,
      }),
    ),
  );
  if (tally.faults > 0) throw new Error(`wrong before any load: ${JSON.stringify(tally.wrong)}`);
}

function latencyOf({ singles }: GoodTally, from: number, to: number): Latency {
  const times = singles.filter(({ atMs }) => atMs >= from && atMs < to).map(({ ms }) => ms);
  if (times.length === 0) return { requests: 0, p50: Number.NaN, p99: Number.NaN };
  const sorted = sortedSamples(times);
  return { requests: times.length, p50: median(sorted), p99: percentile(sorted, 99) };
}

function medianSample(samples: readonly ProcessSample[]): ProcessSample {
  const of = (field: (sample: ProcessSample) => number): number => median(sortedSamples(samples.map(field)));
  const heaps = samples.flatMap(({ heapBytes }) => (heapBytes === null ? [] : [heapBytes]));
  return {
    atMs: of(({ atMs }) => atMs),
    rssBytes: of(({ rssBytes }) => rssBytes),
    heapBytes: heaps.length === 0 ? null : median(sortedSamples(heaps)),
    handles: of(({ handles }) => handles),
    targets: samples[Math.floor(samples.length / 2)]?.targets ?? {},
    threads: of(({ threads }) => threads),
  };
}
