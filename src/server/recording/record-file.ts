import type { Stats } from 'node:fs';
import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises';
import { isNodeError, TrawlError } from '../../base/errors.ts';
import { COMPRESSED_SUFFIX, compressRotated, formsOf } from './compress-rotated.ts';
import { repairLastLine } from './repair-last-line.ts';

export interface RecordFileOptions {
  readonly path: string;
  /** Size at which the file is renamed to `path.1` (`path.1` to `path.2`, …) and a new one is started, in bytes. */
  readonly maxFileBytes: number;
  /** Number of renamed files to keep. */
  readonly keep: number;
  /** Whether renamed files are compressed, to `path.1.zst` and so on. Default: false. */
  readonly compress?: boolean;
  /** Called after another program removed the file and a new one was started. */
  readonly onRemoved?: () => void;
  /** Called after the unfinished last line of a killed server was cut off. */
  readonly onLineCut?: () => void;
  /** Called when the file could not be renamed, or no new one be made. It grows on, and is renamed after a further `maxFileBytes`. */
  readonly onRotationFailure?: (error: unknown) => void;
  /** Called when a renamed file could not be compressed; the next rotation tries again. */
  readonly onCompressionFailure?: (error: unknown) => void;
}

/** The lines contain users' queries: only the owner may read the file. */
const MODE = 0o600;

/**
 * A file of lines that is rotated by size. After another program renames or removes it, the next lines go to a new file at the
 * same path. Calls run one after another; renamed files are compressed beside them.
 *
 * A renamed file may be there plain and compressed after a kill. Both then have the same lines, and the plain one counts.
 */
export class RecordFile {
  readonly #options: RecordFileOptions;
  #file: FileHandle;
  /** False on a file system without link counts, where a removed file cannot be recognised. */
  readonly #countsLinks: boolean;
  /** Whether the open file may end with an unfinished line. */
  #mayBeUnfinished = true;
  #linesCut = 0;
  /** Size at the last rotation that failed, in bytes. */
  #notRotatedAt = 0;
  #last: Promise<unknown> = Promise.resolve();
  readonly #stop = new AbortController();
  /** Never rejects. */
  #compressing: Promise<void> = Promise.resolve();

  private constructor(options: RecordFileOptions, file: FileHandle, countsLinks: boolean) {
    this.#options = options;
    this.#file = file;
    this.#countsLinks = countsLinks;
  }

  /** Appends to an existing file. @throws TrawlError OUTPUT_NOT_WRITABLE. */
  static async open(options: RecordFileOptions): Promise<RecordFile> {
    const file = await openOrRefuse(options.path);
    const opened = new RecordFile(options, file, (await file.stat()).nlink > 0);
    // On a full disk this can fail. The server starts nevertheless, and the first lines try again.
    await opened.#repair().catch(() => undefined);
    return opened;
  }

  /**
   * Appends whole lines. Returns false when the file was removed during the write: the lines are lost, and the next ones go to
   * a new file.
   *
   * @throws the system's error; none of the lines are in the file then.
   */
  append(lines: string): Promise<boolean> {
    return this.#inOrder(async () => {
      await this.#followPath();
      await this.#repair();
      await this.#write(Buffer.from(lines));
      if (!this.#isRemoved(await this.#file.stat())) return true;
      await this.#followPath();
      return false;
    });
  }

  /** Opens the path again. @throws TrawlError OUTPUT_NOT_WRITABLE; the open file stays in use. */
  reopen(): Promise<void> {
    return this.#inOrder(async () => this.#replace(await openOrRefuse(this.#options.path)));
  }

  /** Stops a running compression, which leaves its file plain. */
  close(): Promise<void> {
    return this.#inOrder(async () => {
      this.#stop.abort();
      await this.#compressing;
      await this.#file.close().catch(() => undefined);
    });
  }

  /** Resolves when no file is being compressed. */
  async compressed(): Promise<void> {
    await this.#last;
    await this.#compressing;
  }

  /** Unfinished lines of a killed server that were cut off. */
  get linesCut(): number {
    return this.#linesCut;
  }

  #inOrder<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => undefined);
    return done;
  }

  #isRemoved({ nlink }: Stats): boolean {
    return this.#countsLinks && nlink === 0;
  }

  /** Opens the path again if it no longer names the open file. */
  async #followPath(): Promise<void> {
    const { path, onRemoved } = this.#options;
    const opened = await this.#file.stat();
    const named = await stat(path).catch(() => undefined);
    if (named?.ino === opened.ino && named.dev === opened.dev) return;
    const removed = this.#isRemoved(opened);
    try {
      await this.#replace(await open(path, 'a', MODE));
    } catch (error) {
      // The folder was renamed. The open file still exists and takes the lines.
      if (!removed) return;
      throw error;
    }
    if (removed) onRemoved?.();
  }

  async #replace(file: FileHandle): Promise<void> {
    await this.#file.close().catch(() => undefined);
    this.#file = file;
    this.#mayBeUnfinished = true;
    this.#notRotatedAt = 0;
  }

  async #repair(): Promise<void> {
    if (!this.#mayBeUnfinished) return;
    const cut = await repairLastLine(this.#file, this.#options.path);
    this.#mayBeUnfinished = false;
    if (!cut) return;
    this.#linesCut++;
    this.#options.onLineCut?.();
  }

  async #write(bytes: Buffer): Promise<void> {
    // Read before each write: log rotation with copytruncate shrinks the open file.
    let { size } = await this.#file.stat();
    if (size < this.#notRotatedAt) this.#notRotatedAt = 0;
    if (size > 0 && size + bytes.length > this.#notRotatedAt + this.#options.maxFileBytes) {
      if (await this.#rotate()) size = 0;
      else this.#notRotatedAt = size;
    }
    try {
      await this.#file.writeFile(bytes);
    } catch (error) {
      // A partial line would corrupt the next one.
      await this.#file.truncate(size).catch(() => {
        this.#mayBeUnfinished = true;
      });
      throw error;
    }
  }

  /** False if a file could not be renamed or no new one could be made; the open file then stays in use. */
  async #rotate(): Promise<boolean> {
    const { path, keep, compress = false, onRotationFailure } = this.#options;
    // The compression works on the names that are changed here.
    await this.#compressing;
    // Created before the renames: on a full disk, repeated rotations would lose all kept files.
    const next = `${path}.next`;
    let file: FileHandle | undefined;
    try {
      file = await open(next, 'w', MODE);
      for (let age = await oldestToRename(path, keep); age >= 1; age--)
        await shift(`${path}.${age}`, `${path}.${age + 1}`);
      if (keep > 0) await replaceBy(path, `${path}.1`);
      await rename(next, path);
    } catch (error) {
      await file?.close().catch(() => undefined);
      // Not the file of another program in its place.
      if (file !== undefined) await rm(next, { force: true }).catch(() => undefined);
      onRotationFailure?.(error);
      return false;
    }
    await this.#replace(file);
    this.#mayBeUnfinished = false;
    if (compress) this.#compressing = this.#compressAll();
    return true;
  }

  /** Compresses the renamed files that are not, the oldest first. */
  async #compressAll(): Promise<void> {
    const { path, keep, onCompressionFailure } = this.#options;
    try {
      for (let age = keep; age >= 1; age--) {
        const file = `${path}.${age}`;
        if ((await formsOf(file)).plain) await compressRotated(file, this.#stop.signal);
      }
    } catch (error) {
      if (!this.#stop.signal.aborted) onCompressionFailure?.(error);
    }
  }
}

async function openOrRefuse(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'a', MODE);
  } catch (cause) {
    throw new TrawlError(
      'OUTPUT_NOT_WRITABLE',
      `${path}: cannot be written (${(cause as Error).message}). Choose another path for --record.`,
      { cause },
    );
  }
}

/**
 * The oldest age to rename: the one before the first age without a file, else the one before the oldest that is kept. A rotation that
 * failed in between left such a gap, and renaming beyond it would lose the oldest file.
 */
async function oldestToRename(path: string, keep: number): Promise<number> {
  for (let age = 1; age < keep; age++) {
    const { plain, compressed } = await formsOf(`${path}.${age}`);
    if (!plain && !compressed) return age - 1;
  }
  return keep - 1;
}

/** Renames the plain or compressed file `from`, if there is one, to replace `to`. */
async function shift(from: string, to: string): Promise<void> {
  const { plain, compressed } = await formsOf(from);
  if (plain) {
    // Of two forms the plain one counts, so a kill in between loses nothing.
    if (compressed) await rm(`${from}${COMPRESSED_SUFFIX}`);
    await replaceBy(from, to);
  } else if (compressed) {
    // First, because the plain form of the older file would count.
    await rm(to, { force: true });
    await rename(`${from}${COMPRESSED_SUFFIX}`, `${to}${COMPRESSED_SUFFIX}`);
  }
}

/** Renames the plain file `from`, if it exists, to replace both forms of `to`. */
async function replaceBy(from: string, to: string): Promise<void> {
  try {
    await rename(from, to);
  } catch (error) {
    if (isNodeError(error) && error.code === 'ENOENT') return;
    throw error;
  }
  await rm(`${to}${COMPRESSED_SUFFIX}`, { force: true });
}
