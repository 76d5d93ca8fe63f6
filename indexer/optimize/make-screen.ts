import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { sha256OfFile } from '../../src/file-checksum.ts';
import type { FileRecord } from '../../src/manifest/schemas.ts';
import type { ShardManifest } from '../../src/manifest/shard-manifest.ts';
import type { Kernel, NativeRows } from '../../src/vector-index/kernel.ts';
import { SCREEN_FILE } from '../index-files.ts';

export interface WrittenScreen {
  readonly screen: NonNullable<ShardManifest['screen']>;
  /** Absent where none was made. */
  readonly file: FileRecord | undefined;
}

/**
 * The screen of a shard's finished codes, where one pays.
 *
 * @param making name under which the file is written; the record has the name it is to get.
 * @throws TrawlError DISK_FULL, INDEX_FILE_MISSING, INDEX_FILE_FOREIGN or CANCELLED.
 */
export async function makeScreen(
  folder: string,
  codesPath: string,
  { rows, dimension }: { rows: NativeRows; dimension: number },
  kernel: Kernel,
  { making = SCREEN_FILE, signal }: { making?: string; signal?: AbortSignal | undefined } = {},
): Promise<WrittenScreen> {
  const path = join(folder, making);
  const { directions, reason } = await kernel.makeScreen(path, codesPath, rows, dimension, { signal });
  if (directions === 0) return { screen: { path: null, reason }, file: undefined };
  return {
    screen: { path: SCREEN_FILE, reason },
    file: { path: SCREEN_FILE, bytes: (await stat(path)).size, sha256: await sha256OfFile(path, signal) },
  };
}
