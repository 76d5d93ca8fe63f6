import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  type Stats,
  statSync,
} from 'node:fs';
import { copyFile, rename, rm, rmdir, symlink } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { syncFolder } from '../../src/base/system/durable-file.ts';
import { FileLock } from '../../src/base/system/file-lock.ts';
import { writeFailure } from '../../src/base/system/write-failure.ts';
import type { IndexSnapshot } from '../../src/index/files/index-snapshot.ts';
import { INDEX_MANIFEST_FILE } from '../../src/index/manifest/index-manifest.ts';
import { lockBuild } from '../building/build-lock.ts';
import { CopyJournal } from './copy-journal.ts';

const STAGING = '.partial';
const LOCK_FILE = 'sync.lock';
/** Name of an index that was not a copy and was moved among the copies. */
const ORIGINAL = 'original';
/** Names that a copy gets. Whatever else a user keeps beside the copies is left alone. */
const COPY_NAME = /^[0-9a-f]{32}(-\d+)?$/;
const STAGING_NAME = /^[0-9a-f]{32}\.partial$/;
const ORIGINAL_NAME = /^original(-\d+)?$/;
const JOURNAL_NAME = /^([0-9a-f]{32}(?:-\d+|\.partial)?|original(?:-\d+)?)\.jsonl$/;

/**
 * Where a copy is: `DST` is a symbolic link to a folder in `DST.copies`, one for each copied state of the index. A new copy is made
 * beside the others and the link replaced by a rename, so that whoever opens `DST` finds one whole state or the other. Servers follow
 * the link when they reload or restart.
 */
export class CopiesFolder {
  readonly destination: string;
  readonly root: string;

  /** @throws TrawlError INDEX_EXISTS if something else is at the destination or in the place of its copies. */
  constructor(destination: string) {
    this.destination = resolve(destination);
    this.root = `${this.destination}.copies`;
    const root = statsOf(this.root);
    if (root !== undefined && !isEmptyFolder(this.root, root) && !existsSync(join(this.root, LOCK_FILE))) {
      throw new TrawlError(
        'INDEX_EXISTS',
        `${this.root} exists, and \`trawl sync\` did not make it (it has no ${LOCK_FILE}). Move it away, or choose another destination.`,
      );
    }
    const stats = statsOf(this.destination);
    if (stats === undefined || this.#pointsHere(stats) || this.isIndex() || isEmptyFolder(this.destination, stats)) {
      return;
    }
    const what = stats.isSymbolicLink()
      ? `a symbolic link to ${readlinkSync(this.destination)}, which \`trawl sync\` did not make`
      : stats.isDirectory()
        ? 'a folder with other files'
        : 'a file';
    throw new TrawlError(
      'INDEX_EXISTS',
      `${this.destination} is ${what}. Expected nothing, an empty folder, an index or an earlier copy.`,
    );
  }

  /** Locks the destination; the lock ends with the process. @throws TrawlError DOWNLOAD_LOCKED, BUILD_LOCKED, OUTPUT_NOT_WRITABLE. */
  lock(): { release(): void } {
    const building = `${this.destination}${STAGING}`;
    const build = existsSync(building) ? lockBuild(building, 'shared') : undefined;
    try {
      mkdirSync(this.root, { recursive: true });
      const lock = FileLock.acquire(join(this.root, LOCK_FILE), 'exclusive');
      if (lock === undefined) {
        throw new TrawlError(
          'DOWNLOAD_LOCKED',
          `Another \`trawl sync\` is copying to ${this.destination}. Wait for it or stop it.`,
        );
      }
      return {
        release: () => {
          lock.release();
          build?.release();
        },
      };
    } catch (error) {
      build?.release();
      throw writeFailure(error, this.root);
    }
  }

  /** Whether the destination is an index itself, not a link to a copy. */
  isIndex(): boolean {
    return statsOf(this.destination)?.isDirectory() === true && existsSync(join(this.destination, INDEX_MANIFEST_FILE));
  }

  current(): string | undefined {
    const stats = statsOf(this.destination);
    return stats !== undefined && this.#pointsHere(stats) ? basename(readlinkSync(this.destination)) : undefined;
  }

  folderOf(name: string): string {
    return join(this.root, name);
  }

  /** Complete copies, the newest first. */
  copies(): string[] {
    return this.#folders()
      .filter((name) => COPY_NAME.test(name) || ORIGINAL_NAME.test(name))
      .sort((a, b) => this.#madeAt(b) - this.#madeAt(a));
  }

  unfinished(): string[] {
    return this.#folders().filter((name) => STAGING_NAME.test(name));
  }

  staging(id: string): string {
    return `${id}${STAGING}`;
  }

  journal(name: string): CopyJournal {
    return new CopyJournal(join(this.root, `${name}.jsonl`), this.folderOf(name));
  }

  /** Whether a copy has these manifests: a change in place, such as by `trawl remove`, gives it others. */
  has(name: string, { texts }: IndexSnapshot): boolean {
    try {
      return [...texts].every(([path, text]) => readFileSync(join(this.folderOf(name), path)).equals(text));
    } catch {
      return false;
    }
  }

  /** Makes an unfinished copy, whose files are all on the disk, a complete one. Returns its name. */
  async complete(id: string): Promise<string> {
    const staging = this.staging(id);
    const name = this.#freeName(id);
    // The journal has both names for a moment, so that a kill does not part it from the folder.
    const journals = [join(this.root, `${staging}.jsonl`), join(this.root, `${name}.jsonl`)] as const;
    await copyFile(...journals);
    await rename(this.folderOf(staging), this.folderOf(name));
    await rm(journals[0], { force: true });
    await syncFolder(this.root);
    return name;
  }

  /** Points the destination to a copy. Moves an index that is there itself among the copies first. */
  async pointTo(name: string): Promise<void> {
    const { destination } = this;
    try {
      const stats = statsOf(destination);
      if (stats?.isDirectory() === true) {
        if (this.isIndex()) await rename(destination, this.folderOf(this.#freeName(ORIGINAL)));
        else await rmdir(destination);
      }
      const link = join(this.root, 'link.tmp');
      await rm(link, { force: true });
      // Relative, so that the folder above may be mounted elsewhere.
      await symlink(join(basename(this.root), name), link);
      await rename(link, destination);
      await syncFolder(dirname(destination));
    } catch (error) {
      throw writeFailure(error, destination);
    }
  }

  /**
   * Removes all but the current copy and the newest others, but never what was not copied here, nor `source`. Returns the names of
   * complete copies that it removed.
   */
  async prune(keep: number, source: string | undefined): Promise<string[]> {
    const current = this.current();
    const old = this.copies()
      .filter((name) => name !== current && this.mayDiscard(name, source))
      .slice(keep - 1);
    for (const name of [...old, ...this.unfinished()]) await this.discard(name);
    const known = new Set(this.#folders());
    for (const file of readdirSync(this.root)) {
      const [, name] = JOURNAL_NAME.exec(file) ?? [];
      if (name !== undefined && !known.has(name)) await rm(join(this.root, file), { force: true });
    }
    return old;
  }

  /** Whether it was copied here and is not the source of the running copy. */
  mayDiscard(name: string, source: string | undefined): boolean {
    return COPY_NAME.test(name) && (source === undefined || realpathSync(this.folderOf(name)) !== source);
  }

  async discard(name: string): Promise<void> {
    // The manifest goes first, so that nobody opens half an index.
    await rm(join(this.folderOf(name), INDEX_MANIFEST_FILE), { force: true });
    await rm(this.folderOf(name), { recursive: true, force: true });
    await rm(join(this.root, `${name}.jsonl`), { force: true });
  }

  #folders(): string[] {
    if (!existsSync(this.root)) return [];
    return readdirSync(this.root, { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() ? [entry.name] : [],
    );
  }

  #madeAt(name: string): number {
    return statSync(join(this.folderOf(name), INDEX_MANIFEST_FILE), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  }

  #freeName(id: string): string {
    for (let i = 1; ; i++) {
      const name = i === 1 ? id : `${id}-${i}`;
      if (!existsSync(this.folderOf(name))) return name;
    }
  }

  #pointsHere(stats: Stats): boolean {
    if (!stats.isSymbolicLink()) return false;
    const target = readlinkSync(this.destination);
    return resolve(dirname(this.destination), dirname(target)) === this.root;
  }
}

function statsOf(path: string): Stats | undefined {
  return lstatSync(path, { throwIfNoEntry: false });
}

function isEmptyFolder(path: string, stats: Stats): boolean {
  return stats.isDirectory() && readdirSync(path).length === 0;
}
