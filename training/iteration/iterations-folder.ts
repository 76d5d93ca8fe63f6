import { existsSync, lstatSync, mkdirSync, readdirSync, readlinkSync, realpathSync } from 'node:fs';
import { rename, rm, symlink } from 'node:fs/promises';
import { isAbsolute, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isNodeError, TrawlError, usageError } from '../../src/base/errors.ts';
import { syncFolder } from '../../src/base/system/durable-file.ts';
import { FileLock } from '../../src/base/system/file-lock.ts';
import { INDEX_MANIFEST_FILE } from '../../src/index/manifest/index-manifest.ts';
import { readIndexManifest } from '../../src/index/manifest/read-manifest.ts';
import { type History, type PublishedIteration, readHistory, readJournal, writeHistory } from './records.ts';

/** How long a command waits for another one that changes what is served. */
const PUBLISH_WAIT_MS = 10_000;

/**
 * The folder of the iterations (`--root`):
 *
 * - `current`: a link to the index that is served. Servers are started with this path; nothing else names what is served.
 * - `iterations/0001/model`, `iterations/0001/index`: an iteration.
 * - `iterations.json`: the iterations that were published; `iteration.json`: the unfinished one.
 */
export class IterationsFolder {
  /** Absolute. */
  readonly root: string;

  private constructor(root: string) {
    this.root = root;
  }

  /** @throws TrawlError INDEX_NOT_FOUND if it has no iterations. */
  static open(path: string): IterationsFolder {
    const folder = new IterationsFolder(resolve(path));
    if (readHistory(folder.root) !== undefined) return folder;
    throw new TrawlError(
      'INDEX_NOT_FOUND',
      `${folder.root} has no iterations. Begin with the index that is served now: trawl iterate CHECKPOINT --root ${path} --from INDEX.`,
      { details: { folder: folder.root } },
    );
  }

  /**
   * Opens the folder, or begins it with the index `from`, which becomes iteration 0 and is left where it is.
   *
   * @param from also the new place of that index, if it was moved.
   * @throws TrawlError INDEX_NOT_FOUND without `from`, USAGE if the folder began with another index, CONFIG_INVALID if it has files that
   * are not of a loop, or if `current` is lost and an iteration was published; errors of the manifest.
   */
  static async begin(path: string, from: string | undefined): Promise<IterationsFolder> {
    const folder = new IterationsFolder(resolve(path));
    if (from === undefined) return IterationsFolder.open(path);
    const index = withoutLink(resolve(from));
    const history = readHistory(folder.root);
    const first = history?.iterations.find(({ number }) => number === 0);
    if (first !== undefined && first.index !== index) await folder.#moveFirst(first, index);
    if (first === undefined) {
      const { generation, model } = readIndexManifest(index);
      const parent = join(folder.root, 'iterations');
      mkdirSync(parent, { recursive: true });
      // Folders in it would be taken for iterations, or be removed.
      if (readdirSync(parent).length > 0) {
        throw new TrawlError(
          'CONFIG_INVALID',
          `${parent} is not empty, but ${folder.root} has no iterations.json: trawl iterate did not make these files, or its record ` +
            'is lost. Choose another --root, or restore iterations.json from a copy.',
        );
      }
      await writeHistory(folder.root, {
        format: 'trawl-iterations',
        version: 1,
        next: 1,
        iterations: [
          {
            number: 0,
            index,
            generation,
            model: model?.name ?? null,
            inputs: null,
            base: null,
            measures: null,
            publishedAt: null,
            kept: true,
          },
        ],
      });
    }
    // Also if the process was killed before it made the link. A link that was lost later may have led to any iteration.
    if (!lstatSync(folder.link, { throwIfNoEntry: false }) && folder.history.iterations.length === 1)
      await folder.pointTo(folder.iteration(0));
    return folder;
  }

  async #moveFirst(first: PublishedIteration, index: string): Promise<void> {
    const isGone = !existsSync(join(first.index, INDEX_MANIFEST_FILE));
    if (!isGone || readIndexManifest(index).generation !== first.generation) {
      throw usageError(
        `${this.root} began with ${first.index}, not with ${index}` +
          (isGone ? ', which has another generation. Move the index back, or omit --from.' : '. Omit --from.'),
      );
    }
    const isCurrent = linkTarget(this.link) === first.index;
    const { history } = this;
    const moved = { ...first, index };
    await writeHistory(this.root, {
      ...history,
      iterations: history.iterations.map((iteration) => (iteration.number === 0 ? moved : iteration)),
    });
    if (isCurrent) await this.pointTo(moved);
  }

  get link(): string {
    return join(this.root, 'current');
  }

  get history(): History {
    return readHistory(this.root)!;
  }

  /** Absolute folder of an iteration: `model`, `index`, and `triage` with the vectors of its trial. */
  folderOf(number: number): string {
    return join(this.root, relativeFolder(number));
  }

  /** Folder of an iteration's index, as `iterations.json` has it. */
  relativeIndexOf(number: number): string {
    return join(relativeFolder(number), 'index');
  }

  indexOf({ index }: Pick<PublishedIteration, 'index'>): string {
    return isAbsolute(index) ? index : join(this.root, index);
  }

  /** The iterations that were published, with their present generations. */
  get iterations(): PublishedIteration[] {
    return this.history.iterations.map((iteration) => this.#withGeneration(iteration));
  }

  /** With its present generation. @throws TrawlError USAGE if it was not published or is not kept; INDEX_NOT_FOUND if its files are gone. */
  iteration(number: number): PublishedIteration {
    const { iterations } = this.history;
    const found = iterations.find((iteration) => iteration.number === number);
    if (found?.kept === true) {
      if (existsSync(join(this.indexOf(found), INDEX_MANIFEST_FILE))) return this.#withGeneration(found);
      throw new TrawlError(
        'INDEX_NOT_FOUND',
        `The index of iteration ${number} is not in ${this.indexOf(found)} any more. ` +
          (number === 0
            ? `If it was moved, name its new place: trawl iterate CHECKPOINT --root ${this.root} --from INDEX.`
            : 'Move it back, or restore it.'),
        { details: { number, folder: this.indexOf(found) } },
      );
    }
    const kept = iterations.filter((iteration) => iteration.kept).map((iteration) => iteration.number);
    throw usageError(
      `${this.root} has no index of iteration ${number}${found === undefined ? '' : ' any more'}. It has ${kept.join(', ')}.`,
    );
  }

  /** The iteration that `current` points to, with its present generation. @throws TrawlError CONFIG_INVALID if it points elsewhere. */
  current(): PublishedIteration {
    const target = linkTarget(this.link);
    const found = this.history.iterations.find(
      (iteration) => target !== undefined && this.indexOf(iteration) === resolve(this.root, target),
    );
    if (found !== undefined) return this.#withGeneration(found);
    if (target !== undefined) throw this.#badLink(`points to ${target}, which is not an iteration of this folder`);
    throw this.#badLink(isOtherFile(this.link) ? NO_LINK : 'does not exist');
  }

  #badLink(problem: string): TrawlError {
    return new TrawlError(
      'CONFIG_INVALID',
      `${this.link} ${problem}. Choose what is served: trawl iterate --back --to NUMBER --root ${this.root}.`,
    );
  }

  /**
   * The generation of a complete index, which `trawl index --update`, `trawl remove` and a compaction change in place. Undefined if its
   * manifest cannot be read: leaving a broken index must stay possible.
   */
  generationOf(index: string): string | undefined {
    try {
      return readIndexManifest(index).generation;
    } catch (error) {
      if (error instanceof TrawlError) return undefined;
      throw error;
    }
  }

  #withGeneration(iteration: PublishedIteration): PublishedIteration {
    if (!iteration.kept) return iteration;
    return { ...iteration, generation: this.generationOf(this.indexOf(iteration)) ?? iteration.generation };
  }

  /** Makes `current` point to an iteration: one rename, on the disk when this resolves. */
  async pointTo({ index }: Pick<PublishedIteration, 'index'>): Promise<void> {
    if (isOtherFile(this.link)) throw this.#badLink(NO_LINK);
    const next = `${this.link}.next`;
    await rm(next, { force: true });
    await symlink(index, next);
    await rename(next, this.link);
    await syncFolder(this.root);
  }

  /** Reserves the unfinished iteration for this process. */
  lockIteration(): FileLock {
    return lock(join(this.root, 'iteration.lock')) ?? fail(`Another trawl iterate works in ${this.root}.`);
  }

  /**
   * Reserves what is served. Going back is possible while an iteration is built, so this is not the lock of the iteration. Waits up to
   * ten seconds.
   */
  async lockPublishing(): Promise<FileLock> {
    for (const end = performance.now() + PUBLISH_WAIT_MS; ; await sleep(50)) {
      const taken = lock(join(this.root, 'publish.lock'));
      if (taken !== undefined) return taken;
      if (performance.now() > end) return fail(`Another trawl iterate changes what ${this.root} serves.`);
    }
  }
}

function relativeFolder(number: number): string {
  return join('iterations', String(number).padStart(4, '0'));
}

function linkTarget(link: string): string | undefined {
  try {
    return readlinkSync(link);
  } catch (error) {
    if (isNodeError(error) && (error.code === 'ENOENT' || error.code === 'EINVAL')) return undefined;
    throw error;
  }
}

const NO_LINK = 'is not a link: trawl iterate did not make it. Move it away';

function isOtherFile(link: string): boolean {
  return lstatSync(link, { throwIfNoEntry: false })?.isSymbolicLink() === false;
}

/** A link may be changed later; the index that it points to now is meant. */
function withoutLink(path: string): string {
  const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
  return isLink ? realpathSync(path) : path;
}

function lock(path: string): FileLock | undefined {
  return FileLock.acquire(path, 'exclusive');
}

function fail(problem: string): never {
  throw new TrawlError('BUILD_LOCKED', `${problem} Wait until it has finished, or stop it.`);
}

/**
 * Removes the files of all iterations but `keep`: the one that is served, the one that was served before it, the one that somebody went
 * back from, the one that an unfinished iteration is compared with, then the newest ones. The first four stay even if `keep` is smaller.
 * Also removes what discarded iterations left. The index that the loop began with is never removed. The caller holds the lock of
 * publishing.
 *
 * @param keep at least 2.
 * @returns the numbers of the removed iterations.
 */
export async function pruneIterations(folder: IterationsFolder, keep: number): Promise<number[]> {
  const { history } = folder;
  const current = folder.current();
  const own = history.iterations.filter(({ kept, number }) => kept && number > 0).map(({ number }) => number);
  const inUse = [current.number, current.base, history.left, readJournal(folder.root)?.base];
  const kept = new Set(inUse.filter((number) => typeof number === 'number'));
  for (const number of own.toReversed()) if (kept.size < keep) kept.add(number);
  const removed = own.filter((number) => !kept.has(number));
  if (removed.length > 0) {
    // First the record, so that a killed run leaves a folder that nobody uses, not an iteration without files.
    await writeHistory(folder.root, {
      ...history,
      iterations: history.iterations.map((iteration) =>
        removed.includes(iteration.number) ? { ...iteration, kept: false } : iteration,
      ),
    });
  }
  await removeUnknownFolders(folder);
  return removed;
}

/** Removes folders of iterations that are neither kept nor unfinished. A number that was never given is somebody else's folder. */
export async function removeUnknownFolders(folder: IterationsFolder): Promise<void> {
  const { next, iterations } = folder.history;
  const known = new Set(iterations.filter(({ kept }) => kept).map(({ number }) => number));
  const unfinished = readJournal(folder.root)?.number;
  if (unfinished !== undefined) known.add(unfinished);
  const parent = join(folder.root, 'iterations');
  const names = existsSync(parent) ? readdirSync(parent) : [];
  for (const name of names) {
    if (/^\d{4,}$/.test(name) && Number(name) < next && !known.has(Number(name)))
      await rm(join(parent, name), { recursive: true, force: true });
  }
}
