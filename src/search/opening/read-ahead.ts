import { memoryLimit } from '../../base/system/memory.ts';
import {
  type ReadOptions,
  readIntoPageCache,
  type SizedFile,
  sizedFiles,
  totalBytes,
} from '../../base/system/page-cache.ts';
import { type IndexDirectory, prefilterPath, within } from './index-directory.ts';

/**
 * Reads prefilters and codes once, so that they are in the page cache before the first query. If they are larger than half of
 * the memory that this process may use, reads only the resident bytes: prefilters, and the codes of shards without a prefilter.
 */
export async function readAhead(directory: IndexDirectory, options: ReadOptions = {}): Promise<void> {
  await readIntoPageCache(await filesToRead(directory, memoryLimit() / 2), options);
}

/** Codes of shards with a prefilter come first: the files read last stay in the page cache longest. */
async function filesToRead({ shards }: IndexDirectory, budget: number): Promise<SizedFile[]> {
  const codesOf = ({ folder, manifest }: IndexDirectory['shards'][number]): string[] =>
    manifest.codes === null ? [] : [within(folder, manifest.codes.path)];
  const prefilteredCodes = await sizedFiles(
    shards.flatMap((shard) => (prefilterPath(shard) === null ? [] : codesOf(shard))),
  );
  const resident = await sizedFiles(
    shards.flatMap((shard) => {
      const prefilter = prefilterPath(shard);
      return prefilter === null ? codesOf(shard) : [prefilter];
    }),
  );
  const all = [...prefilteredCodes, ...resident];
  return totalBytes(all) <= budget ? all : resident;
}
