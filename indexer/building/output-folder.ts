import { randomBytes } from 'node:crypto';
import { existsSync, lstatSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join, resolve, sep } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { syncFolder, writeJsonDurably } from '../../src/base/system/durable-file.ts';
import type { FileLock, LockMode } from '../../src/base/system/file-lock.ts';
import { writeFailure } from '../../src/base/system/write-failure.ts';
import { INDEX_MANIFEST_FILE } from '../../src/index/manifest/index-manifest.ts';
import { readIndexManifest } from '../../src/index/manifest/read-manifest.ts';
import type { Build } from './build.ts';
import { LOCK_FILES, lockBuild, removeWorkingFiles } from './build-lock.ts';
import type { WorkFolder } from './keep-on-failure.ts';

/** Contains the name of the replaced index's folder. The file is in the new index, before and after its rename. */
const REPLACED_FILE = 'replaced.json';

/** What the folder needs to know of a `Build`. A merge reads no files, so it has no `corpus` and no `vectors`. */
type OutputOptions = Pick<Build, 'out' | 'overwrite'> & Partial<Pick<Build, 'corpus' | 'vectors'>>;

/**
 * The folder `<out>.partial`. An index is built there, and the folder is renamed to `<out>` once it is complete, so `<out>`
 * is always a complete index. A stopped build stays in `<out>.partial` and can be resumed.
 */
export class OutputFolder implements WorkFolder {
  /** Absolute path of `<out>`. */
  readonly final: string;
  /** Absolute path of `<out>.partial`. */
  readonly folder: string;
  #lock: FileLock | undefined;

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
    { out, overwrite, corpus, vectors }: OutputOptions,
    mode: LockMode = 'exclusive',
  ): Promise<OutputFolder> {
    const output = new OutputFolder(out);
    checkOutside(output, [...(corpus?.files ?? []), ...(vectors?.set.files ?? [])]);
    try {
      await output.#recover();
      output.#checkReplaceable(overwrite);
      await makeFolder(output.folder);
      output.#lock = lockBuild(output.folder, mode);
      await syncFolder(dirname(output.folder));
    } catch (error) {
      output.release();
      throw writeFailure(error, output.final);
    }
    return output;
  }

  /**
   * Creates and locks the folder for a change of an index. Follows a link to the index: new shards are moved into it by rename,
   * which needs the same file system.
   *
   * @throws TrawlError as `prepare`, but never USAGE or INDEX_EXISTS; INDEX_NOT_FOUND.
   */
  static async prepareChange(index: string): Promise<OutputFolder> {
    readIndexManifest(index);
    return OutputFolder.prepare({ out: realpathSync(index), overwrite: true });
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
      this.#lock = lockBuild(this.folder, 'exclusive');
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
      const lock = lockBuild(this.folder, 'exclusive');
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

/**
 * Renames the index at `final`, so that the folder `next` can take its name. First records the new, random name in `next`:
 * only a folder named in a record is ever restored or removed.
 */
async function moveAside(final: string, next: string): Promise<void> {
  const name = `${basename(final)}.replaced-${randomBytes(8).toString('hex')}`;
  await writeJsonDurably(join(next, REPLACED_FILE), { format: 'trawl-replaced', version: 1, name });
  await rename(final, join(dirname(final), name));
}

/** Undoes `moveAside`, if the process failed or was killed before `next` was renamed to `final`. */
async function restoreReplaced(final: string, next: string): Promise<void> {
  const aside = replacedIndex(final, next);
  if (aside !== undefined && !existsSync(final)) await rename(aside, final);
}

/** Removes the index that the one at `final` replaced, and its record. If the old index was a link, removes only the link. */
async function removeReplaced(final: string): Promise<void> {
  const aside = replacedIndex(final, final);
  if (aside !== undefined) await rm(aside, { recursive: true, force: true });
  await rm(join(final, REPLACED_FILE), { force: true });
}

/** The folder that the record in `holder` names; undefined if there is no record, or no such folder. */
function replacedIndex(final: string, holder: string): string | undefined {
  let record: { readonly name?: unknown };
  try {
    record = JSON.parse(readFileSync(join(holder, REPLACED_FILE), 'utf8')) as { name?: unknown };
  } catch {
    return undefined;
  }
  const name = String(record?.name);
  const [prefix, suffix] = [`${basename(final)}.replaced-`, name.slice(-16)];
  if (name !== prefix + suffix || !/^[0-9a-f]{16}$/.test(suffix)) return undefined;
  const path = join(dirname(final), name);
  return lstatSync(path, { throwIfNoEntry: false }) === undefined ? undefined : path;
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
