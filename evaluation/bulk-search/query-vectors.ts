import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openVectorFiles } from '../../indexer/vector-files/open-vector-files.ts';
import { TrawlError, usageError } from '../../src/base/errors.ts';
import { sha256OfFile } from '../../src/base/system/file-checksum.ts';
import { firstNonFinite } from '../../src/engine/typed-arrays.ts';
import { SegmentReader } from '../../src/engine/vectors/vector-segments.ts';
import type { EmbeddedQuery } from '../../src/search/calls/retrieve-call.ts';
import { type BulkQuery, type QuerySource, regularFile } from './query-file.ts';

const BLOCK_ROWS = 1024;

type VectorReader = Pick<SegmentReader, 'rows' | 'dimension' | 'read' | 'close'>;

/**
 * The queries whose vectors are in a file that `trawl import` reads too, instead of texts that an encoder embeds. Without `texts` the ids are the row numbers of the file, from 0; with them, row i is the vector
 * of query i.
 *
 * @throws TrawlError CORPUS_EMPTY, DIMENSION_MISMATCH, USAGE unless there are as many vectors as texts, VECTORS_….
 */
export async function openQueryVectors(
  path: string,
  { dimension, texts, signal }: { dimension: number; texts: QuerySource | undefined; signal: AbortSignal },
): Promise<QuerySource> {
  regularFile(path);
  const reader = await openReader(path, dimension, signal);
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
    return {
      count: reader.rows,
      hasRounds: texts?.hasRounds ?? false,
      hashes,
      read: (first, end) => readQueries((at, count) => readVectors(path, reader, at, count), texts, first, end),
      close() {
        reader.close();
        texts?.close();
      },
    };
  } catch (error) {
    reader.close();
    throw error;
  }
}

async function openReader(path: string, dimension: number, signal: AbortSignal): Promise<VectorReader> {
  const folder = await mkdtemp(join(tmpdir(), 'trawl-queries-'));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  try {
    const files = await openVectorFiles([path], { dimension, workingFile: join(folder, 'vectors'), signal });
    const reader = new SegmentReader(files.segments, files.dimension);
    return {
      rows: reader.rows,
      dimension: reader.dimension,
      read: (first, count, target) => reader.read(first, count, target),
      close() {
        reader.close();
        remove();
      },
    };
  } catch (error) {
    remove();
    throw error;
  }
}

async function* readQueries(
  readBlock: (first: number, count: number) => Float32Array[],
  texts: QuerySource | undefined,
  first: number,
  end: number,
): AsyncGenerator<readonly BulkQuery[], void> {
  if (texts === undefined) {
    for (let at = first; at < end; at += BLOCK_ROWS) {
      const vectors = readBlock(at, Math.min(BLOCK_ROWS, end - at));
      yield vectors.map((vector, i) => ({ id: String(at + i), query: withVector('', vector) }));
    }
    return;
  }
  let at = first;
  for await (const queries of texts.read(first, end)) {
    for (let start = 0; start < queries.length; start += BLOCK_ROWS) {
      const some = queries.slice(start, start + BLOCK_ROWS);
      const vectors = readBlock(at, some.length);
      at += some.length;
      yield some.map((each, i) => ({ ...each, query: withVector(each.query, vectors[i]!) }));
    }
  }
}

/** Vectors of queries. They are checked here, because the engine refuses a whole batch without naming the file. */
function readVectors(path: string, reader: VectorReader, first: number, count: number): Float32Array[] {
  const { dimension } = reader;
  const block = new Float32Array(count * dimension);
  reader.read(first, count, block);
  const bad = firstNonFinite(block);
  if (bad >= 0) {
    const [query, column] = [first + Math.floor(bad / dimension), bad % dimension];
    throw new TrawlError('NON_FINITE_QUERY', `${path}: query ${query} has ${block[bad]} in column ${column}.`, {
      details: { query, column },
    });
  }
  return Array.from({ length: count }, (_, i) => block.subarray(i * dimension, (i + 1) * dimension));
}

function withVector(query: BulkQuery['query'], vector: Float32Array): EmbeddedQuery {
  const input = typeof query === 'object' && 'vector' in query ? query.input : query;
  return { input, truncate: 'tail', embedding: { tokens: 0, truncated: false, text: '', cut: 'nothing' }, vector };
}
