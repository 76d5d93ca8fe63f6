import { join } from 'node:path';
import type { Kernel, NativeRows } from '../../src/engine/native/kernel.ts';
import type { FileRecord } from '../../src/index/manifest/schemas.ts';
import type { ShardManifest } from '../../src/index/manifest/shard-manifest.ts';
import { fileRecord, PREFILTER_FILE } from '../index-files.ts';

export interface WrittenPrefilter {
  readonly prefilter: NonNullable<ShardManifest['prefilter']>;
  /** Undefined if a prefilter would not make searches faster. */
  readonly file: FileRecord | undefined;
}

/**
 * Makes the prefilter of a shard's finished codes, unless it would not make searches faster.
 *
 * @param fileName name of the written file. The record has the final name, PREFILTER_FILE.
 * @throws TrawlError DISK_FULL, INDEX_FILE_MISSING, INDEX_FILE_FOREIGN or CANCELLED.
 */
export async function makePrefilter(
  folder: string,
  codesPath: string,
  { rows, dimension }: { rows: NativeRows; dimension: number },
  kernel: Kernel,
  { fileName = PREFILTER_FILE, signal }: { fileName?: string; signal?: AbortSignal } = {},
): Promise<WrittenPrefilter> {
  const path = join(folder, fileName);
  const { components, reason } = await kernel.makePrefilter(path, codesPath, rows, dimension, 0, signal);
  if (components === 0) return { prefilter: { path: null, reason }, file: undefined };
  return {
    prefilter: { path: PREFILTER_FILE, reason },
    file: { ...(await fileRecord(path, signal)), path: PREFILTER_FILE },
  };
}
