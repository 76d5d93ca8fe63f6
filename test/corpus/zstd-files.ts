import { constants, zstdCompressSync } from 'node:zlib';
import { xxh64 } from './xxh64.ts';

/** One frame of the reference encoder: with its content size, without a checksum. */
export function zstdFrame(text: string | Uint8Array, level = 3): Buffer {
  return zstdCompressSync(text, { params: { [constants.ZSTD_c_compressionLevel]: level } });
}

/** A frame of raw blocks with the content's checksum (RFC 8878, 3.1.1); `window` is the window descriptor's byte. */
export function rawFrame(content: Buffer, { checksum = true, window = 0x50 } = {}): Buffer {
  const blockBytes = 128 * 1024;
  const blocks: Buffer[] = [];
  for (let start = 0; start === 0 || start < content.length; start += blockBytes) {
    const block = content.subarray(start, start + blockBytes);
    const last = start + blockBytes >= content.length ? 1 : 0;
    const header = Buffer.alloc(3);
    header.writeUIntLE((block.length << 3) | last, 0, 3);
    blocks.push(header, block);
  }
  const sum = Buffer.alloc(checksum ? 4 : 0);
  if (checksum) sum.writeUInt32LE(Number(xxh64(content) & 0xffffffffn));
  return Buffer.concat([Buffer.from([0x28, 0xb5, 0x2f, 0xfd, checksum ? 0x04 : 0x00, window]), ...blocks, sum]);
}

/** A frame that decoders skip. */
export function skippableFrame(content: Uint8Array): Buffer {
  const header = Buffer.from([0x57, 0x2a, 0x4d, 0x18, 0, 0, 0, 0]);
  header.writeUInt32LE(content.length, 4);
  return Buffer.concat([header, content]);
}
