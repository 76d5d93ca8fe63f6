import { existsSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join, resolve, sep } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { syncFolder } from '../../src/base/system/durable-file.ts';
import type { LockMode } from '../../src/base/system/file-lock.ts';
import { writeFailure } from '../../src/base/system/write-failure.ts';
import { BUILD_FILE } from '../../src/index/manifest/build-records.ts';
import { INDEX_MANIFEST_FILE } from '../../src/index/manifest/index-manifest.ts';
import type { Build } from './build.ts';
import { BuildLock, clearFolder, LOCK_FILES, removeLockFiles } from './build-lock.ts';
import type { WorkFolder } from './keep-on-failure.ts';
import { moveAside, removeReplaced, replacedIndex, restoreReplaced } from './replaced-index.ts';

/** What `Build` says about the output, or a merge, which reads no files. */
type OutputOptions = Pick<Build, 'out' | 'overwrite'> & Partial<Pick<Build, 'files' | 'vectors'>>;

/**
 * The folder `<out>.partial`. An index is built there, and the folder is renamed to `<out>` once it is complete, so `<out>`
 * is always a complete index. A stopped build stays in `<out>.partial` and can be resumed.
 */
export class OutputFolder implements WorkFolder {
  /** Absolute path of `<out>`. */
  readonly final: string;
  /** Absolute path of `<out>.partial`. */
  readonly folder: string;
  #lock: BuildLock | undefined;

  private constructor(out: string) {
    this.final = resolve(out);
    this.folder = `${this.final}.partial`;
  }

  /**
   * Creates and locks the folder: `exclusive` for a build of the whole index, `shared` for one of several jobs.
   *
   * @throws TrawlError USAGE if a file that is read is in a folder that is removed, INDEX_EXISTS if `out` exists and must not
   * be replaced, BUILD_LOCKED while another process builds there, OUTPUT_NOT_WRITABLE or DISK_FULL if the folder cannot be
   * created.
   */
  static async prepare(
    { out, overwrite, files = [], vectors }: OutputOptions,
    mode: LockMode = 'exclusive',
  ): Promise<OutputFolder> {
    const output = new OutputFolder(out);
    checkOutside(output, [...files, ...(vectors?.set.files ?? [])]);
    try {
      await output.#recover();
      output.#checkReplaceable(overwrite);
      await makeFolder(output.folder);
      output.#lock = BuildLock.acquire(output.folder, mode);
      await syncFolder(dirname(output.folder));
    } catch (error) {
      output.release();
      throw writeFailure(error, output.final);
    }
    return output;
  }

  /**
   * Creates and locks the folder for a change of an index, which must exist. Follows a link to the index: new shards are moved
   * into it by rename, which needs the same file system.
   *
   * @throws TrawlError as `prepare`, but never USAGE or INDEX_EXISTS.
   */
  static prepareChange(index: string): Promise<OutputFolder> {
    return OutputFolder.prepare({ out: realpathSync(index), overwrite: true });
  }

  clear(): Promise<void> {
    return clearFolder(this.folder);
  }

  /** Renames the complete folder to `final`. A server that has the old index open keeps reading it. */
  async publish(): Promise<void> {
    await syncFolder(this.folder);
    if (existsSync(this.final)) await moveAside(this.final, this.folder);
    try {
      await rename(this.folder, this.final);
    } catch (error) {
      await restoreReplaced(this.final, this.folder);
      throw error;
    }
    await syncFolder(dirname(this.final));
    // Keep the lock until now, so that no other build uses the folder before it is renamed.
    removeWorkingFiles(this.final);
    this.release();
    await removeReplaced(this.final);
  }

  /** Unlocks the folder and keeps its files. May be called twice. */
  release(): void {
    this.#lock?.release();
    this.#lock = undefined;
  }

  async discard(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
    this.release();
  }

  /** Unlocks the folder, and removes it if it has only lock files. */
  async discardIfEmpty(): Promise<void> {
    this.release();
    try {
      if (readdirSync(this.folder).some((name) => !LOCK_FILES.includes(name))) return;
      this.#lock = BuildLock.acquire(this.folder, 'exclusive');
    } catch {
      return;
    }
    await this.discard();
  }

  #checkReplaceable(overwrite: boolean): void {
    if (!existsSync(this.final) || isEmptyFolder(this.final)) return;
    if (!existsSync(join(this.final, INDEX_MANIFEST_FILE))) {
      throw new TrawlError(
        'INDEX_EXISTS',
        `${this.final} already exists and is not an index. It is not replaced: choose another --out.`,
      );
    }
    if (overwrite) return;
    throw new TrawlError(
      'INDEX_EXISTS',
      `${this.final} already is an index. Choose another --out, update it with \`trawl index --update\`, or replace it with --overwrite.`,
    );
  }

  /** Completes or undoes a `publish` during which the process was killed. */
  async #recover(): Promise<void> {
    if (!existsSync(this.final) && replacedIndex(this.final, this.folder) !== undefined) {
      // Fails while another process is between the two renames of `publish`.
      const lock = BuildLock.acquire(this.folder, 'exclusive');
      try {
        await restoreReplaced(this.final, this.folder);
      } finally {
        lock.release();
      }
    }
    if (existsSync(join(this.final, INDEX_MANIFEST_FILE))) {
      removeWorkingFiles(this.final);
      await removeReplaced(this.final);
    }
  }
}

/** @throws TrawlError USAGE for a file in a folder that the build removes: the replaced index and `<out>.partial`. */
function checkOutside({ final }: OutputFolder, files: readonly { readonly path: string }[]): void {
  // If `out` is a link to an index, only the link is replaced, so do not follow it.
  const place = join(realOrItself(dirname(final)), basename(final));
  const folders = [`${place}.partial`];
  // A folder that is not an index is never replaced.
  if (existsSync(join(place, INDEX_MANIFEST_FILE))) folders.push(place);
  for (const { path } of files) {
    const file = realOrItself(resolve(path));
    const folder = folders.find((each) => file.startsWith(each + sep));
    if (folder === undefined) continue;
    throw new TrawlError(
      'USAGE',
      `${path} is an input of this build, but the build removes ${folder}. Choose another --out, or move the file.`,
      { details: { path, folder } },
    );
  }
}

function realOrItself(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/** Removes the files that a build needs and an index does not. */
function removeWorkingFiles(folder: string): void {
  rmSync(join(folder, BUILD_FILE), { force: true });
  removeLockFiles(folder);
}

/** Creates a folder and its parents. Node's `recursive` option loops forever under /proc, which cannot have new folders. */
export async function makeFolder(path: string): Promise<void> {
  const parent = dirname(path);
  if (!existsSync(parent)) await makeFolder(parent);
  await mkdir(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
}

function isEmptyFolder(path: string): boolean {
  try {
    return readdirSync(path).length === 0;
  } catch {
    return false;
  }
}
