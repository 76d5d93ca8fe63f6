import { constants, existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { access, rm } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { isNodeError, TrawlError } from '../errors.ts';
import { CheckpointedFile, publishPartial } from './checkpointed-file.ts';
import { syncFolder, writeFileDurably } from './durable-file.ts';
import { FileLock } from './file-lock.ts';
import { differences, type OutputSettings, reportPath, writeReport } from './output-report.ts';
import { partialOf } from './partial-file.ts';
import { writeFailure } from './write-failure.ts';

export interface ResumableOptions {
  readonly settings: OutputSettings;
  /** `--restart`: whether what an unfinished run left is dropped, and an existing output replaced. */
  readonly restart: boolean;
  /** Whether an existing output is replaced even without `--restart`. It stays in place until the new one is complete. */
  readonly replaces: boolean;
  /** The server that is asked, for the record and the report. Another one with the same settings may resume. */
  readonly server?: string;
}

/** Version of the record; a record of another version is refused. */
const RECORD_VERSION = 1;

/** `FILE.progress`: how far the partial files got. Written durably, after the bytes that it counts. */
interface ProgressRecord {
  readonly format: 'trawl-output';
  readonly version: number;
  readonly settings: OutputSettings;
  readonly server: string | undefined;
  /** Bytes of each partial file that are complete. Further bytes are from after the record. */
  readonly bytes: readonly number[];
  /** Whether all files are complete; then only their renaming is left. */
  readonly finished: boolean;
  readonly state: unknown;
}

/** The paths that are written beside an output. */
export function besideOutput(path: string): string[] {
  const final = finalPath(path);
  return [partialOf(final), progressOf(final), lockOf(final), reportPath(final)];
}

/** Through a link, as other programs write: renaming would replace the link. */
function finalPath(path: string): string {
  return existsSync(path) ? realpathSync(path) : resolve(path);
}

/**
 * The files of an output, written so that a killed run resumes. While it runs, there are `FILE.partial` for each file, and for the first
 * file `FILE.progress` and `FILE.lock`. At the end the partial files are renamed, `FILE.report.json` says what they were made with, and
 * the others are removed.
 *
 * `State`, a JSON value, is what the writer needs to continue.
 */
export class ResumableOutput<State> {
  /** The state that an earlier run saved; undefined if this run starts from the beginning. */
  readonly resumed: State | undefined;
  /** Whether an earlier run wrote everything. Then nothing may be appended. */
  readonly isComplete: boolean;
  readonly #paths: readonly string[];
  readonly #made: { readonly settings: OutputSettings; readonly server: string | undefined };
  readonly #lock: FileLock;
  #files: CheckpointedFile[] = [];
  /** Bytes of the complete files of an earlier run. */
  readonly #completeBytes: readonly number[];
  #hasRecord: boolean;
  #isFinished = false;

  private constructor(
    paths: readonly string[],
    { settings, server }: ResumableOptions,
    lock: FileLock,
    record: ProgressRecord | undefined,
  ) {
    this.#paths = paths;
    this.#made = { settings, server };
    this.#lock = lock;
    this.resumed = record?.state as State | undefined;
    this.isComplete = record?.finished === true;
    this.#completeBytes = record?.bytes ?? [];
    this.#hasRecord = record !== undefined;
  }

  /**
   * Begins an output, or resumes it behind what an earlier run saved.
   *
   * @throws TrawlError OUTPUT_EXISTS if a file exists and may not be replaced, or while another run writes the output; OUTPUT_DIFFERS if
   * an unfinished run had other settings or its files were damaged; OUTPUT_NOT_WRITABLE, DISK_FULL.
   */
  static async open<State>(files: readonly string[], options: ResumableOptions): Promise<ResumableOutput<State>> {
    const paths = files.map(finalPath);
    const first = paths[0]!;
    let lock: FileLock | undefined;
    try {
      lock = await acquire(paths);
      const record = await recordToResume(paths, options);
      const existing = paths.find((path) => existsSync(path));
      if (existing !== undefined && !options.restart && !options.replaces && record?.finished !== true) {
        const message = `${existing} already exists. Choose another path, or begin again with --restart.`;
        throw new TrawlError('OUTPUT_EXISTS', message);
      }
      const output = new ResumableOutput<State>(paths, options, lock, record);
      if (!output.isComplete) await output.#open(record?.bytes ?? []);
      return output;
    } catch (error) {
      lock?.release();
      throw writeFailure(error, first);
    }
  }

  async #open(bytes: readonly number[]): Promise<void> {
    try {
      for (const [i, path] of this.#paths.entries()) {
        this.#files.push(await CheckpointedFile.open(path, bytes[i] ?? 0));
      }
    } catch (error) {
      await this.#closeFiles();
      throw error;
    }
  }

  /** Appends to each file. What it appends may be lost until the next `save`. */
  async append(parts: readonly (string | Uint8Array)[]): Promise<void> {
    for (const [i, part] of parts.entries()) await this.#files[i]!.write(part);
  }

  /** Makes what was appended durable, so that a later run resumes here. */
  async save(state: State): Promise<void> {
    await this.#save(state, false);
  }

  /** Writes the report with these further fields, and gives the complete files their final names. */
  async finish(state: State, facts: object): Promise<void> {
    if (!this.isComplete) await this.#save(state, true);
    const bytes = this.isComplete ? this.#completeBytes : this.#files.map((file) => file.bytes);
    await this.#closeFiles();
    const first = this.#paths[0]!;
    const { settings, server } = this.#made;
    try {
      await writeReport(this.#paths, bytes, settings, { server, ...facts });
      for (const [i, path] of this.#paths.entries()) {
        await publishPartial(path, bytes[i]!);
        await syncFolder(dirname(path));
      }
      await rm(progressOf(first), { force: true });
      await rm(lockOf(first), { force: true });
      this.#isFinished = true;
    } catch (error) {
      throw writeFailure(error, first);
    }
  }

  /** Closes the files and releases the lock. The partial files stay for the next run, unless nothing was saved. */
  async close(): Promise<void> {
    await this.#closeFiles();
    if (!this.#hasRecord && !this.#isFinished) {
      const left = [...this.#paths.map(partialOf), lockOf(this.#paths[0]!)];
      for (const path of left) await rm(path, { force: true });
    }
    this.#lock.release();
  }

  async #save(state: State, finished: boolean): Promise<void> {
    const first = this.#paths[0]!;
    try {
      const bytes: number[] = [];
      for (const file of this.#files) bytes.push(await file.checkpoint());
      const version = RECORD_VERSION;
      const record: ProgressRecord = { format: 'trawl-output', version, ...this.#made, bytes, finished, state };
      await writeFileDurably(progressOf(first), JSON.stringify(record));
      this.#hasRecord = true;
    } catch (error) {
      throw writeFailure(error, first);
    }
  }

  async #closeFiles(): Promise<void> {
    for (const file of this.#files.splice(0)) await file.close().catch(() => undefined);
  }
}

function progressOf(path: string): string {
  return `${path}.progress`;
}

function lockOf(path: string): string {
  return `${path}.lock`;
}

async function acquire(paths: readonly string[]): Promise<FileLock> {
  const first = paths[0]!;
  for (const path of paths) {
    if (existsSync(path) && statSync(path).isDirectory()) throw Object.assign(new Error(path), { code: 'EISDIR' });
    await access(dirname(path), constants.W_OK);
  }
  const lock = FileLock.acquire(lockOf(first), 'exclusive');
  if (lock !== undefined) return lock;
  const message = `Another run is writing ${first}. Wait for it, stop it, or choose another path.`;
  throw new TrawlError('OUTPUT_EXISTS', message, { details: { path: first } });
}

/** The record of an unfinished run; undefined if there is none, or it is dropped. */
async function recordToResume(
  paths: readonly string[],
  { settings, restart }: ResumableOptions,
): Promise<ProgressRecord | undefined> {
  const first = paths[0]!;
  const progress = progressOf(first);
  if (restart) {
    await rm(progress, { force: true });
    return undefined;
  }
  const cannotResume = (reason: string, details?: object): TrawlError =>
    new TrawlError(
      'OUTPUT_DIFFERS',
      `${reason} Repeat the command as it was, choose another path, or begin again with --restart.`,
      { details: { path: first, ...details } },
    );
  let text: string;
  try {
    text = readFileSync(progress, 'utf8');
  } catch (error) {
    if (isNodeError(error) && error.code === 'ENOENT') return undefined;
    throw error;
  }
  const record = parseRecord(text);
  if (record === undefined) throw cannotResume(`${progress} is not a record that this version of trawl can resume.`);
  const different = differences(record.settings, settings);
  if (different.length > 0) {
    const reason = `${first} has an unfinished run with other settings: ${different.join('; ')}.`;
    throw cannotResume(reason, { differences: different });
  }
  const isThere = record.finished ? CheckpointedFile.isWhole : CheckpointedFile.fits;
  const damaged = paths.find((path, i) => !isThere(path, record.bytes[i]!));
  if (damaged === undefined) return record;
  throw cannotResume(`${partialOf(damaged)} lacks bytes that ${progress} counts: it was removed or changed.`);
}

/** Undefined for a text that is not a record of this version. */
function parseRecord(text: string): ProgressRecord | undefined {
  try {
    const record = JSON.parse(text) as ProgressRecord | null;
    return record?.format === 'trawl-output' && record.version === RECORD_VERSION ? record : undefined;
  } catch {
    return undefined;
  }
}
