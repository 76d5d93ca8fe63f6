import { existsSync, readdirSync, statSync } from 'node:fs';
import { chmod, type FileHandle, mkdir, open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { packageVersion } from '../../src/base/package-root.ts';
import { closeAll } from '../../src/base/system/close-all.ts';
import { syncFolder, writeJsonDurably } from '../../src/base/system/durable-file.ts';
import { sha256OfFile } from '../../src/base/system/file-checksum.ts';
import { FileLock } from '../../src/base/system/file-lock.ts';
import { writeFailure } from '../../src/base/system/write-failure.ts';
import { withChecksum } from '../../src/index/manifest/write-manifest.ts';
import { documentFields } from '../../src/index/passages/document-fields.ts';
import { SqlitePassageStore } from '../../src/index/passages/sqlite-passage-store.ts';
import { SqlitePassageWriter } from '../../src/index/passages/sqlite-passage-writer.ts';
import { type IndexDirectory, openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { missingPart, SEARCH_MODES, type SearchMode } from '../../src/search/search-mode.ts';
import { readRecords } from '../records/read-records.ts';
import { AnswerCollector } from './answer-collector.ts';
import { BUNDLE_FILE, BUNDLE_FILES, BUNDLE_FORMAT, BUNDLE_VERSION, type BundleManifest } from './bundle-manifest.ts';
import { recordedCall, UNUSABLE, type Unusable } from './recorded-call.ts';
import { answerId, answerKey } from './stored-answer.ts';

interface WriteBundleOptions {
  readonly records: readonly string[];
  /** The index that answered, in the recorded generation: it has the passages. */
  readonly index: string;
  /** The folder to write, which must not exist. */
  readonly out: string;
  readonly onProgress?: (progress: BundleProgress) => void;
  readonly signal?: AbortSignal;
}

interface BundleProgress {
  readonly doing: 'reading records' | 'copying passages' | 'writing answers';
  readonly done: number;
}

export type BundleSummary = Awaited<ReturnType<typeof writeBundle>>;

const COLLECTED = 'collected.sqlite';

/**
 * Writes the recorded answers of one generation of an index as a bundle, which is served without the index. Equal records and an equal
 * index give equal bytes. Memory does not depend on the number of records.
 *
 * @throws TrawlError of the records, of the index, OUTPUT_EXISTS, OUTPUT_NOT_WRITABLE, DISK_FULL; CORPUS_EMPTY if no record is of the
 * generation of the index; INDEX_FILE_FOREIGN if a record has another id for a row than the index. `out` does not exist then.
 */
export async function writeBundle(options: WriteBundleOptions) {
  const directory = openIndexDirectory(options.index);
  return inBundleFolder(options.out, (folder) => new BundleWriting(options, directory, folder).run());
}

class BundleWriting {
  readonly #options: WriteBundleOptions;
  readonly #directory: IndexDirectory;
  readonly #folder: string;
  readonly #modes: readonly SearchMode[];
  readonly #leftOut: Record<string, number>;
  readonly #otherGenerations = new Set<string>();
  #records = 0;
  #withoutFacts = 0;
  #name: string | undefined;
  #reranker: string | null = null;

  constructor(options: WriteBundleOptions, directory: IndexDirectory, folder: string) {
    this.#options = options;
    this.#directory = directory;
    this.#folder = folder;
    const parts = { vectors: directory.source !== undefined, words: directory.lexical.size > 0 };
    this.#modes = SEARCH_MODES.filter((mode) => missingPart(mode, parts, '') === undefined);
    this.#leftOut = Object.fromEntries([...UNUSABLE, 'otherGeneration', 'contradicting'].map((reason) => [reason, 0]));
  }

  async run() {
    const collector = new AnswerCollector(join(this.#folder, COLLECTED));
    try {
      await this.#collect(collector);
      const passages = await this.#writePassages(collector);
      const answers = await this.#writeAnswers(collector);
      collector.close();
      await rm(join(this.#folder, COLLECTED));
      const manifest = await this.#manifest(answers, passages);
      await writeJsonDurably(join(this.#folder, BUNDLE_FILE), withChecksum(manifest));
      const { name, generation } = manifest.index;
      return {
        bundle: resolve(this.#options.out),
        index: name,
        generation,
        records: this.#records,
        answers,
        passages,
        /** Records that are not in the bundle, by the reason. */
        leftOut: this.#leftOut as Readonly<Record<Unusable | 'otherGeneration' | 'contradicting', number>>,
        /** Answers without the facts that only replies of /v1/search have: their records are of an older server. */
        withoutFacts: this.#withoutFacts,
      };
    } finally {
      collector.close();
    }
  }

  async #collect(collector: AnswerCollector): Promise<void> {
    const { records, signal, onProgress } = this.#options;
    const { generation, model } = this.#directory.manifest;
    const defaults = { mode: this.#modes[0]!, model };
    for await (const { query, text } of readRecords(records, { signal })) {
      this.#records++;
      if (this.#records % 10_000 === 0) onProgress?.({ doing: 'reading records', done: this.#records });
      if (query.generation !== generation) {
        this.#leftOut.otherGeneration!++;
        if (this.#otherGenerations.size < 5) this.#otherGenerations.add(query.generation);
        continue;
      }
      const recorded = recordedCall(query, text);
      if (typeof recorded === 'string') {
        this.#leftOut[recorded]!++;
        continue;
      }
      const { input, call, cut, facts } = recorded;
      // The smallest name, so that the order of the records does not matter.
      if (this.#name === undefined || query.index < this.#name) this.#name = query.index;
      this.#reranker ??= facts?.rerank?.model ?? null;
      if (facts === null) this.#withoutFacts++;
      const key = answerKey(input, call, defaults);
      const { rows, scores, ids, k } = query;
      collector.add(answerId(key), { doc_id: key.text, settings: key.settings, k, rows, scores, cut, facts }, ids);
    }
    this.#leftOut.contradicting = collector.contradicting;
    if (this.#name === undefined) throw this.#nothingToBundle();
  }

  #nothingToBundle(): TrawlError {
    const { index } = this.#options;
    const counts = Object.entries(this.#leftOut).flatMap(([reason, count]) =>
      count > 0 ? [`${count} ${reason}`] : [],
    );
    const others = [...this.#otherGenerations].map((generation) => generation || '(none)').join(', ');
    const why = counts.length === 0 ? 'there are none' : `left out: ${counts.join(', ')}`;
    return new TrawlError(
      'CORPUS_EMPTY',
      `None of ${this.#records} records can be replayed from ${index}, which has generation ${this.#directory.manifest.generation} (${why}${others === '' ? '' : `; other generations: ${others}`}). Choose the index that answered, in the state in which it answered.`,
      { details: this.#leftOut },
    );
  }

  /** Copies the passages from the index, in the order of their rows. Returns their number. */
  async #writePassages(collector: AnswerCollector): Promise<number> {
    const { signal, onProgress } = this.#options;
    const store = await SqlitePassageStore.open(this.#directory.passages);
    let writer: SqlitePassageWriter | undefined;
    let rowsFile: FileHandle | undefined;
    try {
      writer = new SqlitePassageWriter(join(this.#folder, BUNDLE_FILES.passages));
      rowsFile = await open(join(this.#folder, BUNDLE_FILES.rows), 'w');
      for (const page of collector.passages()) {
        throwIfCancelled(signal);
        const beyond = page.find(({ row }) => row >= store.rows);
        if (beyond !== undefined) throw this.#foreign(beyond.row, beyond.id, 'no such row');
        const rows = page.map(({ row }) => row);
        const documents = await store.getMany(rows, signal);
        const numbers = Buffer.alloc(8 * page.length);
        for (const [i, { row, id }] of page.entries()) {
          const document = documents[i]!;
          const found = documentFields(document).id ?? null;
          if (found !== id) throw this.#foreign(row, id, found === null ? 'no id' : `the id ${JSON.stringify(found)}`);
          writer.append({ id: found, line: writer.rows + 1, document });
          numbers.writeDoubleLE(row, 8 * i);
        }
        await rowsFile.writeFile(numbers);
        onProgress?.({ doing: 'copying passages', done: writer.rows });
      }
      await rowsFile.sync();
      writer.finishRows();
      writer.finish();
      return writer.rows;
    } finally {
      await closeAll({ close: () => writer?.abandon() }, rowsFile, store);
    }
  }

  #foreign(row: number, id: string | null, found: string): TrawlError {
    return new TrawlError(
      'INDEX_FILE_FOREIGN',
      `A record says that row ${row} has ${id === null ? 'no id' : `the id ${JSON.stringify(id)}`}, but ${this.#options.index} has ${found} there, although its generation is the recorded one. Restore the index (trawl verify), or the records.`,
    );
  }

  async #writeAnswers(collector: AnswerCollector): Promise<number> {
    const { signal, onProgress } = this.#options;
    const writer = new SqlitePassageWriter(join(this.#folder, BUNDLE_FILES.answers));
    try {
      for (const { id, answer } of collector.answers()) {
        throwIfCancelled(signal);
        writer.append({ id, line: writer.rows + 1, document: answer });
        if (writer.rows % 10_000 === 0) onProgress?.({ doing: 'writing answers', done: writer.rows });
      }
      writer.finishRows();
      writer.finish();
      return writer.rows;
    } finally {
      writer.abandon();
    }
  }

  async #manifest(answers: number, passages: number): Promise<BundleManifest> {
    const { generation, rows, tombstones, dimension, metric, model, bm25, corpus } = this.#directory.manifest;
    const files = [];
    for (const path of Object.values(BUNDLE_FILES)) {
      const file = join(this.#folder, path);
      // They also stay private where they are copied to another folder.
      await chmod(file, 0o600);
      files.push({ path, bytes: statSync(file).size, sha256: await sha256OfFile(file, this.#options.signal) });
    }
    return {
      format: BUNDLE_FORMAT,
      version: BUNDLE_VERSION,
      index: {
        name: this.#name || basename(resolve(this.#options.index)),
        generation,
        rows,
        deletedRows: tombstones?.rows ?? 0,
        dimension,
        metric,
        modes: [...this.#modes],
        bm25: bm25?.made ?? null,
        columns: this.#directory.columns.map(({ name, type }) => ({ name, type })),
        uniqueIds: corpus.duplicateIds === 0,
        reranker: this.#reranker,
      },
      model,
      answers,
      passages,
      files,
      writer: `trawl ${packageVersion}`,
    };
  }
}

/**
 * Writes a bundle in the folder `<out>.partial`, which is renamed to `<out>` once the bundle is complete, so `<out>` is always a complete
 * bundle. The next run empties the folder of a killed one. The lock file is beside it. The answers contain users' queries: only the owner
 * may open the folder.
 *
 * @param write writes the files into the folder, synced to disk.
 * @throws TrawlError OUTPUT_EXISTS if the path exists or another run writes it, OUTPUT_NOT_WRITABLE or DISK_FULL; the errors of `write`.
 */
async function inBundleFolder<T>(out: string, write: (folder: string) => Promise<T>): Promise<T> {
  const final = resolve(out);
  const partial = `${final}.partial`;
  const lockPath = `${final}.lock`;
  let lock: FileLock | undefined;
  try {
    refuseExisting(final);
    await mkdir(dirname(final), { recursive: true });
    lock = FileLock.acquire(lockPath, 'exclusive');
    if (lock === undefined) {
      throw new TrawlError('OUTPUT_EXISTS', `Another run writes ${final}. Let it end, or choose another --bundle.`);
    }
    // Another run may have ended between the check and the lock.
    refuseExisting(final);
    await rm(partial, { recursive: true, force: true });
    await mkdir(partial, { mode: 0o700 });
    const written = await write(partial);
    await syncFolder(partial);
    // An empty folder can be replaced.
    await rename(partial, final);
    await syncFolder(dirname(final));
    return written;
  } catch (error) {
    // A failure to tidy up must not hide why the bundle was not written.
    if (lock !== undefined) await rm(partial, { recursive: true, force: true }).catch(() => undefined);
    throw writeFailure(error, out);
  } finally {
    if (lock !== undefined) await rm(lockPath, { force: true }).catch(() => undefined);
    lock?.release();
  }
}

function refuseExisting(final: string): void {
  if (!existsSync(final) || isEmptyFolder(final)) return;
  throw new TrawlError('OUTPUT_EXISTS', `${final} already exists. Choose another --bundle, or remove it.`);
}

function isEmptyFolder(path: string): boolean {
  try {
    return readdirSync(path).length === 0;
  } catch {
    return false;
  }
}
