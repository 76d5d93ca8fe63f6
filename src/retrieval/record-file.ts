import type { Stats } from 'node:fs';
import { type FileHandle, open, rename, stat } from 'node:fs/promises';
import { isNodeError, TrawlError } from '../errors.ts';

export interface RecordFileOptions {
  readonly path: string;
  /** Size at which the file is renamed to `path.1` (`path.1` to `path.2`, …) and a new one is started, in bytes. */
  readonly maxFileBytes: number;
  /** Number of renamed files to keep. */
  readonly keep: number;
  /** Called after another program removed the file and a new one was started. */
  readonly onRemoved?: () => void;
}

/** The lines contain users' queries: only the owner may read the file. */
const MODE = 0o600;

/**
 * A file of lines that is rotated by size. After another program renames or removes it, the next lines go to a new file at the
 * same path. Calls run one after another.
 */
export class RecordFile {
  readonly #options: RecordFileOptions;
  #file: FileHandle;
  /** False on a file system without link counts, where a removed file cannot be recognised. */
  readonly #countsLinks: boolean;
  #last: Promise<unknown> = Promise.resolve();

  private constructor(options: RecordFileOptions, file: FileHandle, countsLinks: boolean) {
    this.#options = options;
    this.#file = file;
    this.#countsLinks = countsLinks;
  }

  /** Appends to an existing file. @throws TrawlError OUTPUT_NOT_WRITABLE. */
  static async open(options: RecordFileOptions): Promise<RecordFile> {
    const file = await openOrRefuse(options.path);
    return new RecordFile(options, file, (await file.stat()).nlink > 0);
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

  close(): Promise<void> {
    return this.#inOrder(() => this.#file.close().catch(() => undefined));
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
  }

  async #write(bytes: Buffer): Promise<void> {
    // Read before each write: log rotation with copytruncate shrinks the open file.
    let { size } = await this.#file.stat();
    if (size > 0 && size + bytes.length > this.#options.maxFileBytes) {
      await this.#rotate();
      size = 0;
    }
    try {
      await this.#file.writeFile(bytes);
    } catch (error) {
      // A partial line would corrupt the next one.
      await this.#file.truncate(size).catch(() => undefined);
      throw error;
    }
  }

  async #rotate(): Promise<void> {
    const { path, keep } = this.#options;
    const nameOf = (age: number): string => (age === 0 ? path : `${path}.${age}`);
    // Created before the renames: on a full disk, repeated rotations would lose all kept files.
    const next = `${path}.next`;
    const file = await open(next, 'w', MODE);
    try {
      for (let age = keep - 1; age >= 0; age--) {
        await rename(nameOf(age), nameOf(age + 1)).catch((error: unknown) => {
          if (!isNodeError(error) || error.code !== 'ENOENT') throw error;
        });
      }
      await rename(next, path);
    } catch (error) {
      await file.close().catch(() => undefined);
      throw error;
    }
    await this.#replace(file);
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
