import { type CorpusOptions, openCorpus } from '../corpus/open-corpus.ts';
import type { CorpusScan } from '../corpus/scan-corpus.ts';
import { codesBytes, maxPrefilterBytes } from '../src/engine/vectors/codes-size.ts';
import { flatFileBytes } from '../src/engine/vectors/faiss-format.ts';
import { DTYPE_BYTES, type VectorDtype } from '../src/engine/vectors/vector-segments.ts';
import { documentFields } from '../src/index/passages/document-fields.ts';
import { LOOKUPS } from '../src/index/passages/schema.ts';

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

/** Reads the first passages of input positions [first, end). */
export async function sampleCorpus(
  corpus: readonly string[],
  corpusOptions: CorpusOptions,
  { scan, first, end }: { scan: CorpusScan; first: number; end: number },
): Promise<CorpusSample> {
  const begun = performance.now();
  const last = Math.min(end, first + SAMPLE_PASSAGES);
  const documents: { document: string; row: Readonly<Record<string, unknown>> }[] = [];
  let [documentBytes, idBytes, lookupBytes] = [0, 0, 0];
  // A bad line is reported when the corpus is read for the build.
  const options = { ...corpusOptions, skipBadLines: true, part: { scan, first, end: last } };
  for await (const { document, row, id } of openCorpus(corpus, options)) {
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
    passagesPerPosition: last > first ? documents.length / (last - first) : 0,
    documentBytes: documentBytes / count,
    idBytes: idBytes / count,
    lookupBytes: lookupBytes / count,
    documents,
    ms: performance.now() - begun,
  };
}

/** Sizes of the files of one or more shards. `passages` and `words` are estimated from the sample; without a sample they are 0. */
export function expectedBytes(
  rows: number,
  {
    dimension,
    codes,
    words = false,
    sample,
  }: { dimension: number; codes: boolean; words?: boolean; sample?: CorpusSample },
): { vectors: number; codes: number; prefilter: number; words: number; passages: number } {
  // A document with its id, its entries in the look-ups, and some overhead; pages are not completely full.
  const perRow = sample === undefined ? 0 : (sample.documentBytes + sample.idBytes + sample.lookupBytes + 24) * 1.05;
  const hasVectors = dimension > 0;
  return {
    vectors: hasVectors ? flatFileBytes(rows, dimension) : 0,
    codes: hasVectors && codes ? codesBytes(rows, dimension) : 0,
    prefilter: hasVectors && codes ? maxPrefilterBytes(rows, dimension) : 0,
    words: words ? Math.ceil(rows * (sample?.documentBytes ?? 0) * WORDS_SHARE) : 0,
    passages: perRow === 0 ? 0 : Math.ceil(MIN_PASSAGES_BYTES + rows * perRow),
  };
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
  {
    dimension,
    codes,
    shards,
    dtype = 'float32',
  }: { dimension: number; codes: boolean; shards: number; dtype?: VectorDtype },
): ExpectedResident {
  if (rows === 0 || dimension === 0) return { withPrefilters: 0, withoutPrefilters: 0 };
  if (!codes) {
    const vectors = rows * dimension * DTYPE_BYTES[dtype];
    return { withPrefilters: vectors, withoutPrefilters: vectors };
  }
  const rowsPerShard = Math.ceil(rows / shards);
  const withoutPrefilters = shards * codesBytes(rowsPerShard, dimension);
  const prefilters = shards * maxPrefilterBytes(rowsPerShard, dimension);
  return { withPrefilters: prefilters === 0 ? withoutPrefilters : prefilters, withoutPrefilters };
}
