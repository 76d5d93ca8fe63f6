import { TrawlError } from '../../src/base/errors.ts';
import { packageVersion } from '../../src/base/package-root.ts';
import { memoryLimit } from '../../src/base/system/memory.ts';
import { readIntoPageCache, sizedFiles, totalBytes } from '../../src/base/system/page-cache.ts';
import { openEngine } from '../../src/engine/vectors/open-engine.ts';
import type { IndexSource, VectorIndex } from '../../src/engine/vectors/vector-index.ts';
import type { Matrix } from '../vectors/npy.ts';
import { type CacheContext, codesOf, prefilterOf } from '../vectors/vector-cache.ts';
import type { VectorFile } from '../vectors/vector-file.ts';
import type { FlatEngine } from './flat-engine.ts';

interface TrawlIndexOptions {
  readonly threads: number;
  readonly withPrefilter: boolean;
}

/** Opens Trawl's engine over a file of vectors in this process, as the server does. */
export async function openTrawlEngine(
  file: VectorFile,
  queries: Matrix,
  options: TrawlIndexOptions,
  context: CacheContext,
): Promise<FlatEngine> {
  const index = await openTrawlIndex(file, options, context);
  const isNative = 'sampledPrefilters' in index;
  const { dimension } = file;
  return {
    name: 'trawl',
    version: `trawl ${packageVersion} ${isNative ? context.kernel?.isa : 'reference'}`,
    async search(first, count, k) {
      const batch = queries.values.subarray(first * dimension, (first + count) * dimension);
      const started = performance.now();
      const { rows, scores, certificate } = await index.search({ queries: batch, count, k });
      const ms = performance.now() - started;
      if (certificate === null) return { ms, rows, scores };
      return { ms, rows, scores, candidates: certificate.rescored, fullScans: certificate.fullScans };
    },
    async residentBytes() {
      return isNative ? index.residentBytes : file.segment.bytes;
    },
    close: () => index.close(),
  };
}

/** The index of a file of vectors; its codes and prefilter are made if the cache does not have them. */
export async function openTrawlIndex(
  file: VectorFile,
  { threads, withPrefilter }: TrawlIndexOptions,
  context: CacheContext,
): Promise<VectorIndex> {
  const options = { threads, onWarning: context.note };
  const open = async (codes: string | undefined): Promise<VectorIndex> => {
    const prefilter = withPrefilter ? await prefilterOf(file, codes, context) : undefined;
    await warm([file.segment.path, codes, prefilter], context);
    return openEngine(sourceOf(file, codes, prefilter), options);
  };
  try {
    return await open(await codesOf(file, context));
  } catch (error) {
    if (!(error instanceof TrawlError) || error.code !== 'INDEX_FILE_FOREIGN') throw error;
    context.note(`The cached codes have another format version, so they are computed again (${error.message})`);
    return open(await codesOf(file, context, { again: true }));
  }
}

/**
 * Reads rows, codes and prefilter into the page cache, in this order, as the baselines hold all rows in memory. What does not
 * fit into half of the memory is left out: first the rows, then the codes.
 */
async function warm(paths: readonly (string | undefined)[], { signal, note }: CacheContext): Promise<void> {
  const files = await sizedFiles(paths.filter((path) => path !== undefined));
  let first = 0;
  while (totalBytes(files.slice(first)) > memoryLimit() / 2) first++;
  if (first > 0) {
    const left = files.slice(0, first).map(({ path }) => path);
    note(`Not read before the searches, because all files do not fit into half of the memory: ${left.join(', ')}`);
  }
  await readIntoPageCache(files.slice(first), { signal });
}

function sourceOf({ rows, dimension, segment }: VectorFile, codes?: string, prefilter?: string): IndexSource {
  const shard = {
    firstRow: 0,
    rows,
    segments: [segment],
    codes,
    prefilter,
  };
  return { rows, dimension, metric: 'inner-product', shards: [shard] };
}
