import { gzipSync } from 'node:zlib';
import type { Compression } from '../corpus/compression.ts';

const ZSTD_LEVEL = 3;

export type Pack = (bytes: Uint8Array<ArrayBuffer>) => Uint8Array<ArrayBuffer>;

/**
 * Packs one block so that blocks written one after the other are one file: each is a gzip member or a zstd frame of its
 * own, which every reader of these formats takes.
 */
export async function openPack(compression: Compression): Promise<Pack> {
  switch (compression) {
    case 'none':
      return (bytes) => bytes;
    case 'gzip':
      return (bytes) => new Uint8Array(gzipSync(bytes));
    case 'zstd': {
      const { compress, init } = await import('@bokuweb/zstd-wasm');
      await init();
      return (bytes) => new Uint8Array(compress(bytes, ZSTD_LEVEL));
    }
  }
}
