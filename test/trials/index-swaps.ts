import { readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { rename, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Expected, expectedAnswers, faultOfLists, generationOf, soakQueries } from '../soak/expected-answers.ts';
import { type Asking, requestBytes } from '../soak/good-client.ts';
import { metricOf, type SoakServer } from '../soak/soak-server.ts';
import { Faults, megabytes, post, type Trial, underLoad } from './trial.ts';

const QUERIES = 400;
const EVERY_MS = 1_000;
/** For the last request on an old generation, and for its threads to end. */
const DRAIN_MS = 10_000;

/** The generations that may answer, as one who asks for the swaps knows them. */
class Generations {
  /** The one that answers; during a swap the next one too. */
  readonly serving = new Set<string>();

  /** A snapshot. */
  get now(): string[] {
    return [...this.serving];
  }
}

/** A link to an index is turned to another one and back, and reloaded each time. */
export const indexSwaps: Trial = {
  name: 'the index swapped every second under load',
  async run(options) {
    const link = join(options.folder, 'swapped');
    await turn(link, options.index);
    const queries = await soakQueries(QUERIES);
    const folders = [options.index, options.otherIndex];
    const names = await Promise.all(folders.map(generationOf));
    const answers = new Map<string, ReadonlyMap<string, Expected>>();
    for (const [i, folder] of folders.entries()) answers.set(names[i]!, await expectedAnswers(folder, queries));
    const generations = new Generations();
    generations.serving.add(names[0]!);
    const swaps = { done: 0, slowestMs: 0 };
    let before: Held;
    return underLoad(link, options, {
      queries,
      asking: askGenerations(answers, generations),
      async during(server, stopped) {
        const faults = new Faults();
        before = await held(server, folders);
        // An even number, so that the first one serves in the end.
        for (let next = 1; !stopped() || next === 0; next = 1 - next) {
          const begun = performance.now();
          await turn(link, folders[next]!);
          generations.serving.add(names[next]!);
          const { status, text } = await post(`${server.url}/admin/indexes/swapped/reload`);
          generations.serving.delete(names[1 - next]!);
          if (status !== 200) faults.add(`a reload was answered with ${status} ${text}`);
          else if ((JSON.parse(text) as { generation: string }).generation !== names[next]) {
            faults.add('a reload tells another generation');
          } else swaps.done++;
          const ms = performance.now() - begun;
          swaps.slowestMs = Math.max(swaps.slowestMs, ms);
          await sleep(Math.max(0, EVERY_MS - ms));
        }
        if (swaps.done === 0) faults.add('no swap');
        return {
          counts: { swaps: swaps.done, 'the slowest, s': Number((swaps.slowestMs / 1000).toFixed(2)) },
          faults: faults.counts,
        };
      },
      async after(server) {
        const faults = new Faults();
        await drained(server);
        const now = await held(server, folders);
        if (now.draining !== 0) faults.add('generations still draining', now.draining);
        const [served, replaced] = now.folders;
        if (replaced!.files + replaced!.mappings > 0) faults.add('files or mappings of the index that was replaced');
        // A reader of passages more holds a file more; generations that were kept would be one a swap.
        const first = before.folders[0]!;
        if (served!.files > 4 * first.files || served!.mappings > 4 * first.mappings)
          faults.add('old generations held');
        if (now.threads > before.threads + 8) faults.add('threads more', now.threads - before.threads);
        return {
          counts: {
            'files and mappings of the replaced index': replaced!.files + replaced!.mappings,
            'of the served one': `${first.files + first.mappings} → ${served!.files + served!.mappings}`,
            handles: `${before.handles} → ${now.handles}`,
            threads: `${before.threads} → ${now.threads}`,
            'resident MB': `${megabytes(before.rssBytes)} → ${megabytes(now.rssBytes)}`,
          },
          faults: faults.counts,
        };
      },
    });
  },
};

/** POST /v1/search, which tells its generation: the answer has to be that generation's, and that one has to be served then. */
function askGenerations(answers: ReadonlyMap<string, ReadonlyMap<string, Expected>>, generations: Generations): Asking {
  return (queries, k) => {
    const atFirst = generations.now;
    return {
      request: requestBytes({ queries, k }, '/v1/search'),
      faultOf(body) {
        const { index, results } = JSON.parse(body) as {
          index: { generation: string };
          results: { hits?: { id: unknown; score: number }[] }[];
        };
        const expected = answers.get(index.generation);
        if (expected === undefined) return 'a generation that there is not';
        if (![...atFirst, ...generations.now].includes(index.generation)) return 'a generation of before the request';
        return faultOfLists(
          results.map(({ hits }) => hits ?? []),
          queries,
          k,
          expected,
        );
      },
    };
  };
}

interface Held {
  readonly folders: readonly { readonly files: number; readonly mappings: number }[];
  readonly handles: number;
  readonly threads: number;
  readonly rssBytes: number;
  readonly draining: number;
}

/** What the process has open and mapped, below each folder. */
async function held(server: SoakServer, folders: readonly string[]): Promise<Held> {
  const { handles, threads, rssBytes } = await server.sample();
  const draining = metricOf(await server.metrics(), 'trawl_index_draining');
  const proc = `/proc/${server.pid}`;
  const maps = readFileSync(`${proc}/maps`, 'utf8').split('\n');
  const open = readdirSync(`${proc}/fd`).flatMap((fd) => {
    try {
      return [readlinkSync(`${proc}/fd/${fd}`)];
    } catch {
      // Closed since it was listed.
      return [];
    }
  });
  return {
    handles,
    threads,
    rssBytes,
    draining,
    folders: folders.map((folder) => {
      const real = `${realpathSync(folder)}/`;
      return {
        files: open.filter((path) => path.startsWith(real)).length,
        mappings: maps.filter((line) => line.includes(` ${real}`)).length,
      };
    }),
  };
}

async function drained(server: SoakServer): Promise<void> {
  const until = performance.now() + DRAIN_MS;
  while (metricOf(await server.metrics(), 'trawl_index_draining') !== 0 && performance.now() < until) await sleep(100);
  // Its threads end behind the last look at the files.
  await sleep(500);
}

/** Turns a link to another folder in one step. */
async function turn(link: string, to: string): Promise<void> {
  await rm(`${link}.new`, { force: true });
  await symlink(to, `${link}.new`);
  await rename(`${link}.new`, link);
}
