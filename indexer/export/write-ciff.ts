import { setImmediate } from 'node:timers/promises';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError } from '../../src/base/errors.ts';
import type { Compression } from '../../src/base/files/compression.ts';
import { lengthCode } from '../../src/engine/lexical/bm25.ts';
import type { LexicalSource } from '../../src/engine/lexical/lexical-index.ts';
import { LEXICAL_FIELDS, type LexicalField } from '../../src/engine/lexical/lexical-settings.ts';
import { shardLexical } from '../../src/index/manifest/shard-lexical.ts';
import type { IndexDirectory } from '../../src/search/opening/index-directory.ts';
import { openPack } from '../prepare/pack.ts';
import { MessageBuffer } from './ciff-messages.ts';
import { passagesOf } from './index-rows.ts';
import { LexicalShards } from './live-terms.ts';
import { idText } from './write-lines.ts';
import type { Sink } from './write-vectors.ts';

/** Bytes of messages that are written, and compressed, at once. */
const BLOCK_BYTES = 1024 * 1024;
/** Postings read in one time slice of the event loop. */
const POSTINGS_PER_SLICE = 262_144;
/** The format counts documents and terms in int32. */
const MAX_DOCUMENTS = 2 ** 31 - 1;
const DELETED = 0xffff_ffff;

export interface CiffOptions {
  readonly field: LexicalField;
  readonly compression: Compression;
  readonly signal?: AbortSignal;
  /** Called with the finished share of the work, from 0 to 1. */
  readonly onShare: (share: number) => void;
}

/** What the header needs before the first list can be written. */
interface Counted {
  /** Terms of the live rows. */
  readonly terms: number;
  readonly tokens: number;
  /** Tokens of each document. */
  readonly lengths: Uint32Array;
}

/**
 * The field whose inverted index is exported: the wanted one, else the contents, else the first one that the index has.
 *
 * @throws TrawlError NOT_SUPPORTED if the index has no such inverted index, or too many rows for the format.
 */
export function ciffField(
  { folder, manifest, lexical }: IndexDirectory,
  wanted: LexicalField | undefined,
): LexicalField {
  const fields = LEXICAL_FIELDS.filter((field) => lexical.has(field));
  const field = wanted ?? fields[0];
  if (field === undefined) {
    throw new TrawlError(
      'NOT_SUPPORTED',
      `The index ${folder} has no inverted index, so it cannot be exported as CIFF. Build one with trawl optimize INDEX --bm25.`,
    );
  }
  if (!fields.includes(field)) {
    throw new TrawlError(
      'NOT_SUPPORTED',
      `The index ${folder} has no inverted index of the field ${field}, only of ${fields.join(', ') || 'none'}.`,
    );
  }
  if (manifest.rows <= MAX_DOCUMENTS) return field;
  throw new TrawlError(
    'NOT_SUPPORTED',
    `The index ${folder} has ${manifest.rows} rows, but CIFF numbers at most ${MAX_DOCUMENTS} documents.`,
  );
}

/** Postings of all shards, deleted rows included. */
export function ciffPostings({ shards, manifest: index }: IndexDirectory, field: LexicalField): number {
  const indexes = shards.flatMap(({ manifest }) => shardLexical(manifest, index)?.indexes ?? []);
  return indexes.reduce((sum, index) => sum + (index.field === field ? index.postings : 0), 0);
}

/**
 * Writes the inverted index of a field in the Common Index File Format (https://github.com/osirrc/ciff), version 1: a header,
 * the posting lists by the bytes of their terms, and a record for each document. Deleted rows are left out and the documents
 * numbered without them, so that all counts are those of the live rows. The postings are read twice, because the header
 * comes first. Memory is bounded by the rows (4 to 8 bytes each) and the longest list.
 */
export async function writeCiff(directory: IndexDirectory, options: CiffOptions, sink: Sink): Promise<void> {
  const source = directory.lexical.get(options.field)!;
  const numbers = documentNumbers(directory);
  const documents = numbers?.documents ?? directory.manifest.rows;
  const shards = new LexicalShards(source);
  try {
    const passes = new CiffPasses(shards, numbers?.of, options, 2 * ciffPostings(directory, options.field));
    const counted = await passes.count(documents);
    checkLengths(shards, source, counted.lengths, numbers?.of);
    const blocks = new BlockWriter(options.compression, sink);
    await blocks.write(headerMessage(directory, options.field, documents, counted));
    await passes.write(blocks);
    const record = new MessageBuffer();
    let document = 0;
    for await (const { id, row } of passagesOf(directory, { kept: source.liveRows, signal: options.signal })) {
      record.clear();
      record.integer(1, document);
      record.text(2, Buffer.from(idText(id) ?? String(row)));
      record.integer(3, counted.lengths[document]!);
      document++;
      await blocks.write(record);
    }
    await blocks.flush();
  } finally {
    shards.close();
  }
}

/** The number of each live row among the live rows; undefined if no row is deleted. */
function documentNumbers({ manifest, liveRows }: IndexDirectory): { of: Uint32Array; documents: number } | undefined {
  if (liveRows === undefined) return undefined;
  const of = new Uint32Array(manifest.rows).fill(DELETED);
  let documents = 0;
  for (let row = 0; row < manifest.rows; row++) if (liveRows.has(row)) of[row] = documents++;
  return { of, documents };
}

function headerMessage(
  { manifest }: IndexDirectory,
  field: LexicalField,
  documents: number,
  { terms, tokens }: Counted,
): MessageBuffer {
  const { analyser, unicode } = manifest.bm25!.made;
  const header = new MessageBuffer();
  header.integer(1, 1);
  header.integer(2, terms);
  header.integer(3, documents);
  header.integer(4, terms);
  header.integer(5, documents);
  header.integer(6, tokens);
  header.double(7, documents === 0 ? 0 : tokens / documents);
  header.text(8, Buffer.from(`Trawl: field ${field}, analyser ${analyser}, Unicode ${unicode}`));
  return header;
}

/** The two passes over all postings. */
class CiffPasses {
  readonly #shards: LexicalShards;
  readonly #numbers: Uint32Array | undefined;
  readonly #options: CiffOptions;
  readonly #work: number;
  #done = 0;

  /** `work`: postings that both passes read. */
  constructor(shards: LexicalShards, numbers: Uint32Array | undefined, options: CiffOptions, work: number) {
    this.#shards = shards;
    this.#numbers = numbers;
    this.#options = options;
    this.#work = work;
  }

  async count(documents: number): Promise<Counted> {
    const lengths = new Uint32Array(documents);
    let terms = 0;
    let tokens = 0;
    for await (const visit of this.#terms()) {
      let live = 0;
      visit((document, tf) => {
        lengths[document] = lengths[document]! + tf;
        tokens += tf;
        live++;
      });
      if (live > 0) terms++;
    }
    return { terms, tokens, lengths };
  }

  async write(blocks: BlockWriter): Promise<void> {
    const head = new MessageBuffer();
    const postings = new MessageBuffer();
    for await (const visit of this.#terms()) {
      postings.clear();
      let [df, cf, last] = [0, 0, 0];
      const term = visit((document, tf) => {
        // The first number stands as it is, each later one as its distance from the one before.
        postings.pair(4, document - last, tf);
        last = document;
        df++;
        cf += tf;
      });
      if (df === 0) continue;
      head.clear();
      head.text(1, term);
      head.integer(2, df);
      head.integer(3, cf);
      await blocks.write(head, postings);
    }
  }

  /** For each term, a function that visits its live postings and returns the term. */
  async *#terms(): AsyncGenerator<(onPosting: (document: number, tf: number) => void) => Uint8Array, void> {
    const numbers = this.#numbers;
    let inSlice = 0;
    for (const { term, postings } of this.#shards.terms()) {
      yield (onPosting) => {
        for (const { firstRow, rows, tfs } of postings()) {
          for (let i = 0; i < rows.length; i++) {
            const row = firstRow + rows[i]!;
            const document = numbers === undefined ? row : numbers[row]!;
            if (document !== DELETED) onPosting(document, tfs[i]!);
          }
          inSlice += rows.length;
        }
        return term;
      };
      if (inSlice < POSTINGS_PER_SLICE) continue;
      this.#done += inSlice;
      inSlice = 0;
      this.#options.onShare(Math.min(1, this.#done / this.#work));
      await setImmediate();
      throwIfCancelled(this.#options.signal);
    }
    this.#done += inSlice;
    throwIfCancelled(this.#options.signal);
  }
}

/** The file keeps rounded lengths; the sums of the postings must agree with them. Throws INDEX_FILE_FOREIGN. */
function checkLengths(
  shards: LexicalShards,
  { liveRows }: LexicalSource,
  lengths: Uint32Array,
  numbers: Uint32Array | undefined,
): void {
  for (const { row, code, path } of shards.lengthCodes()) {
    if (liveRows?.has(row) === false) continue;
    const length = lengths[numbers === undefined ? row : numbers[row]!]!;
    if (lengthCode(length) === code) continue;
    throw new TrawlError(
      'INDEX_FILE_FOREIGN',
      `${path}: the postings of row ${row} of the index add up to ${length} tokens, but its length code is ${code}, not ` +
        `${lengthCode(length)}. Build the file again with trawl optimize --bm25.`,
      { details: { path, row } },
    );
  }
}

/** Collects messages and writes them in blocks, each a gzip member if the file is compressed. */
class BlockWriter {
  readonly #buffer = new MessageBuffer();
  readonly #pack: ReturnType<typeof openPack>;
  readonly #sink: Sink;

  constructor(compression: Compression, sink: Sink) {
    this.#pack = openPack(compression);
    this.#sink = sink;
  }

  /** Writes the parts as one message. */
  async write(...parts: readonly MessageBuffer[]): Promise<void> {
    this.#buffer.delimited(...parts);
    if (this.#buffer.length >= BLOCK_BYTES) await this.flush();
  }

  async flush(): Promise<void> {
    if (this.#buffer.length === 0) return;
    await this.#sink(this.#pack(this.#buffer.bytes));
    this.#buffer.clear();
  }
}
