/** Names of the files that a builder makes within a shard. */
export const VECTORS_FILE = 'vectors.faiss';
export const CODES_FILE = 'codes.i8';
export const SCREEN_FILE = 'screen.i8';
export const PASSAGES_FILE = 'passages.sqlite';

/** Folder of a shard within its index. */
export function shardFolderName(index: number): string {
  return `shard-${String(index).padStart(5, '0')}`;
}
