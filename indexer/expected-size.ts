import { type CorpusOptions, openCorpus } from '../corpus/open-corpus.ts';
import type { CorpusScan } from '../corpus/scan-corpus.ts';
import { codesBytes, mostScreenBytes } from '../src/vector-index/codes-size.ts';
import { flatFileBytes } from '../src/vector-index/faiss-format.ts';

/** Passages looked at to guess at the others. */
const SAMPLE_PASSAGES = 2_000;

export interface CorpusSample {
  /** Passages for each input position: below 1 where there are blank lines. */
  readonly passagesPerPosition: number;
  /** Mean bytes of a document, and of its id. */
  readonly documentBytes: number;
  readonly idBytes: number;
  readonly documents: readonly { readonly document: string; readonly row: Readonly<Record<string, unknown>> }[];
  readonly ms: number;
}

/** Looks at the first passages from input position `first` on. */
export async function sampleCorpus(
  corpus: readonly string[],
  corpusOptions: CorpusOptions,
  { scan, first, end }: { scan: CorpusScan; first: number; end: number },
): Promise<CorpusSample> {
  const begun = performance.now();
  const last = Math.min(end, first + SAMPLE_PASSAGES);
  const documents: { document: string; row: Readonly<Record<string, unknown>> }[] = [];
  let [documentBytes, idBytes] = [0, 0];
  // A bad line is for the reading proper to tell.
  const options = { ...corpusOptions, skipBadLines: true, part: { scan, first, end: last } };
  for await (const { document, row, id } of openCorpus(corpus, options)) {
    documents.push({ document, row });
    documentBytes += Buffer.byteLength(document);
    idBytes += typeof id === 'string' ? Buffer.byteLength(id) : 8;
  }
  const count = Math.max(1, documents.length);
  return {
    passagesPerPosition: last > first ? documents.length / (last - first) : 0,
    documentBytes: documentBytes / count,
    idBytes: idBytes / count,
    documents,
    ms: performance.now() - begun,
  };
}

/** Bytes of the files of a shard, or of all shards together; the passage file's as a guess from a sample. */
export function expectedBytes(
  rows: number,
  { dimension, codes, sample }: { dimension: number; codes: boolean; sample?: CorpusSample | undefined },
): { vectors: number; codes: number; screen: number; passages: number } {
  // A row has its document, its id in the table and in the index, a few bytes of SQLite's; pages are not quite full.
  const perRow = sample === undefined ? 0 : (sample.documentBytes + 2 * sample.idBytes + 24) * 1.05;
  return {
    vectors: flatFileBytes(rows, dimension),
    codes: codes ? codesBytes(rows, dimension) : 0,
    screen: codes ? mostScreenBytes(rows, dimension) : 0,
    passages: Math.ceil(rows * perRow),
  };
}
