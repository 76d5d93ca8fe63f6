import { readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { rename, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Expected, expectedAnswers, faultOfLists, generationOf, soakQueries } from '../soak/expected-answers.ts';
import { type MakeRequest, requestBytes } from '../soak/good-client.ts';
import { metricOf, type SoakServer } from '../soak/soak-server.ts';
import { Faults, megabytes, post, type Trial, underLoad } from './trial.ts';

const QUERIES = 400;
const EVERY_MS = 1_000;
/** Longest wait for the last request on an old generation. */
const DRAIN_MS = 10_000;

/** The generations that may answer now, according to the reloads that the trial requested. */
class Generations {
  /** The current generation; during a reload also the next one. */
  readonly serving = new Set<string>();

  /** A copy of `serving`. */
  get now(): string[] {
    return [...this.serving];
  }
}

/** Points a link at one index and then at the other, again and again, and reloads the server each time. */
export const indexSwaps: Trial = {
  name: 'the index swapped every second under load',
  async run(options) {
    const link = join(options.folder, 'swapped');
    await pointLink(link, options.index);
    const queries = await soakQueries(QUERIES);
    const folders = [options.index, options.otherIndex];
    const ids = await Promise.all(folders.map(generationOf));
    const answers = new Map<string, ReadonlyMap<string, Expected>>();
    for (const [i, folder] of folders.entries()) answers.set(ids[i]!, await expectedAnswers(folder, queries));
    const generations = new Generations();
    generations.serving.add(ids[0]!);
    const swaps = { done: 0, slowestMs: 0 };
    let before: Resources;
    return underLoad(link, options, {
      queries,
      makeRequest: searchRequests(answers, generations),
      async during(server, stopped) {
        const faults = new Faults();
        before = await resourcesOf(server, folders);
        // An even number of swaps, so that the first index is served at the end.
        for (let next = 1; !stopped() || next === 0; next = 1 - next) {
          const begun = performance.now();
          await pointLink(link, folders[next]!);
          generations.serving.add(ids[next]!);
          const { status, text } = await post(`${server.url}/admin/indexes/swapped/reload`);
          generations.serving.delete(ids[1 - next]!);
          if (status !== 200) faults.add(`a reload was answered with ${status} ${text}`);
          else if ((JSON.parse(text) as { generation: string }).generation !== ids[next]) {
            faults.add('a reload returned the wrong generation');
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
        const now = await resourcesOf(server, folders);
        if (now.draining !== 0) faults.add('generations still draining', now.draining);
        const [served, replaced] = now.folders;
        if (replaced!.files + replaced!.mappings > 0) faults.add('files or mappings of the index that was replaced');
        // A new passage reader opens one more file; leaked generations would add files with every swap.
        const first = before.folders[0]!;
        if (served!.files > 4 * first.files || served!.mappings > 4 * first.mappings)
          faults.add('old generations still open');
        if (now.threads > before.threads + 8) faults.add('more threads', now.threads - before.threads);
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

/** Requests to POST /v1/search. The answer names its generation, which must be a served one; the hits must be its hits. */
function searchRequests(
  answers: ReadonlyMap<string, ReadonlyMap<string, Expected>>,
  generations: Generations,
): MakeRequest {
  return (queries, k) => {
    const servedBefore = generations.now;
    return {
      request: requestBytes({ queries, k }, '/v1/search'),
      faultOf(body) {
        const { index, results } = JSON.parse(body) as {
          index: { generation: string };
          results: { hits?: { id: unknown; score: number }[] }[];
        };
        const expected = answers.get(index.generation);
        if (expected === undefined) return 'an unknown generation';
        if (![...servedBefore, ...generations.now].includes(index.generation))
          return 'a generation that was no longer served';
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

interface Resources {
  readonly folders: readonly { readonly files: number; readonly mappings: number }[];
  readonly handles: number;
  readonly threads: number;
  readonly rssBytes: number;
  readonly draining: number;
}

/** The resources of the process, with the files that it has open and mapped in each folder. */
async function resourcesOf(server: SoakServer, folders: readonly string[]): Promise<Resources> {
  const { handles, threads, rssBytes } = await server.sample();
  const draining = metricOf(await server.metrics(), 'trawl_index_draining');
  const proc = `/proc/${server.pid}`;
  const maps = readFileSync(`${proc}/maps`, 'utf8').split('\n');
  const open = readdirSync(`${proc}/fd`).flatMap((fd) => {
    try {
      return [readlinkSync(`${proc}/fd/${fd}`)];
    } catch {
      // It was closed after the folder was read.
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

/** Waits until the server has closed the old generations. */
async function drained(server: SoakServer): Promise<void> {
  const until = performance.now() + DRAIN_MS;
  while (metricOf(await server.metrics(), 'trawl_index_draining') !== 0 && performance.now() < until) await sleep(100);
  // The threads of a generation end after it stops counting as draining.
  await sleep(500);
}

/** Points a link at another folder, atomically. */
async function pointLink(link: string, to: string): Promise<void> {
  await rm(`${link}.new`, { force: true });
  await symlink(to, `${link}.new`);
  await rename(`${link}.new`, link);
}
