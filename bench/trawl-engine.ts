import { TrawlError } from '../src/errors.ts';
import { packageVersion } from '../src/package-root.ts';
import { FlatIndex } from '../src/vector-index/flat-index.ts';
import type { IndexSource } from '../src/vector-index/index-source.ts';
import { openEngine } from '../src/vector-index/open-engine.ts';
import type { VectorIndex } from '../src/vector-index/vector-index.ts';
import type { BenchEngine } from './bench-engine.ts';
import type { Matrix } from './npy.ts';
import { type CacheContext, codesOf, screenOf } from './vector-cache.ts';
import type { VectorFile } from './vector-file.ts';

/** Trawl over a file of vectors, in this process, as the server opens it. */
export async function openTrawlEngine(
  file: VectorFile,
  queries: Matrix,
  threads: number,
  withScreen: boolean,
  context: CacheContext,
): Promise<BenchEngine> {
  const index = await openIndex(file, threads, withScreen, context);
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

async function openIndex(
  file: VectorFile,
  threads: number,
  withScreen: boolean,
  context: CacheContext,
): Promise<VectorIndex> {
  const options = { threads, onWarning: context.note };
  const open = async (codes: string | undefined): Promise<VectorIndex> => {
    const screen = withScreen ? await screenOf(file, codes, context) : undefined;
    return openEngine(sourceOf(file, codes, screen), options);
  };
  try {
    return await open(await codesOf(file, context));
  } catch (error) {
    if (!(error instanceof TrawlError) || error.code !== 'INDEX_FILE_FOREIGN') throw error;
    context.note(`The cached codes are of another version (${error.message}); made again.`);
    return open(await codesOf(file, context, { again: true }));
  }
}

function sourceOf({ rows, dimension, segment }: VectorFile, codes?: string, screen?: string): IndexSource {
  const shard = {
    firstRow: 0,
    rows,
    segments: [segment],
    ...(codes === undefined ? {} : { codes }),
    ...(screen === undefined ? {} : { screen }),
  };
  return { rows, dimension, metric: 'inner-product', shards: [shard] };
}
