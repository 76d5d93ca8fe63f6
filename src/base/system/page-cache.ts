import { open, stat } from 'node:fs/promises';
import { throwIfCancelled } from '../abort.ts';

const BLOCK_BYTES = 8 * 1024 * 1024;

export interface SizedFile {
  readonly path: string;
  readonly bytes: number;
}

export interface ReadOptions {
  /** Called with the bytes read so far and the bytes to read. */
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

export function sizedFiles(paths: readonly string[]): Promise<SizedFile[]> {
  return Promise.all(paths.map(async (path) => ({ path, bytes: (await stat(path)).size })));
}

export function totalBytes(files: readonly SizedFile[]): number {
  return files.reduce((sum, { bytes }) => sum + bytes, 0);
}

/**
 * Reads files once, so that they are in the page cache and searches of mapped files do not wait for the disk. What is read last
 * stays there longest.
 */
export async function readIntoPageCache(files: readonly SizedFile[], options: ReadOptions = {}): Promise<void> {
  const { onProgress = () => undefined, signal } = options;
  const total = totalBytes(files);
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
