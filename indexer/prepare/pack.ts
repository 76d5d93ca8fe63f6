import { constants, gzipSync, zstdCompressSync } from 'node:zlib';
import type { Compression } from '../../src/base/files/compression.ts';

/** With a checksum per frame, as the `zstd` program writes by default. */
const ZSTD_PARAMS = { [constants.ZSTD_c_compressionLevel]: 3, [constants.ZSTD_c_checksumFlag]: 1 };

export type Pack = (bytes: Uint8Array<ArrayBuffer>) => Uint8Array<ArrayBuffer>;

/** Returns a function that compresses a block to a gzip member or zstd frame. Their concatenation is a valid file. */
export function openPack(compression: Compression): Pack {
  switch (compression) {
    case 'none':
      return (bytes) => bytes;
    case 'gzip':
      return (bytes) => new Uint8Array(gzipSync(bytes));
    case 'zstd':
      return (bytes) => new Uint8Array(zstdCompressSync(bytes, { params: ZSTD_PARAMS }));
  }
}
