import { existsSync } from 'node:fs';
import { type FileHandle, open, readFile, rename, rm } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { isNodeError, TrawlError } from '../src/errors.ts';
import { syncFolder, writeJsonDurably } from '../src/system/durable-file.ts';
import { FileLock } from '../src/system/file-lock.ts';
import { writeFailure } from '../src/system/write-failure.ts';

/** What the progress file has. */
interface Progress {
  /** What the file is made from and how. A file made otherwise is not resumed. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** Bytes of the partial file that are complete and on the disk. */
  readonly bytes: number;
  /** The writer's own state after these bytes. */
  readonly state: unknown;
}

/**
 * A text file that a later process resumes after its writer was killed. The text goes to `<path>.partial`; `checkpoint` syncs it and
 * notes in `<path>.progress.json` how far it is; `publish` renames it to `path`. Of two processes, the second is refused.
 */
export class ResumableFile {
  readonly #path: string;
  readonly #settings: Progress['settings'];
  readonly #lock: FileLock;
  readonly #file: FileHandle;
  #bytes: number;
  /** The state at the last checkpoint of the killed process; undefined for a new file. */
  readonly resumedState: unknown;

  private constructor(path: string, settings: Progress['settings'], lock: FileLock, file: FileHandle, from?: Progress) {
    this.#path = path;
    this.#settings = settings;
    this.#lock = lock;
    this.#file = file;
    this.#bytes = from?.bytes ?? 0;
    this.resumedState = from?.state;
  }

  /**
   * Begins a file, or resumes it at its last checkpoint.
   *
   * @throws TrawlError OUTPUT_EXISTS if `path` exists and `overwrite` is false, or another process is writing it; BUILD_DIFFERS if the
   * killed process had other settings; OUTPUT_NOT_WRITABLE, DISK_FULL.
   */
  static async open(
    path: string,
    { settings, overwrite }: { settings: Progress['settings']; overwrite: boolean },
  ): Promise<ResumableFile> {
    const final = resolve(path);
    if (existsSync(final) && !overwrite) {
      throw new TrawlError(
        'OUTPUT_EXISTS',
        `${final} already exists. Choose another path, or replace it with --overwrite.`,
      );
    }
    const lock = acquire(final);
    try {
      // Without the partial file there is nothing to resume: a crash came between the steps of `publish`. Its progress is not that of
      // the file that begins here.
      if (!existsSync(`${final}.partial`)) await rm(progressPath(final), { force: true });
      const progress = await readProgress(final);
      if (progress !== undefined) checkSettings(final, progress.settings, settings);
      const file = await open(`${final}.partial`, progress === undefined ? 'w' : 'r+');
      const { size } = await file.stat();
      if (size < (progress?.bytes ?? 0)) {
        await file.close();
        throw startAgain(
          final,
          `${final}.partial has ${size} bytes, fewer than the ${progress!.bytes} of its checkpoint`,
        );
      }
      // What follows the checkpoint is written again.
      await file.truncate(progress?.bytes ?? 0);
      return new ResumableFile(final, settings, lock, file, progress);
    } catch (error) {
      lock.release();
      throw writeFailure(error, final);
    }
  }

  /** Appends a text. It may be lost until the next checkpoint. */
  async write(text: string): Promise<void> {
    const bytes = Buffer.from(text);
    try {
      for (let start = 0; start < bytes.length; ) {
        start += (await this.#file.write(bytes, start, bytes.length - start, this.#bytes + start)).bytesWritten;
      }
    } catch (error) {
      throw writeFailure(error, this.#path);
    }
    this.#bytes += bytes.length;
  }

  /** Makes everything written so far durable, with the state from which the writer resumes. */
  async checkpoint(state: unknown): Promise<void> {
    try {
      await this.#file.sync();
      await writeJsonDurably(progressPath(this.#path), { settings: this.#settings, bytes: this.#bytes, state });
    } catch (error) {
      throw writeFailure(error, this.#path);
    }
  }

  /** Syncs the file and gives it its name. */
  async publish(): Promise<void> {
    try {
      await this.#file.sync();
      await this.#file.close();
      await rename(`${this.#path}.partial`, this.#path);
      await syncFolder(dirname(this.#path));
      await rm(progressPath(this.#path), { force: true });
      await rm(lockPath(this.#path), { force: true });
    } catch (error) {
      throw writeFailure(error, this.#path);
    } finally {
      this.#lock.release();
    }
  }

  /** Closes the file; a later process resumes it. */
  async close(): Promise<void> {
    await this.#file.close().catch(() => undefined);
    this.#lock.release();
  }
}

function progressPath(path: string): string {
  return `${path}.progress.json`;
}

function lockPath(path: string): string {
  return `${path}.lock`;
}

function acquire(path: string): FileLock {
  if (!existsSync(dirname(path))) {
    throw new TrawlError('OUTPUT_NOT_WRITABLE', `${path} cannot be written: its folder does not exist. Make it first.`);
  }
  const lock = FileLock.acquire(lockPath(path), 'exclusive');
  if (lock !== undefined) return lock;
  throw new TrawlError('OUTPUT_EXISTS', `Another process is writing ${path}. Wait for it, or choose another path.`);
}

async function readProgress(path: string): Promise<Progress | undefined> {
  try {
    return JSON.parse(await readFile(progressPath(path), 'utf8')) as Progress;
  } catch (error) {
    if (isNodeError(error) && error.code === 'ENOENT') return undefined;
    if (error instanceof SyntaxError) throw startAgain(path, `${progressPath(path)} is not valid JSON`);
    throw error;
  }
}

function startAgain(path: string, reason: string): TrawlError {
  return new TrawlError('BUILD_DIFFERS', `${reason}. Delete ${progressPath(path)} to begin again.`);
}

function checkSettings(path: string, before: Progress['settings'], now: Progress['settings']): void {
  const names = new Set([...Object.keys(before), ...Object.keys(now)]);
  const different = [...names].filter((name) => JSON.stringify(before[name]) !== JSON.stringify(now[name]));
  if (different.length === 0) return;
  const changes = different.map(
    (name) => `${name} was ${JSON.stringify(before[name])} and is now ${JSON.stringify(now[name])}`,
  );
  throw new TrawlError(
    'BUILD_DIFFERS',
    `${path} was begun with other settings: ${changes.join('; ')}. Run it as before, or delete ${progressPath(path)} to begin again.`,
    { details: { different } },
  );
}
