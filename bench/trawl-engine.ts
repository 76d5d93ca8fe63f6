import { TrawlError } from '../src/errors.ts';
import { packageVersion } from '../src/package-root.ts';
import { FlatIndex } from '../src/vector-index/flat-index.ts';
import type { IndexSource } from '../src/vector-index/index-source.ts';
import { openEngine } from '../src/vector-index/open-engine.ts';
import type { VectorIndex } from '../src/vector-index/vector-index.ts';
import type { BenchEngine } from './bench-engine.ts';
import type { Matrix } from './npy.ts';
import { type CacheContext, codesOf } from './vector-cache.ts';
import type { VectorFile } from './vector-file.ts';

/** Trawl over a file of vectors, in this process, as the server opens it. */
export async function openTrawlEngine(
  file: VectorFile,
  queries: Matrix,
  threads: number,
  context: CacheContext,
): Promise<BenchEngine> {
  const index = await openIndex(file, threads, context);
  const { dimension, values } = { dimension: file.dimension, values: queries.values };
  return {
    name: 'trawl',
    version: `trawl ${packageVersion} ${index instanceof FlatIndex ? context.kernel?.isa : 'reference'}`,
    async search(first, count, k) {
      const batch = values.subarray(first * dimension, (first + count) * dimension);
      const started = performance.now();
      const { rows, scores, certificate } = await index.search({ queries: batch, count, k });
      const ms = performance.now() - started;
      if (certificate === undefined) return { ms, rows, scores };
      return { ms, rows, scores, candidates: certificate.rescored, fullScans: certificate.fullScans };
    },
    async residentBytes() {
      return index instanceof FlatIndex ? index.residentBytes : file.segment.bytes;
    },
    close: () => index.close(),
  };
}

async function openIndex(file: VectorFile, threads: number, context: CacheContext): Promise<VectorIndex> {
  const options = { threads, onWarning: context.note };
  try {
    return await openEngine(sourceOf(file, await codesOf(file, context)), options);
  } catch (error) {
    if (!(error instanceof TrawlError) || error.code !== 'INDEX_FILE_FOREIGN') throw error;
    context.note(`The cached codes are of another version (${error.message}); made again.`);
    return openEngine(sourceOf(file, await codesOf(file, context, { again: true })), options);
  }
}

function sourceOf({ rows, dimension, segment }: VectorFile, codes: string | undefined): IndexSource {
  const shard = { firstRow: 0, rows, segments: [segment], ...(codes === undefined ? {} : { codes }) };
  return { rows, dimension, metric: 'inner-product', shards: [shard] };
}
