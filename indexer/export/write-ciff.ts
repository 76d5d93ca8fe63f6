import { setImmediate } from 'node:timers/promises';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { lengthCode } from '../../src/engine/lexical/bm25.ts';
import type { LexicalSource } from '../../src/engine/lexical/lexical-index.ts';
import type { LexicalField } from '../../src/engine/lexical/lexical-settings.ts';
import { LexicalFile } from '../../src/engine/reference/lexical/lexical-file.ts';
import { shardLexical } from '../../src/index/manifest/shard-manifest.ts';
import type { IndexDirectory } from '../../src/search/opening/index-directory.ts';
import { openPack } from '../prepare/pack.ts';
import { MessageBuffer } from './ciff-messages.ts';
import { passagesOf } from './index-rows.ts';
import { type ContentOutput, idText } from './write-lines.ts';

/** Bytes of messages that are written, and compressed, at once. */
const BLOCK_BYTES = 1024 * 1024;
/** Postings read in one time slice of the event loop. */
const POSTINGS_PER_SLICE = 262_144;
/** The format counts documents and terms in int32. */
const MAX_DOCUMENTS = 2 ** 31 - 1;
const DELETED = 0xffff_ffff;

interface OpenedFile {
  readonly path: string;
  readonly firstRow: number;
  readonly file: LexicalFile;
}

/** For each term, a function that visits its live postings and returns the term. */
type LiveTerms = AsyncIterable<(onPosting: (document: number, tf: number) => void) => Uint8Array>;

/**
 * The field whose inverted index is exported: the wanted one, else the first one that the index has.
 *
 * @throws TrawlError NOT_SUPPORTED if the index has no such inverted index, or too many rows for the format.
 */
export function ciffField(
  { folder, manifest, lexical }: IndexDirectory,
  wanted: LexicalField | undefined,
): LexicalField {
  const fields = [...lexical.keys()];
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
 * numbered without them, so that only live rows count. The postings are read twice, because the header
 * comes first. Memory is bounded by the rows (4 to 8 bytes each) and the longest list.
 */
export async function writeCiff(
  directory: IndexDirectory,
  { field, signal }: { field: LexicalField; signal: AbortSignal | undefined },
  output: ContentOutput,
): Promise<void> {
  const source = directory.lexical.get(field)!;
  const numbers = documentNumbers(directory);
  const lengths = new Uint32Array(directory.liveRows?.count() ?? directory.manifest.rows);
  const work = 2 * ciffPostings(directory, field);
  let [done, reported] = [0, 0];
  const onPostings = (postings: number): void => {
    done += postings;
    const rows = work === 0 ? 0 : Math.floor(Math.min(1, done / work) * output.totalRows);
    output.onRows(rows - reported);
    reported = rows;
  };
  const shards: OpenedFile[] = [];
  try {
    for (const { path, firstRow } of source.shards) shards.push({ path, firstRow, file: new LexicalFile(path) });
    const counts = await countTerms(liveTerms(shards, numbers, onPostings, signal), lengths);
    checkLengths(shards, source, lengths, numbers);
    const blocks = blockWriter(output);
    await blocks.write(headerMessage(directory, field, { ...counts, documents: lengths.length }));
    await writeLists(liveTerms(shards, numbers, onPostings, signal), blocks);
    const record = new MessageBuffer();
    let document = 0;
    for await (const { id, row } of passagesOf(directory, { kept: source.liveRows, signal })) {
      record.clear();
      record.integer(1, document);
      record.text(2, Buffer.from(idText(id) ?? String(row)));
      record.integer(3, lengths[document]!);
      document++;
      await blocks.write(record);
    }
    await blocks.flush();
  } finally {
    for (const { file } of shards) file.close();
  }
}

/** The number of each live row among the live rows; undefined if no row is deleted. */
function documentNumbers({ manifest, liveRows }: IndexDirectory): Uint32Array | undefined {
  if (liveRows === undefined) return undefined;
  const numbers = new Uint32Array(manifest.rows).fill(DELETED);
  let documents = 0;
  for (let row = 0; row < manifest.rows; row++) if (liveRows.has(row)) numbers[row] = documents++;
  return numbers;
}

function headerMessage(
  { manifest }: IndexDirectory,
  field: LexicalField,
  { documents, terms, tokens }: { documents: number; terms: number; tokens: number },
): MessageBuffer {
  const { analyser, unicode } = manifest.bm25!.made;
  const header = new MessageBuffer();
  for (const [i, count] of [1, terms, documents, terms, documents, tokens].entries()) header.integer(i + 1, count);
  header.double(7, documents === 0 ? 0 : tokens / documents);
  header.text(8, Buffer.from(`Trawl: field ${field}, analyser ${analyser}, Unicode ${unicode}`));
  return header;
}

async function* liveTerms(
  shards: readonly OpenedFile[],
  numbers: Uint32Array | undefined,
  onPostings: (postings: number) => void,
  signal: AbortSignal | undefined,
): LiveTerms {
  let inSlice = 0;
  for (const { term, postings } of mergedTerms(shards)) {
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
    onPostings(inSlice);
    inSlice = 0;
    await setImmediate();
    throwIfCancelled(signal);
  }
  onPostings(inSlice);
  throwIfCancelled(signal);
}

/** Counts terms and tokens of the live rows, and adds the tokens of each document to `lengths`. */
async function countTerms(liveTerms: LiveTerms, lengths: Uint32Array): Promise<{ terms: number; tokens: number }> {
  let [terms, tokens] = [0, 0];
  for await (const visit of liveTerms) {
    let isLive = false;
    visit((document, tf) => {
      lengths[document] = lengths[document]! + tf;
      tokens += tf;
      isLive = true;
    });
    if (isLive) terms++;
  }
  return { terms, tokens };
}

async function writeLists(liveTerms: LiveTerms, blocks: ReturnType<typeof blockWriter>): Promise<void> {
  const head = new MessageBuffer();
  const postings = new MessageBuffer();
  for await (const visit of liveTerms) {
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

/** The file keeps rounded lengths; the sums of the postings must agree with them. Throws INDEX_FILE_FOREIGN. */
function checkLengths(
  shards: readonly OpenedFile[],
  { liveRows }: LexicalSource,
  lengths: Uint32Array,
  numbers: Uint32Array | undefined,
): void {
  for (const { path, firstRow, file } of shards) {
    for (const [rowOfShard, code] of file.lengthCodes.entries()) {
      const row = firstRow + rowOfShard;
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
}

/** Collects messages and writes them in blocks, each a gzip member if the file is compressed. */
function blockWriter({ compression, write }: ContentOutput) {
  const buffer = new MessageBuffer();
  const pack = openPack(compression);
  const flush = async (): Promise<void> => {
    if (buffer.length === 0) return;
    await write(pack(buffer.bytes));
    buffer.clear();
  };
  return {
    flush,
    async write(...parts: readonly MessageBuffer[]): Promise<void> {
      buffer.delimited(...parts);
      if (buffer.length >= BLOCK_BYTES) await flush();
    },
  };
}

/** A block of a term's postings in the shard that begins at `firstRow`. The rows, counted in the shard, rise from block to block. */
interface RowPostings {
  readonly firstRow: number;
  readonly rows: Uint32Array;
  readonly tfs: Uint32Array;
}

/** Every term of the shards once, in the order of its UTF-8 bytes, with the postings of all shards, also of deleted rows. */
function* mergedTerms(
  shards: readonly OpenedFile[],
): Generator<{ term: Uint8Array; postings: () => Generator<RowPostings, void> }, void> {
  const cursors = shards.map(({ firstRow, file }) => {
    const terms = file.terms();
    return { firstRow, terms, next: terms.next().value ?? undefined };
  });
  for (;;) {
    let least: Uint8Array | undefined;
    for (const { next } of cursors) {
      if (next !== undefined && (least === undefined || Buffer.compare(next.term, least) < 0)) least = next.term;
    }
    if (least === undefined) return;
    const term = least;
    const having = cursors.filter(({ next }) => next !== undefined && Buffer.compare(next.term, term) === 0);
    yield {
      term,
      *postings() {
        for (const { firstRow, next } of having) {
          for (const { rows, tfs } of next!.postings()) yield { firstRow, rows, tfs };
        }
      },
    };
    for (const cursor of having) cursor.next = cursor.terms.next().value ?? undefined;
  }
}
