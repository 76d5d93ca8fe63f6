import { existsSync, openSync } from 'node:fs';
import { readFile, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { seededRandom } from '../helpers/seeded-random.ts';
import { type Expected, expectedAnswers, soakQueries } from './expected-answers.ts';
import { GoodTally, goodClient } from './good-client.ts';
import { type SoakServer, type SoakServerOptions, startSoakServer } from './soak-server.ts';

export interface TortureOptions {
  /** An index of the sample corpus. */
  readonly index: string;
  /** Another one, whose answers to every query are others, made with the same encoder. */
  readonly otherIndex: string;
  /** A folder for links, that goes with the run. */
  readonly folder: string;
  /** Of each case that lasts. */
  readonly seconds: number;
  /** Opened and closed. */
  readonly connections: number;
}

export interface TortureResult {
  readonly name: string;
  readonly outcome: 'passed' | 'failed' | 'skipped';
  /** What was done and seen, in words and numbers; why it was skipped. */
  readonly figures: string;
}

/** What a case found; a case that cannot be run throws `Skip`. */
interface Found {
  readonly faults: Readonly<Record<string, number>>;
  readonly figures: string;
}

class Skip extends Error {}

type Case = (options: TortureOptions) => Promise<Found>;

const CLIENTS = 8;
const QUERIES = 600;
/** Where Debian's packages put it. */
const FAKETIME = [
  '/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1',
  '/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1',
];
const FULL_DEVICE = '/dev/full';

export const TORTURES: Readonly<Record<string, Case>> = {
  async 'the index swapped every second under load'(options) {
    const link = join(options.folder, 'swapped');
    await turn(link, options.index);
    const queries = await soakQueries(QUERIES);
    const both = [await expectedAnswers(options.index, queries), await expectedAnswers(options.otherIndex, queries)];
    return underLoad(link, queries, options, {
      expected: both,
      async during(server, stopped) {
        let swaps = 0;
        const faults: Record<string, number> = {};
        const seconds: number[] = [];
        for (let next = 1; !stopped(); next = 1 - next) {
          await turn(link, next === 1 ? options.otherIndex : options.index);
          const begun = performance.now();
          const response = await fetch(`${server.url}/admin/indexes/swapped/reload`, {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: '{}',
          });
          await response.arrayBuffer();
          if (response.status === 404) throw new Skip('this server has no POST /admin/indexes/{name}/reload');
          if (response.ok) {
            swaps++;
            seconds.push((performance.now() - begun) / 1000);
          } else faults[`reload answered ${response.status}`] = (faults[`reload answered ${response.status}`] ?? 0) + 1;
          await sleep(Math.max(0, 1_000 - (performance.now() - begun)));
        }
        if (swaps === 0) faults['no swap'] = 1;
        return { faults, figures: `${swaps} swaps, the slowest in ${Math.max(0, ...seconds).toFixed(2)} s` };
      },
    });
  },

  async "the index's directory renamed away under load"(options) {
    const moved = `${options.index}-moved`;
    try {
      return await underLoad(options.index, await soakQueries(QUERIES), options, {
        async during(_server, stopped) {
          let renames = 0;
          while (!stopped()) {
            await rename(options.index, moved);
            renames++;
            await sleep(500);
            await rename(moved, options.index);
            await sleep(500);
          }
          return { faults: {}, figures: `renamed away and back ${renames} times` };
        },
      });
    } finally {
      if (existsSync(moved)) await rename(moved, options.index);
    }
  },

  async 'no space for the log'(options) {
    if (!existsSync(FULL_DEVICE)) throw new Skip(`there is no ${FULL_DEVICE}`);
    return underLoad(options.index, await soakQueries(QUERIES), options, {
      server: { log: openSync(FULL_DEVICE, 'w') },
      during: async () => ({ faults: {}, figures: `every write of the log fails (${FULL_DEVICE})` }),
    });
  },

  async 'the clock jumps a day to and fro every second'(options) {
    const library = FAKETIME.find((path) => existsSync(path));
    if (library === undefined) throw new Skip('libfaketime is not installed (Debian: apt-get install libfaketime)');
    const clock = join(options.folder, 'clock');
    await writeFile(clock, '+0');
    const env = {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: clock,
      FAKETIME_NO_CACHE: '1',
      // Steps of the wall clock are what happens on machines; the monotonic one has none.
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    };
    return underLoad(options.index, await soakQueries(QUERIES), options, {
      server: { env },
      async during(server, stopped) {
        let jumps = 0;
        const days = new Set<string>();
        for (const offset of forEver(['+1d', '+0', '-1d', '+400d'])) {
          if (stopped()) break;
          await writeFile(clock, offset);
          await utimes(clock, new Date(), new Date());
          jumps++;
          await sleep(1_000);
          const response = await fetch(`${server.url}/livez`);
          days.add(new Date(response.headers.get('date') ?? 0).toISOString().slice(0, 10));
        }
        const faults: Record<string, number> = days.size > 1 ? {} : { 'the clock did not jump': 1 };
        return { faults, figures: `${jumps} jumps, dates of answers ${[...days].sort().join(', ')}` };
      },
    });
  },

  async 'connections opened and closed'(options) {
    return underLoad(options.index, await soakQueries(QUERIES), options, {
      async during(server) {
        await sleep(1_000);
        const before = await server.sample();
        const counts = await openAndClose(server.port, options.connections);
        await sleep(2_000);
        const after = await server.sample();
        const faults: Record<string, number> = {};
        // The clients of the load may open or close theirs between the two looks, and /metrics is asked on one.
        if (after.handles > before.handles + CLIENTS + 2) faults[`${after.handles - before.handles} handles more`] = 1;
        const mb = (bytes: number): string => (bytes / 1e6).toFixed(0);
        return {
          faults,
          figures: `${Object.entries(counts)
            .map(([what, count]) => `${count} ${what}`)
            .join(
              ', ',
            )}; handles ${before.handles} → ${after.handles}, ${mb(before.rssBytes)} → ${mb(after.rssBytes)} MB`,
        };
      },
    });
  },
};

/** Runs the cases one after another; none throws. */
export async function torture(
  options: TortureOptions,
  onResult: (result: TortureResult) => void = () => undefined,
): Promise<TortureResult[]> {
  const results: TortureResult[] = [];
  for (const [name, run] of Object.entries(TORTURES)) {
    const result = await resultOf(name, run, options);
    results.push(result);
    onResult(result);
  }
  return results;
}

async function resultOf(name: string, run: Case, options: TortureOptions): Promise<TortureResult> {
  try {
    const { faults, figures } = await run(options);
    const wrong = Object.entries(faults).map(([what, count]) => `${what} (${count})`);
    if (wrong.length === 0) return { name, outcome: 'passed', figures };
    return { name, outcome: 'failed', figures: `${wrong.join(', ')}; ${figures}` };
  } catch (error) {
    if (error instanceof Skip) return { name, outcome: 'skipped', figures: error.message };
    return {
      name,
      outcome: 'failed',
      figures: error instanceof Error ? (error.stack ?? error.message) : String(error),
    };
  }
}

interface LoadOptions {
  readonly server?: SoakServerOptions;
  /** Each answer has to be one of these whole; default: those of the index. */
  readonly expected?: readonly ReadonlyMap<string, Expected>[];
  during(server: SoakServer, stopped: () => boolean): Promise<Found>;
}

/** Good clients ask, and their answers are checked, while something is done to the server. */
async function underLoad(
  index: string,
  queries: readonly string[],
  { seconds }: TortureOptions,
  { server: serverOptions = {}, expected, during }: LoadOptions,
): Promise<Found> {
  const accepted = expected ?? [await expectedAnswers(index, queries)];
  const server = await startSoakServer(index, serverOptions);
  const tally = new GoodTally();
  const until = performance.now() + seconds * 1000;
  let over = false;
  const stopped = (): boolean => over || performance.now() >= until || !server.alive;
  const clients = Array.from({ length: CLIENTS }, (_, i) =>
    goodClient({
      port: server.port,
      expected: accepted,
      queries,
      tally,
      random: seededRandom(i + 1),
      sizes: [1, 1, 2, 3, 16],
      stopped: () => over || !server.alive,
    }),
  );
  let found: Found;
  try {
    found = await during(server, stopped);
    while (!stopped()) await sleep(50);
  } finally {
    over = true;
    await Promise.all(clients);
    if (!server.alive) tally.fault('the server died');
    const exit = await server.stop();
    if (exit !== 0) tally.fault(`exit ${exit}`);
  }
  return {
    faults: { ...found.faults, ...tally.wrong },
    figures: `${tally.answered} answers, ${tally.refused} refused; ${found.figures}`,
  };
}

/** Turns a link to another folder in one step. */
async function turn(link: string, to: string): Promise<void> {
  await rm(`${link}.new`, { force: true });
  await symlink(to, `${link}.new`);
  await rename(`${link}.new`, link);
}

function* forEver<Value>(values: readonly Value[]): Generator<Value, never> {
  for (;;) yield* values;
}

const AT_ONCE = 200;
/** A third says nothing, a third sends half a request, a third gets an answer. */
const HALF = 'POST /retrieve HTTP/1.1\r\nhost: x\r\ncontent-ty';
const WHOLE = 'GET /livez HTTP/1.1\r\nhost: x\r\n\r\n';

/** How many ended how. */
async function openAndClose(port: number, connections: number): Promise<Record<string, number>> {
  const counts: Record<string, number> = { 'said nothing': 0, 'half a request': 0, answered: 0, 'not connected': 0 };
  let next = 0;
  const one = async (): Promise<void> => {
    while (next < connections) {
      const i = next++;
      const what = await connection(port, i);
      counts[what] = (counts[what] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
  return counts;
}

function connection(port: number, i: number): Promise<string> {
  return new Promise((resolve) => {
    // Ports of one address would run out: the side that closes keeps its own for a minute.
    const socket = connect({ port, host: '127.0.0.1', localAddress: `127.0.${1 + (i % 200)}.1` });
    let end = 'not connected';
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(end));
    socket.on('connect', () => {
      if (i % 3 === 0) {
        end = 'said nothing';
        socket.destroy();
      } else if (i % 3 === 1) {
        end = 'half a request';
        socket.write(HALF, () => (i % 2 === 0 ? socket.destroy() : socket.resetAndDestroy()));
      } else {
        socket.write(WHOLE);
        end = 'no answer';
        socket.once('data', () => {
          end = 'answered';
          socket.destroy();
        });
      }
    });
  });
}

/** The passages of `from` with other ids, one a line: an index of them answers every query otherwise. */
export async function otherPassages(from: string): Promise<string> {
  const lines = (await readFile(from, 'utf8')).split('\n').filter((line) => line !== '');
  return lines
    .map((line) => {
      const row = JSON.parse(line) as { id: unknown };
      return `${JSON.stringify({ ...row, id: `other-${String(row.id)}` })}\n`;
    })
    .join('');
}
