import { createHash, type Hash } from 'node:crypto';
import { readRecordFiles } from '../records/read-records.ts';
import { closeAll, openRecordFiles, type RecordFileHandle } from '../records/record-files.ts';
import type { MiningQuery, SkipReason } from './mining-query.ts';
import { type RecordLimits, recordQueries } from './record-queries.ts';

/** Files of `--record` with their rotated files, opened once. A server may append to them and rotate them meanwhile. */
export class RecordSource {
  readonly #files: readonly RecordFileHandle[];
  readonly #hashes: ReadonlyMap<string, Hash>;
  /** Permissions for files with queries of these records: no wider than the permissions of any of these files. */
  readonly mode: number;

  private constructor(files: readonly RecordFileHandle[], mode: number) {
    this.#files = files;
    this.#hashes = new Map(files.map(({ path }) => [path, createHash('sha256')]));
    this.mode = mode;
  }

  /** @throws TrawlError CORPUS_NOT_FOUND. */
  static async open(paths: readonly string[]): Promise<RecordSource> {
    const files = await openRecordFiles(paths);
    let mode = 0o666;
    for (const { handle } of files) mode &= (await handle.stat()).mode;
    // The run itself must read and write what it makes.
    return new RecordSource(files, mode | 0o600);
  }

  get paths(): readonly string[] {
    return this.#files.map(({ path }) => path);
  }

  /** The queries of all files (`recordQueries`). They can be read once; the files are closed at the end. */
  async *queries(limits: RecordLimits): AsyncGenerator<MiningQuery | SkipReason, void> {
    const lines = readRecordFiles(this.#files, {});
    yield* recordQueries(lines, limits, ({ file, text }) => this.#hashes.get(file)!.update(`${text}\n`));
  }

  /** SHA-256 of the records that were read of each file. Call it once, after `queries`. */
  checksums(): readonly { readonly path: string; readonly sha256: string }[] {
    return [...this.#hashes].map(([path, hash]) => ({ path, sha256: hash.digest('hex') }));
  }

  async close(): Promise<void> {
    await closeAll(this.#files);
  }
}
