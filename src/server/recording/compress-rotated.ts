import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { constants, createZstdCompress } from 'node:zlib';
import { isNodeError } from '../../base/errors.ts';
import { syncFolder } from '../../base/system/durable-file.ts';

export const COMPRESSED_SUFFIX = '.zst';

/** Bytes per read and write. */
const CHUNK_BYTES = 256 * 1024;

/**
 * Replaces a file that no longer grows by `path.zst` (zstd with a checksum, on Node's thread pool). `path` is removed only when the
 * compressed file is complete on the disk. After a kill in between both are there with the same lines: readers then use `path`, and the
 * next compression starts again.
 *
 * @throws the system's error, or the reason of `signal`; `path` is unchanged then.
 */
export async function compressRotated(path: string, signal: AbortSignal): Promise<void> {
  const packed = `${path}${COMPRESSED_SUFFIX}`;
  const partial = `${packed}.partial`;
  const source = await open(path, 'r');
  try {
    const { mode } = await source.stat();
    const target = await open(partial, 'w', mode & 0o777);
    try {
      await pack(source, target, signal);
      await target.sync();
    } finally {
      await target.close().catch(() => undefined);
    }
    await rename(partial, packed);
    await syncFolder(dirname(path));
  } catch (error) {
    await rm(partial, { force: true }).catch(() => undefined);
    throw error;
  } finally {
    await source.close().catch(() => undefined);
  }
  await rm(path, { force: true });
}

async function pack(source: FileHandle, target: FileHandle, signal: AbortSignal): Promise<void> {
  const options = { highWaterMark: CHUNK_BYTES, autoClose: false };
  const packer = createZstdCompress({ chunkSize: CHUNK_BYTES, params: { [constants.ZSTD_c_checksumFlag]: 1 } });
  await pipeline(
    source.createReadStream(options),
    packer,
    async (chunks: AsyncIterable<Buffer>) => {
      for await (const chunk of chunks) await target.writeFile(chunk);
    },
    { signal },
  );
}

export async function formsOf(path: string): Promise<{ readonly plain: boolean; readonly compressed: boolean }> {
  const [plain, compressed] = await Promise.all([exists(path), exists(`${path}${COMPRESSED_SUFFIX}`)]);
  return { plain, compressed };
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if (isNodeError(error) && error.code === 'ENOENT') return false;
    throw error;
  }
}
