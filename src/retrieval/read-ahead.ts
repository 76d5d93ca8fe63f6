import { open, stat } from 'node:fs/promises';
import { throwIfCancelled } from '../abort.ts';
import { memoryLimit } from '../embedding/memory-limit.ts';
import { type IndexDirectory, screenPath, within } from './index-directory.ts';

const BLOCK_BYTES = 8 * 1024 * 1024;

export interface ReadAheadOptions {
  /** Bytes read so far and in all. */
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

/**
 * Reads what a search wants in memory from the disk once, in order, so that the system's page cache has it before the
 * first queries jump about in it. What is larger than half of the memory this process may use is read only as far as it
 * has to be resident: screens, and codes that have none.
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

/** Codes behind a screen come first: where memory is short, they are what the cache gives up first. */
async function filesToRead(
  { shards }: IndexDirectory,
  budget: number,
): Promise<{ readonly path: string; readonly bytes: number }[]> {
  const sized = async (paths: readonly string[]): Promise<{ path: string; bytes: number }[]> =>
    Promise.all(paths.map(async (path) => ({ path, bytes: (await stat(path)).size })));
  const codesOf = ({ folder, manifest }: IndexDirectory['shards'][number]): string[] =>
    manifest.codes === null ? [] : [within(folder, manifest.codes.path)];
  const behind = await sized(shards.flatMap((shard) => (screenPath(shard) === null ? [] : codesOf(shard))));
  const resident = await sized(
    shards.flatMap((shard) => {
      const screen = screenPath(shard);
      return screen === null ? codesOf(shard) : [screen];
    }),
  );
  const all = [...behind, ...resident];
  return all.reduce((sum, { bytes }) => sum + bytes, 0) <= budget ? all : resident;
}
