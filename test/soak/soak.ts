import { setTimeout as sleep } from 'node:timers/promises';
import { median, percentile, sortedSamples } from '../../src/base/statistics.ts';
import { seededRandom } from '../helpers/seeded-random.ts';
import { type Expected, expectedAnswers, soakQueries } from './expected-answers.ts';
import { GoodTally, goodClient, retrieveRequests } from './good-client.ts';
import { leftOpen } from './handles.ts';
import { HOSTILE_BEHAVIOURS, HostileTally, hostileClient } from './hostile-clients.ts';
import { type ProcessSample, startSoakServer } from './soak-server.ts';

export interface SoakOptions {
  readonly index: string;
  readonly seconds: number;
  readonly goodClients: number;
  readonly hostileClients: number;
  readonly seed: number;
  /** Number of different queries. Default: 2,000. */
  readonly queries?: number;
  /** Options of `trawl serve`. */
  readonly args?: readonly string[];
  onProgress?(line: string): void;
}

export interface SoakResult {
  readonly seconds: number;
  readonly requests: number;
  readonly queries: number;
  /** Number of 503 answers with Retry-After that good clients got. */
  readonly refused: number;
  /** Number of wrong answers and failures that good clients saw, by description. */
  readonly wrong: Readonly<Record<string, number>>;
  /** How often hostile clients showed each behaviour. */
  readonly hostile: Readonly<Record<string, number>>;
  /** Number of answers that hostile clients saw, by status. */
  readonly statuses: Readonly<Record<string, number>>;
  /** Statuses 5xx other than 503 that hostile clients saw. */
  readonly failures: readonly string[];
  /** Latency of requests with one query, in the second and in the last fifth of the run. A growing queue would raise the last. */
  readonly latencyMs: { readonly first: Latency; readonly last: Latency };
  /**
   * The server process before the load (`idleBefore`), in the second fifth of the run (`warm`, a median), in the last fifth (`end`, a
   * median) and after all clients have disconnected (`idleAfter`).
   */
  readonly memory: { readonly [moment in Moment]: ProcessSample };
  readonly samples: readonly ProcessSample[];
  /** The exit code, or the signal, after SIGTERM. */
  readonly exit: number | string;
}

type Moment = 'idleBefore' | 'warm' | 'end' | 'idleAfter';

interface Latency {
  readonly requests: number;
  readonly p50: number;
  readonly p99: number;
}

const QUERIES = 2_000;
/** Queries per request, chosen at random: mostly one, sometimes a batch. */
const SIZES = [1, 1, 1, 1, 1, 2, 3, 1, 2, 64];
const WARM_UP_MS = 1_500;
/** Pause before each sample of the idle server, in which it closes sockets and runs timers. */
const SETTLE_MS = 3_000;
/** Longest wait until the server has closed all connections. On a loaded machine, one pause is not enough. */
const REST_LIMIT_MS = 30_000;

/** Runs a server under full load, with hostile clients beside good ones, and checks every answer to the good ones. */
export async function soak(options: SoakOptions): Promise<SoakResult> {
  const { index, seconds, seed, onProgress = () => undefined } = options;
  const queries = await soakQueries(options.queries ?? QUERIES);
  const expected = await expectedAnswers(index, queries);
  const server = await startSoakServer(index, options.args === undefined ? {} : { args: options.args });
  const good = new GoodTally();
  const hostile = new HostileTally();
  // The first requests start threads and allocate buffers. Sampled before them, the growth would look like a leak.
  await warmUp(server.port, queries, expected);
  const idleBefore = await server.sample();
  const startedAt = performance.now();
  const until = startedAt + seconds * 1000;
  const stopped = (): boolean => performance.now() >= until || !server.alive;
  const samples: ProcessSample[] = [];
  const names = Object.keys(HOSTILE_BEHAVIOURS);
  const clients = [
    ...Array.from({ length: options.goodClients }, (_, i) =>
      goodClient({
        port: server.port,
        makeRequest: retrieveRequests(expected),
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
      `${Math.round((performance.now() - startedAt) / 1000)} s: ${good.answered} answers, ${good.faults} wrong, ` +
        `${good.refused} refused, ${(sample.rssBytes / 1e6).toFixed(0)} MB, ${sample.handles} handles, ${sample.threads} threads`,
    );
  }
  await Promise.all(clients);
  if (!server.alive) good.fault('the server died');
  const idleAfter = (await sampleAtRest(server, idleBefore)) ?? samples.at(-1)!;
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
      first: latencyOf(good, startedAt + seconds * 200, startedAt + seconds * 400),
      last: latencyOf(good, startedAt + seconds * 800, Number.POSITIVE_INFINITY),
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

/** A sample after the server has closed the clients' connections, or after REST_LIMIT_MS. Undefined if the server died first. */
async function sampleAtRest(
  server: Awaited<ReturnType<typeof startSoakServer>>,
  before: ProcessSample,
): Promise<ProcessSample | undefined> {
  const until = performance.now() + REST_LIMIT_MS;
  let sample: ProcessSample | undefined;
  while (server.alive) {
    await sleep(SETTLE_MS);
    if (!server.alive) break;
    sample = await server.sample();
    // `leftOpen`: sockets and files that were not open before the load.
    if (leftOpen(before.targets, sample.targets).length === 0 || performance.now() >= until) return sample;
  }
  return sample;
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
        makeRequest: retrieveRequests(expected),
        queries,
        tally,
        random: seededRandom(i),
        sizes: [1, 64],
        stopped,
      }),
    ),
  );
  if (tally.faults > 0) throw new Error(`wrong answers before the load: ${JSON.stringify(tally.wrong)}`);
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
