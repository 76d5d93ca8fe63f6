import { existsSync, readdirSync, rmSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { TrawlError } from '../../src/errors.ts';
import type { LockMode } from '../../src/file-lock.ts';
import { BUILD_FILE } from '../../src/manifest/build-records.ts';
import { INDEX_MANIFEST_FILE } from '../../src/manifest/index-manifest.ts';
import { syncFolder } from '../../src/manifest/write-json.ts';
import { BuildLock, LOCK_FILES, removeLockFiles } from './build-lock.ts';
import { writeFailure } from '../write-failure.ts';

/**
 * Where an index is made: everything goes to `<out>.partial`, which takes the place of `<out>` by rename when it is
 * whole. So what stands at `<out>` is always a complete index: the old one until the last moment, then the new one. What
 * a build that was stopped has done stays in `<out>.partial`, for the next to go on with.
 */
export class OutputFolder {
  readonly final: string;
  readonly partial: string;
  readonly #replaced: string;
  #lock: BuildLock | undefined;

  private constructor(out: string) {
    this.final = resolve(out);
    this.partial = `${this.final}.partial`;
    this.#replaced = `${this.final}.replaced`;
  }

  /**
   * Takes the folder for this process: `exclusive` for a build of the whole, `shared` for one of several jobs.
   *
   * @throws TrawlError INDEX_EXISTS when something stands at `out` that may not be replaced, BUILD_LOCKED when another
   * process builds there, OUTPUT_NOT_WRITABLE or DISK_FULL when no folder can be made there.
   */
  static async prepare(out: string, overwrite: boolean, mode: LockMode = 'exclusive'): Promise<OutputFolder> {
    const folder = new OutputFolder(out);
    try {
      await folder.#recover();
      folder.#checkReplaceable(overwrite);
      await makeFolder(folder.partial);
      folder.#lock = BuildLock.acquire(folder.partial, mode);
      await syncFolder(dirname(folder.partial));
    } catch (error) {
      folder.release();
      throw writeFailure(error, folder.final);
    }
    return folder;
  }

  /** Removes everything that was begun; the folder stays taken. */
  async clear(): Promise<void> {
    for (const name of readdirSync(this.partial)) {
      if (!LOCK_FILES.includes(name)) await rm(join(this.partial, name), { recursive: true, force: true });
    }
  }

  /** Puts the finished folder in its place. A server that has the old index open keeps reading it. */
  async publish(): Promise<void> {
    await syncFolder(this.partial);
    await this.#removeReplaced();
    if (existsSync(this.final)) await rename(this.final, this.#replaced);
    try {
      await rename(this.partial, this.final);
    } catch (error) {
      await this.#recover();
      throw error;
    }
    await syncFolder(dirname(this.final));
    // Held until here, so that no other build finds the folder before it is renamed.
    removeWorkingFiles(this.final);
    this.release();
    await this.#removeReplaced();
  }

  /** The old index, put aside. Its manifest goes last: by it what a process that died has left is known. */
  async #removeReplaced(): Promise<void> {
    if (!existsSync(join(this.#replaced, INDEX_MANIFEST_FILE))) return;
    for (const name of readdirSync(this.#replaced)) {
      if (name !== INDEX_MANIFEST_FILE) await rm(join(this.#replaced, name), { recursive: true, force: true });
    }
    await rm(this.#replaced, { recursive: true, force: true });
  }

  /** Ends without removing anything. Safe to call twice. */
  release(): void {
    this.#lock?.release();
    this.#lock = undefined;
  }

  /** Removes what was begun, and ends. */
  async discard(): Promise<void> {
    await rm(this.partial, { recursive: true, force: true });
    this.release();
  }

  /** Ends, and removes the folder where no job has anything in it. */
  async discardIfEmpty(): Promise<void> {
    this.release();
    try {
      if (readdirSync(this.partial).some((name) => !LOCK_FILES.includes(name))) return;
      this.#lock = BuildLock.acquire(this.partial, 'exclusive');
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
        `${this.final} exists and is no index; it is left alone. Choose another --out.`,
      );
    }
    if (overwrite && existsSync(this.#replaced) && !existsSync(join(this.#replaced, INDEX_MANIFEST_FILE))) {
      throw new TrawlError(
        'INDEX_EXISTS',
        `${this.#replaced} exists and is no index; the old index would be put aside there. Move it away.`,
      );
    }
    if (overwrite) return;
    throw new TrawlError(
      'INDEX_EXISTS',
      `${this.final} already holds an index. Choose another --out, change it by \`trawl index --update\`, or replace it with --overwrite.`,
    );
  }

  /** A process that died while it published left the old index under another name, or its lock in the new one. */
  async #recover(): Promise<void> {
    if (!existsSync(this.final) && existsSync(join(this.#replaced, INDEX_MANIFEST_FILE))) {
      await rename(this.#replaced, this.final);
    }
    if (existsSync(join(this.final, INDEX_MANIFEST_FILE))) {
      removeWorkingFiles(this.final);
      await this.#removeReplaced();
    }
  }
}

/** What a build in the folder needed and an index does not. */
function removeWorkingFiles(folder: string): void {
  rmSync(join(folder, BUILD_FILE), { force: true });
  removeLockFiles(folder);
}

/** With its parents. Node's own `recursive` never ends where a parent exists and takes no folders, such as /proc. */
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
