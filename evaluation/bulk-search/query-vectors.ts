import { openVectorFiles } from '../../indexer/vector-files/open-vector-files.ts';
import { TrawlError, usageError } from '../../src/base/errors.ts';
import { sha256OfFile } from '../../src/base/system/file-checksum.ts';
import { firstNonFinite } from '../../src/engine/first-non-finite.ts';
import { SegmentReader } from '../../src/engine/vectors/vector-segments.ts';
import type { EmbeddedQuery } from '../../src/search/calls/retrieve-call.ts';
import { FvecsReader } from './fvecs.ts';
import { regularFile } from './query-file.ts';
import type { BulkQuery, QuerySource } from './query-source.ts';

/** Vectors that are read at once. */
const BLOCK_ROWS = 1024;

/** Rows of float32 vectors. */
interface VectorReader {
  readonly rows: number;
  readonly dimension: number;
  /** Fills `target` (row-major) with the rows [first, first + count). */
  read(first: number, count: number, target: Float32Array): void;
  close(): void;
}

/**
 * The queries whose vectors are in a file, instead of texts that an encoder embeds: `.fvecs`, or a vector file that `trawl index
 * --vectors` reads too (`.npy`, FAISS). Without `texts` the ids are the row numbers of the file, from 0; with them, row i is the vector
 * of query i.
 *
 * @throws TrawlError CORPUS_EMPTY, DIMENSION_MISMATCH, USAGE unless there are as many vectors as texts, VECTORS_….
 */
export async function openQueryVectors(
  path: string,
  { dimension, texts, signal }: { dimension: number; texts: QuerySource | undefined; signal: AbortSignal },
): Promise<QuerySource> {
  regularFile(path);
  const reader = openReader(path, dimension);
  try {
    if (reader.dimension !== dimension) {
      throw new TrawlError(
        'DIMENSION_MISMATCH',
        `${path} has vectors of ${reader.dimension} dimensions, the index of ${dimension}. Embed the queries with the model of the index.`,
      );
    }
    if (reader.rows === 0) {
      throw new TrawlError('CORPUS_EMPTY', `${path} has no vectors. Check how it was written.`, { details: { path } });
    }
    if (texts !== undefined && texts.count !== reader.rows) {
      throw usageError(
        `--query-vectors ${path} has ${reader.rows} vectors, but --queries has ${texts.count} queries. Row i must be the vector of query i.`,
      );
    }
    const hashes = { ...texts?.hashes, 'query vectors': await sha256OfFile(path, signal) };
    return new VectorSource(path, reader, texts, hashes);
  } catch (error) {
    reader.close();
    throw error;
  }
}

function openReader(path: string, dimension: number): VectorReader {
  if (path.toLowerCase().endsWith('.fvecs')) return new FvecsReader(path);
  const files = openVectorFiles([path], { dimension });
  return new SegmentReader(files.segments, files.dimension);
}

class VectorSource implements QuerySource {
  readonly count: number;
  readonly hasRounds: boolean;
  readonly hashes: Readonly<Record<string, string>>;
  readonly #path: string;
  readonly #reader: VectorReader;
  readonly #texts: QuerySource | undefined;

  constructor(
    path: string,
    reader: VectorReader,
    texts: QuerySource | undefined,
    hashes: Readonly<Record<string, string>>,
  ) {
    this.count = reader.rows;
    this.hasRounds = texts?.hasRounds ?? false;
    this.hashes = hashes;
    this.#path = path;
    this.#reader = reader;
    this.#texts = texts;
  }

  async *read(first: number, end: number): AsyncGenerator<readonly BulkQuery[], void> {
    if (this.#texts === undefined) {
      for (let at = first; at < end; at += BLOCK_ROWS) {
        const count = Math.min(BLOCK_ROWS, end - at);
        yield this.#vectors(at, count).map((vector, i) => ({ id: String(at + i), query: withVector('', vector) }));
      }
      return;
    }
    let at = first;
    for await (const queries of this.#texts.read(first, end)) {
      for (let start = 0; start < queries.length; start += BLOCK_ROWS) {
        const some = queries.slice(start, start + BLOCK_ROWS);
        const vectors = this.#vectors(at, some.length);
        at += some.length;
        yield some.map((each, i) => ({ ...each, query: withVector(each.query, vectors[i]!) }));
      }
    }
  }

  close(): void {
    this.#reader.close();
    this.#texts?.close();
  }

  /** Checked here, because the engine refuses a whole batch without naming the file. */
  #vectors(first: number, count: number): Float32Array[] {
    const { dimension } = this.#reader;
    const block = new Float32Array(count * dimension);
    this.#reader.read(first, count, block);
    const bad = firstNonFinite(block);
    if (bad >= 0) {
      const [query, column] = [first + Math.floor(bad / dimension), bad % dimension];
      throw new TrawlError('NON_FINITE_QUERY', `${this.#path}: query ${query} has ${block[bad]} in column ${column}.`, {
        details: { query, column },
      });
    }
    return Array.from({ length: count }, (_, i) => block.subarray(i * dimension, (i + 1) * dimension));
  }
}

function withVector(query: BulkQuery['query'], vector: Float32Array): EmbeddedQuery {
  const input = typeof query === 'object' && 'vector' in query ? query.input : query;
  return { input, truncate: 'tail', embedding: { tokens: 0, truncated: false, text: '', cut: 'nothing' }, vector };
}
