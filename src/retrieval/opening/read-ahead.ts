import { open, stat } from 'node:fs/promises';
import { throwIfCancelled } from '../../abort.ts';
import { memoryLimit } from '../../system/memory.ts';
import { type IndexDirectory, prefilterPath, within } from './index-directory.ts';

const BLOCK_BYTES = 8 * 1024 * 1024;

export interface ReadAheadOptions {
  /** Called with the bytes read so far and the bytes to read. */
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

/**
 * Reads prefilters and codes once, so that they are in the page cache before the first query. If they are larger than half of
 * the memory that this process may use, reads only the resident bytes: prefilters, and the codes of shards without a prefilter.
 */
export async function readAhead(directory: IndexDirectory, options: ReadAheadOptions = {}): Promise<void> {
  const { onProgress = () => undefined, signal } = options;
  const files = await filesToRead(directory, memoryLimit() / 2);
  const total = files.reduce((sum, { bytes }) => sum + bytes, 0);
  const block = Buffer.allocUnsafe(BLOCK_BYTES);
  let done = 0;
  onProgress(done, total);
  for (const { path } of files) {
    const file = await open(path, 'r');
    try {
      for (;;) {
        throwIfCancelled(signal);
        const { bytesRead } = await file.read(block, 0, BLOCK_BYTES);
        if (bytesRead === 0) break;
        done += bytesRead;
        onProgress(done, total);
      }
    } finally {
      await file.close();
    }
  }
}

/** Codes of shards with a prefilter come first: the files read last stay in the page cache longest. */
async function filesToRead(
  { shards }: IndexDirectory,
  budget: number,
): Promise<{ readonly path: string; readonly bytes: number }[]> {
  const sized = async (paths: readonly string[]): Promise<{ path: string; bytes: number }[]> =>
    Promise.all(paths.map(async (path) => ({ path, bytes: (await stat(path)).size })));
  const codesOf = ({ folder, manifest }: IndexDirectory['shards'][number]): string[] =>
    manifest.codes === null ? [] : [within(folder, manifest.codes.path)];
  const prefilteredCodes = await sized(
    shards.flatMap((shard) => (prefilterPath(shard) === null ? [] : codesOf(shard))),
  );
  const resident = await sized(
    shards.flatMap((shard) => {
      const prefilter = prefilterPath(shard);
      return prefilter === null ? codesOf(shard) : [prefilter];
    }),
  );
  const all = [...prefilteredCodes, ...resident];
  return all.reduce((sum, { bytes }) => sum + bytes, 0) <= budget ? all : resident;
}
