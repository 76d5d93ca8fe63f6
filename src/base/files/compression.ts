/** Compression of a text file. */
export type Compression = 'none' | 'gzip' | 'zstd';

/** Damaged compressed data, or data after its end. The message is shown after "file:line: ". */
export class DamagedDataError extends Error {
  override readonly name = 'DamagedDataError';
}

/** Whether a file that begins with `start` may have this compression. Fewer than 4 bytes can match both. */
export function startsLike(compression: Exclude<Compression, 'none'>, start: Uint8Array): boolean {
  if (compression === 'gzip') return matches(start, [0x1f, 0x8b]);
  // A skippable frame may come first: RFC 8878, 3.1.2.
  const skippable = start.length > 0 && (start[0]! & 0xf0) === 0x50 && matches(start.subarray(1), [0x2a, 0x4d, 0x18]);
  return skippable || matches(start, [0x28, 0xb5, 0x2f, 0xfd]);
}

/** The compression of a file that begins with `start`; a file of fewer than 4 bytes has none. */
export function compressionOf(start: Uint8Array): Compression {
  return (start.length >= 4 && (['gzip', 'zstd'] as const).find((each) => startsLike(each, start))) || 'none';
}

/** A pipe may deliver a single byte first; the decompressor then checks the rest. */
function matches(start: Uint8Array, magic: readonly number[]): boolean {
  return start.length > 0 && magic.every((byte, position) => position >= start.length || start[position] === byte);
}
