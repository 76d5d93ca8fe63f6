import { constants, existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { access, type FileHandle, open, rename, rm } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { isNodeError, TrawlError } from '../src/errors.ts';
import { syncFolder, writeFileDurably } from '../src/system/durable-file.ts';
import { FileLock } from '../src/system/file-lock.ts';
import { writeFailure } from '../src/system/write-failure.ts';
import type { FileBytes } from './outputs/result-encoder.ts';
import { differences, type SearchSettings } from './search-settings.ts';

/** The paths that are written beside an output until it is complete. */
export function besideOutput(path: string): string[] {
  return ['partial', 'progress', 'lock'].map((ending) => `${finalPath(path)}.${ending}`);
}

/** Through a link, as other programs write: renaming would replace the link. */
function finalPath(path: string): string {
  return existsSync(path) ? realpathSync(path) : resolve(path);
}

/** Version of the record; a record of another version is refused. */
const RECORD_VERSION = 1;

/** `OUT.progress`: how far the partial files got. Written durably, after the bytes that it counts. */
interface ProgressRecord extends Progress {
  readonly format: 'trawl-bulk-search';
  readonly version: number;
  readonly settings: SearchSettings;
  /** Bytes of each partial file that are complete. Further bytes are from after the record. */
  readonly bytes: readonly number[];
  /** Whether all files are complete; then only their renaming is left. */
  readonly finished: boolean;
}

export interface Progress {
  /** Queries whose results are in the partial files or in the state. */
  readonly queries: number;
  /** Queries among them that failed. */
  readonly failed: number;
  /** State of the encoder. */
  readonly state: unknown;
}

/**
 * The files of an output, written so that a killed run resumes. While it runs, there are `FILE.partial` for each file, and for the first
 * file `FILE.progress` and `FILE.lock`. At the end, the partial files are renamed, and the others removed. An existing output stays in
 * place until then.
 */
export class OutputFiles {
  readonly #paths: readonly string[];
  readonly #settings: SearchSettings;
  readonly #lock: FileLock;
  readonly #files: FileHandle[] = [];
  readonly #bytes: number[] = [];
  /** What an earlier run has done; undefined if this run starts from the beginning. */
  readonly resumed: Progress | undefined;
  /** Whether an earlier run wrote everything. Then nothing may be appended. */
  readonly isComplete: boolean;
  #hasRecord: boolean;
  #isFinished = false;

  private constructor(
    paths: readonly string[],
    settings: SearchSettings,
    lock: FileLock,
    record: ProgressRecord | undefined,
  ) {
    this.#paths = paths;
    this.#settings = settings;
    this.#lock = lock;
    this.resumed = record;
    this.isComplete = record?.finished === true;
    this.#hasRecord = record !== undefined;
  }

  /**
   * @param restart whether to drop what an earlier run has done.
   * @throws TrawlError OUTPUT_EXISTS while another run writes the output, OUTPUT_DIFFERS if an unfinished run had other settings,
   * OUTPUT_NOT_WRITABLE, DISK_FULL.
   */
  static async open(files: readonly string[], settings: SearchSettings, restart: boolean): Promise<OutputFiles> {
    const paths = files.map(finalPath);
    const [first = ''] = paths;
    let lock: FileLock | undefined;
    try {
      for (const path of paths) {
        if (existsSync(path) && statSync(path).isDirectory()) throw Object.assign(new Error(path), { code: 'EISDIR' });
        await access(dirname(path), constants.W_OK);
      }
      lock = FileLock.acquire(`${first}.lock`, 'exclusive');
    } catch (error) {
      throw writeFailure(error, first);
    }
    if (lock === undefined) {
      throw new TrawlError(
        'OUTPUT_EXISTS',
        `Another run is writing ${first}. Wait for it, stop it, or choose another --out.`,
        {
          details: { path: first },
        },
      );
    }
    try {
      if (restart) await rm(`${first}.progress`, { force: true });
      const record = readRecord(`${first}.progress`);
      if (record !== undefined) checkSettings(first, record.settings, settings);
      const output = new OutputFiles(paths, settings, lock, record);
      await output.#open(record);
      return output;
    } catch (error) {
      lock.release();
      throw writeFailure(error, first);
    }
  }

  async #open(record: ProgressRecord | undefined): Promise<void> {
    if (record?.finished === true) return;
    for (const [i, path] of this.#paths.entries()) {
      const bytes = record?.bytes[i] ?? 0;
      const partial = `${path}.partial`;
      if (record !== undefined && (!existsSync(partial) || statSync(partial).size < bytes)) {
        throw new TrawlError(
          'OUTPUT_DIFFERS',
          `${partial} lacks bytes that ${this.#paths[0]}.progress counts: it was removed or changed. Run the command again with --restart.`,
          { details: { path } },
        );
      }
      const file = await open(partial, record === undefined ? 'w' : 'r+');
      this.#files.push(file);
      await file.truncate(bytes);
      this.#bytes.push(bytes);
    }
  }

  async append(bytes: FileBytes): Promise<void> {
    for (const [i, part] of bytes.entries()) {
      try {
        for (let done = 0; done < part.length; ) {
          const { bytesWritten } = await this.#files[i]!.write(part, done, part.length - done, this.#bytes[i]! + done);
          done += bytesWritten;
        }
      } catch (error) {
        throw writeFailure(error, this.#paths[i]!);
      }
      this.#bytes[i]! += part.length;
    }
  }

  /** Makes what was appended durable, so that a later run resumes here. */
  async save(progress: Progress): Promise<void> {
    await this.#save(progress, false);
  }

  /** Renames the complete files to their final paths. */
  async finish(progress: Progress): Promise<void> {
    if (!this.isComplete) await this.#save({ ...progress, state: null }, true);
    await this.#closeFiles();
    const [first] = this.#paths as [string];
    try {
      for (const path of this.#paths) {
        // A run that was killed here may have renamed it.
        if (existsSync(`${path}.partial`)) await rename(`${path}.partial`, path);
        await syncFolder(dirname(path));
      }
      await rm(`${first}.progress`, { force: true });
      await rm(`${first}.lock`, { force: true });
      this.#isFinished = true;
    } catch (error) {
      throw writeFailure(error, first);
    }
  }

  /** Closes the files and releases the lock. The partial files stay for the next run, unless nothing was saved. */
  async close(): Promise<void> {
    await this.#closeFiles();
    if (!this.#hasRecord && !this.#isFinished) {
      const left = [...this.#paths.map((path) => `${path}.partial`), `${this.#paths[0]}.lock`];
      for (const path of left) await rm(path, { force: true });
    }
    this.#lock.release();
  }

  async #save(progress: Progress, finished: boolean): Promise<void> {
    const [first] = this.#paths as [string];
    const record: ProgressRecord = {
      format: 'trawl-bulk-search',
      version: RECORD_VERSION,
      ...progress,
      settings: this.#settings,
      bytes: this.#bytes,
      finished,
    };
    try {
      for (const file of this.#files) await file.datasync();
      await writeFileDurably(`${first}.progress`, JSON.stringify(record));
      this.#hasRecord = true;
    } catch (error) {
      throw writeFailure(error, first);
    }
  }

  async #closeFiles(): Promise<void> {
    for (const file of this.#files.splice(0)) await file.close();
  }
}

function readRecord(path: string): ProgressRecord | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (isNodeError(error) && error.code === 'ENOENT') return undefined;
    throw error;
  }
  let record: Partial<ProgressRecord> | null = null;
  try {
    record = JSON.parse(text) as Partial<ProgressRecord> | null;
  } catch {
    // Reported below.
  }
  if (record?.format === 'trawl-bulk-search' && record.version === RECORD_VERSION) return record as ProgressRecord;
  throw new TrawlError(
    'OUTPUT_DIFFERS',
    `${path} is not a record of a bulk search that this version of trawl can resume. Run the command again with --restart.`,
    { details: { path } },
  );
}

function checkSettings(path: string, before: SearchSettings, now: SearchSettings): void {
  const found = differences(before, now);
  if (found.length === 0) return;
  throw new TrawlError(
    'OUTPUT_DIFFERS',
    `${path} has an unfinished run with other settings: ${found.join('; ')}. Repeat the command as it was, choose another --out, or ` +
      'start from the beginning with --restart.',
    { details: { path, differences: found } },
  );
}
