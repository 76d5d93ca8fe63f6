import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type CorpusPart, readCorpus } from '../corpus/open-corpus.ts';
import type { CorpusScan } from '../corpus/scan-corpus.ts';
import { requireFreeBytes } from '../src/base/system/free-bytes.ts';
import { codesBytes, maxPrefilterBytes } from '../src/engine/vectors/codes-size.ts';
import { flatFileBytes } from '../src/engine/vectors/faiss-format.ts';
import { DTYPE_BYTES } from '../src/engine/vectors/vector-segments.ts';
import { documentFields } from '../src/index/passages/document-fields.ts';
import { LOOKUPS } from '../src/index/passages/schema.ts';
import type { Build } from './building/build.ts';
import { type PlannedShard, rowsOf, storedPassages } from './building/planned-shard.ts';
import { PASSAGES_FILE } from './index-files.ts';

/** Bytes of an inverted index per byte of the documents: 0.19 for Wikipedia, with room for other corpora. */
const WORDS_SHARE = 0.25;
/** Row and headers of an entry of a look-up. */
const LOOKUP_ENTRY_BYTES = 8;
/** The tables and look-ups of a passage file each take a page, even if they are empty. */
const MIN_PASSAGES_BYTES = (LOOKUPS.length + 3) * 4096;
/** Passages in the sample for estimates. */
const SAMPLE_PASSAGES = 2_000;

export interface CorpusSample {
  /** Passages per input position: below 1 if there are blank lines. */
  readonly passagesPerPosition: number;
  /** Mean size of a document. */
  readonly documentBytes: number;
  /** Mean size of an id. */
  readonly idBytes: number;
  /** Mean size of the keys by which a passage can be looked up, with their rows. */
  readonly lookupBytes: number;
  readonly documents: readonly { readonly document: string; readonly row: Readonly<Record<string, unknown>> }[];
  /** Time to read the sample. */
  readonly ms: number;
}

/** Reads the first passages of a part of the corpus. */
export async function sampleCorpus({ files, corpusOptions }: Build, part: CorpusPart): Promise<CorpusSample> {
  const begun = performance.now();
  const last = Math.min(part.end, part.first + SAMPLE_PASSAGES);
  const documents: { document: string; row: Readonly<Record<string, unknown>> }[] = [];
  let [documentBytes, idBytes, lookupBytes] = [0, 0, 0];
  // A bad line is reported when the corpus is read for the build.
  const options = { ...corpusOptions, skipBadLines: true, part: { ...part, end: last } };
  for await (const { document, row, id } of readCorpus(files, options)) {
    documents.push({ document, row });
    documentBytes += Buffer.byteLength(document);
    idBytes += typeof id === 'string' ? Buffer.byteLength(id) : 8;
    const fields = documentFields(document);
    for (const key of [fields.id, fields.url, fields.title, fields.document]) {
      if (key !== undefined) lookupBytes += Buffer.byteLength(key) + LOOKUP_ENTRY_BYTES;
    }
  }
  const count = Math.max(1, documents.length);
  return {
    passagesPerPosition: last > part.first ? documents.length / (last - part.first) : 0,
    documentBytes: documentBytes / count,
    idBytes: idBytes / count,
    lookupBytes: lookupBytes / count,
    documents,
    ms: performance.now() - begun,
  };
}

/** Sizes of the files of shards, in bytes, without adopted files. */
export interface ExpectedBytes {
  readonly vectors: number;
  readonly codes: number;
  /** Upper limit: whether a shard gets a prefilter, and its size, depend on the vectors. */
  readonly prefilter: number;
  /** Inverted indexes. */
  readonly words: number;
  readonly passages: number;
  readonly total: number;
}

/** Sizes of the files of shards with `rows` rows. `passages` and `words` are estimated from the sample; without a sample they are 0. */
export function expectedBytes(
  rows: number,
  { space, kernel, bm25, vectors: files }: Build,
  sample?: CorpusSample,
): ExpectedBytes {
  const dimension = space?.dimension ?? 0;
  const hasCodes = dimension > 0 && kernel !== undefined;
  // A document with its id, its entries in the look-ups, and some overhead; pages are not completely full.
  const perRow = sample === undefined ? 0 : (sample.documentBytes + sample.idBytes + sample.lookupBytes + 24) * 1.05;
  const vectors = dimension > 0 && files?.use !== 'adopt' ? flatFileBytes(rows, dimension) : 0;
  const codes = hasCodes ? codesBytes(rows, dimension) : 0;
  const prefilter = hasCodes ? maxPrefilterBytes(rows, dimension) : 0;
  const words = bm25 === undefined ? 0 : Math.ceil(rows * (sample?.documentBytes ?? 0) * WORDS_SHARE);
  const passages = perRow === 0 ? 0 : Math.ceil(MIN_PASSAGES_BYTES + rows * perRow);
  return { vectors, codes, prefilter, words, passages, total: vectors + codes + prefilter + words + passages };
}

/** Resident bytes of an index: the bytes that every search reads, and that should fit in memory. */
export interface ExpectedResident {
  /** If each shard that can have a prefilter gets one. Upper limit. */
  readonly withPrefilters: number;
  /** If no shard gets a prefilter. The vectors decide. */
  readonly withoutPrefilters: number;
}

/** Resident bytes of `shards` shards with `rows` rows in total. For existing shards, see `residentBytes`. */
export function expectedResident(
  rows: number,
  shards: number,
  { space, kernel, vectors: files }: Build,
): ExpectedResident {
  if (rows === 0 || space === undefined) return { withPrefilters: 0, withoutPrefilters: 0 };
  const { dimension } = space;
  if (kernel === undefined) {
    const vectors = rows * dimension * DTYPE_BYTES[files?.use === 'adopt' ? files.set.dtype : 'float32'];
    return { withPrefilters: vectors, withoutPrefilters: vectors };
  }
  const rowsPerShard = Math.ceil(rows / shards);
  const withoutPrefilters = shards * codesBytes(rowsPerShard, dimension);
  const prefilters = shards * maxPrefilterBytes(rowsPerShard, dimension);
  return { withPrefilters: prefilters === 0 ? withoutPrefilters : prefilters, withoutPrefilters };
}

interface Output {
  readonly folder: string;
  readonly final: string;
}

/**
 * Compares the expected size of the shards' files with the free disk space, before passages are stored. Estimates it from the
 * first passages of the corpus.
 *
 * @param rows number of passages. Default: estimated from the share of blank lines among the first.
 * @throws TrawlError DISK_FULL.
 */
export async function checkSpaceForPassages(
  output: Output,
  build: Build,
  scan: CorpusScan | undefined,
  places: readonly PlannedShard[],
  rows?: number,
): Promise<void> {
  if (scan === undefined || places.every(({ folder }) => storedPassages(folder) !== undefined)) return;
  const sample = await sampleCorpus(build, { scan, first: places[0]!.first, end: places.at(-1)!.end });
  const positions = places.reduce((sum, { first, end }) => sum + end - first, 0);
  const count = rows ?? Math.round(positions * sample.passagesPerPosition);
  const what = rows === undefined ? `about ${count} passages` : `${count} new passages`;
  await requireSpace(output, places, expectedBytes(count, build, sample).total, what);
}

/** Compares the size of the shards' files with the free disk space, after passages are stored. @throws TrawlError DISK_FULL. */
export async function checkSpaceForVectors(
  output: Output,
  build: Build,
  shards: readonly { readonly folder: string; readonly rows: number }[],
): Promise<void> {
  const rows = rowsOf(shards);
  const stored = shards.reduce((sum, { folder }) => sum + bytesOf(join(folder, PASSAGES_FILE)), 0);
  await requireSpace(output, shards, expectedBytes(rows, build).total + stored, `${rows} passages`);
}

/**
 * Compares the final size of some folders, minus their current size, with the free disk space.
 *
 * @throws TrawlError DISK_FULL.
 */
export async function requireSpace(
  { folder, final }: Output,
  places: readonly { readonly folder: string }[],
  finalBytes: number,
  what: string,
): Promise<void> {
  const existing = places.reduce((sum, place) => sum + bytesIn(place.folder), 0);
  const hint = 'trawl index --plan prints the size of each file.';
  await requireFreeBytes({ path: final, disk: folder, bytes: finalBytes - existing, what, hint });
}

function bytesIn(folder: string): number {
  if (!existsSync(folder)) return 0;
  return readdirSync(folder).reduce((sum, name) => sum + bytesOf(join(folder, name)), 0);
}

function bytesOf(path: string): number {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats?.isFile() === true ? stats.size : 0;
}
