import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { CorpusPart } from '../../corpus/open-corpus.ts';
import { requireFreeBytes } from '../../src/base/system/free-bytes.ts';
import { codesBytes, maxPrefilterBytes } from '../../src/engine/vectors/codes-size.ts';
import { flatFileBytes } from '../../src/engine/vectors/faiss-format.ts';
import { DTYPE_BYTES } from '../../src/engine/vectors/vector-segments.ts';
import { documentFields } from '../../src/index/passages/document-fields.ts';
import { LOOKUPS } from '../../src/index/passages/schema.ts';
import { PASSAGES_FILE } from '../index-files.ts';
import type { Build } from './build.ts';
import type { WorkFolder } from './keep-on-failure.ts';
import { type PlannedShard, type ShardPlan, type StoredShard, storedPassages, totalRows } from './planned-shard.ts';

/** Bytes of an inverted index per byte of the documents: 0.19 for Wikipedia, with room for other corpora. */
const WORDS_SHARE = 0.25;
/** Row and headers of an entry of a look-up. */
const LOOKUP_ENTRY_BYTES = 8;
/** The tables and look-ups of a passage file each take a page, even if they are empty. */
const MIN_PASSAGES_BYTES = (LOOKUPS.length + 3) * 4096;
const SAMPLE_PASSAGES = 2_000;

export interface CorpusSample {
  /** Passages per input position: below 1 if there are blank lines. */
  readonly passagesPerPosition: number;
  readonly documentBytes: number;
  /** Mean size of a document in a passage file, with its id and its entries in the look-ups. */
  readonly rowBytes: number;
  readonly documents: readonly { readonly document: string; readonly row: Readonly<Record<string, unknown>> }[];
  readonly ms: number;
}

export async function sampleCorpus({ corpus }: Build, part: CorpusPart): Promise<CorpusSample> {
  const begun = performance.now();
  const last = Math.min(part.end, part.first + SAMPLE_PASSAGES);
  const documents: { document: string; row: Readonly<Record<string, unknown>> }[] = [];
  let [documentBytes, keyBytes] = [0, 0];
  // A bad line is reported when the corpus is read for the build.
  const sample = corpus.with({ skipBadLines: true, part: { ...part, end: last } });
  for await (const { document, row, id } of sample) {
    documents.push({ document, row });
    documentBytes += Buffer.byteLength(document);
    keyBytes += typeof id === 'string' ? Buffer.byteLength(id) : 8;
    const fields = documentFields(document);
    for (const key of [fields.id, fields.url, fields.title, fields.document]) {
      if (key !== undefined) keyBytes += Buffer.byteLength(key) + LOOKUP_ENTRY_BYTES;
    }
  }
  const count = Math.max(1, documents.length);
  return {
    passagesPerPosition: last > part.first ? documents.length / (last - part.first) : 0,
    documentBytes: documentBytes / count,
    rowBytes: (documentBytes + keyBytes) / count,
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
  // With some overhead; pages are not completely full.
  const perRow = sample === undefined ? 0 : (sample.rowBytes + 24) * 1.05;
  const vectors = dimension > 0 && files?.use !== 'adopt' ? flatFileBytes(rows, dimension) : 0;
  const codes = hasCodes ? codesBytes(rows, dimension) : 0;
  const prefilter = hasCodes ? maxPrefilterBytes(rows, dimension) : 0;
  const words = bm25 === undefined ? 0 : Math.ceil(rows * (sample?.documentBytes ?? 0) * WORDS_SHARE);
  const passages = perRow === 0 ? 0 : Math.ceil(MIN_PASSAGES_BYTES + rows * perRow);
  return { vectors, codes, prefilter, words, passages, total: vectors + codes + prefilter + words + passages };
}

/**
 * The bytes that every search reads, and that should fit in memory, of `shards` new shards with `rows` rows in total. The vectors will
 * decide which shards get a prefilter, so there are two sums: all shards that can have one get one, or none does. For existing shards,
 * see `residentBytes`.
 */
export function expectedResident(
  rows: number,
  shards: number,
  { space, kernel, vectors: files }: Build,
): { withPrefilters: number; withoutPrefilters: number } {
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

/**
 * Compares the expected size of the shards' files with the free disk space, before passages are stored. The size is estimated from the
 * first passages of the corpus; so is the number of passages, except in updates, which know it.
 *
 * @throws TrawlError DISK_FULL.
 */
export async function checkSpaceForPassages(
  build: Build,
  work: WorkFolder,
  { scan, places }: ShardPlan,
): Promise<void> {
  if (scan === undefined || places.every(({ folder }) => storedPassages(folder) !== undefined)) return;
  const sample = await sampleCorpus(build, { scan, first: places[0]!.first, end: places.at(-1)!.end });
  const positions = places.reduce((sum, { first, end }) => sum + end - first, 0);
  const isKnown = places[0]!.rows !== undefined;
  const rows = isKnown
    ? places.reduce((sum, place) => sum + place.rows!, 0)
    : Math.round(positions * sample.passagesPerPosition);
  const what = isKnown ? `${rows} new passages` : `about ${rows} passages`;
  await requireSpace(build, work, places, { rows, what, sample });
}

/** Compares the size of the shards' files with the free disk space, after passages are stored. @throws TrawlError DISK_FULL. */
export async function checkSpaceForVectors(
  build: Build,
  work: WorkFolder,
  shards: readonly StoredShard[],
): Promise<void> {
  const rows = totalRows(shards);
  const stored = shards.reduce((sum, { folder }) => sum + fileBytes(join(folder, PASSAGES_FILE)), 0);
  await requireSpace(build, work, shards, { rows, what: `${rows} passages`, stored });
}

export const PLAN_HINT = 'trawl index --plan prints the size of each file.';

/** Without `sample`, the passages are stored already, and `stored` is the bytes of their files. */
async function requireSpace(
  build: Build,
  { folder, final }: WorkFolder,
  places: readonly PlannedShard[],
  { rows, what, sample, stored = 0 }: { rows: number; what: string; sample?: CorpusSample; stored?: number },
): Promise<void> {
  const existing = places.reduce((sum, place) => sum + folderBytes(place.folder), 0);
  const bytes = expectedBytes(rows, build, sample).total + stored - existing;
  await requireFreeBytes({ path: final, disk: folder, bytes, what, hint: PLAN_HINT });
}

function folderBytes(folder: string): number {
  if (!existsSync(folder)) return 0;
  return readdirSync(folder).reduce((sum, name) => sum + fileBytes(join(folder, name)), 0);
}

function fileBytes(path: string): number {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats?.isFile() === true ? stats.size : 0;
}
