import { statSync } from 'node:fs';
import { chmod, type FileHandle, open, rm } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { packageVersion } from '../../src/base/package-root.ts';
import { closeAll } from '../../src/base/system/close-all.ts';
import { writeJsonDurably } from '../../src/base/system/durable-file.ts';
import { sha256OfFile } from '../../src/base/system/file-checksum.ts';
import { writeFailure } from '../../src/base/system/write-failure.ts';
import { withChecksum } from '../../src/index/manifest/manifest-checksum.ts';
import { documentFields } from '../../src/index/passages/document-fields.ts';
import { SqlitePassageStore } from '../../src/index/passages/sqlite-passage-store.ts';
import { SqlitePassageWriter } from '../../src/index/passages/sqlite-passage-writer.ts';
import { type IndexDirectory, openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { missingPart, SEARCH_MODES, type SearchMode } from '../../src/search/search-mode.ts';
import { readRecords } from '../records/read-records.ts';
import { AnswerCollector } from './answer-collector.ts';
import { answerKey } from './answer-key.ts';
import { BundleFolder } from './bundle-folder.ts';
import { BUNDLE_FILE, BUNDLE_FILES, BUNDLE_FORMAT, BUNDLE_VERSION, type BundleManifest } from './bundle-manifest.ts';
import { recordedCall, UNUSABLE, type Unusable } from './recorded-call.ts';
import { answerId } from './stored-answer.ts';

interface WriteBundleOptions {
  /** Files of `--record`. */
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

export interface BundleSummary {
  /** Absolute path. */
  readonly bundle: string;
  readonly index: string;
  readonly generation: string;
  readonly records: number;
  /** Distinct answers and distinct passages. */
  readonly answers: number;
  readonly passages: number;
  /** Records that are not in the bundle, by the reason. */
  readonly leftOut: Readonly<Record<Unusable | 'otherGeneration' | 'contradicting', number>>;
  /** Answers without the facts that only replies of /v1/search have: their records are of an older server. */
  readonly withoutFacts: number;
}

/** Name of the temporary file in the folder. */
const COLLECTED = 'collected.sqlite';

/**
 * Writes the recorded answers of one generation of an index as a bundle, which is served without the index. Equal records and an equal
 * index give equal bytes. Memory does not depend on the number of records.
 *
 * @throws TrawlError of the records, of the index, OUTPUT_EXISTS, OUTPUT_NOT_WRITABLE, DISK_FULL; CORPUS_EMPTY if no record is of the
 * generation of the index; INDEX_FILE_FOREIGN if a record has another id for a row than the index. `out` does not exist then.
 */
export async function writeBundle(options: WriteBundleOptions): Promise<BundleSummary> {
  const directory = openIndexDirectory(options.index);
  const folder = await BundleFolder.create(options.out);
  try {
    const summary = await new BundleWriting(options, directory, folder).run();
    await folder.publish();
    return summary;
  } catch (error) {
    await folder.discard();
    throw writeFailure(error, options.out);
  }
}

class BundleWriting {
  readonly #options: WriteBundleOptions;
  readonly #directory: IndexDirectory;
  readonly #folder: BundleFolder;
  readonly #modes: readonly SearchMode[];
  readonly #leftOut: Record<string, number>;
  readonly #otherGenerations = new Set<string>();
  #records = 0;
  #withoutFacts = 0;
  #name: string | undefined;
  #reranker: string | null = null;

  constructor(options: WriteBundleOptions, directory: IndexDirectory, folder: BundleFolder) {
    this.#options = options;
    this.#directory = directory;
    this.#folder = folder;
    const parts = { vectors: directory.source !== undefined, words: directory.lexical.size > 0 };
    this.#modes = SEARCH_MODES.filter((mode) => missingPart(mode, parts, '') === undefined);
    this.#leftOut = Object.fromEntries([...UNUSABLE, 'otherGeneration', 'contradicting'].map((reason) => [reason, 0]));
  }

  async run(): Promise<BundleSummary> {
    const collector = new AnswerCollector(this.#folder.path(COLLECTED));
    try {
      await this.#collect(collector);
      const passages = await this.#writePassages(collector);
      const answers = await this.#writeAnswers(collector);
      collector.close();
      await rm(this.#folder.path(COLLECTED));
      const manifest = await this.#manifest(answers, passages);
      await writeJsonDurably(this.#folder.path(BUNDLE_FILE), withChecksum(manifest));
      const { name, generation } = manifest.index;
      return {
        bundle: resolve(this.#options.out),
        index: name,
        generation,
        records: this.#records,
        answers,
        passages,
        leftOut: this.#leftOut as BundleSummary['leftOut'],
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
    const counts = Object.entries(this.#leftOut).filter(([, count]) => count > 0);
    const others = [...this.#otherGenerations].map((generation) => generation || '(none)').join(', ');
    const why =
      counts.length === 0
        ? 'there are none'
        : `left out: ${counts.map(([reason, count]) => `${count} ${reason}`).join(', ')}`;
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
      writer = new SqlitePassageWriter(this.#folder.path(BUNDLE_FILES.passages));
      rowsFile = await open(this.#folder.path(BUNDLE_FILES.rows), 'w');
      for (const page of collector.passages()) {
        throwIfCancelled(signal);
        const beyond = page.find(({ row }) => row >= store.rows);
        if (beyond !== undefined) throw this.#foreign(beyond.row, beyond.id, 'no such row');
        const documents = await store.getMany(
          page.map(({ row }) => row),
          signal,
        );
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
    const writer = new SqlitePassageWriter(this.#folder.path(BUNDLE_FILES.answers));
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
      const file = this.#folder.path(path);
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
