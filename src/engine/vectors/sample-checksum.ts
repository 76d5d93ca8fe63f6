import { createHash } from 'node:crypto';
import { closeSync, openSync, readSync } from 'node:fs';

const PIECES = 16;
const PIECE_BYTES = 4096;

/**
 * SHA-256 (hex) of 16 evenly spaced pieces of up to 4,096 bytes in the range of `bytes` bytes from `offset`, including the
 * first and the last. Fast enough for every start of a server. Detects a replaced file, but not a change between the pieces.
 */
export function sampleChecksum(path: string, { offset, bytes }: { offset: number; bytes: number }): string {
  const hash = createHash('sha256');
  const piece = new Uint8Array(Math.min(PIECE_BYTES, bytes));
  const file = openSync(path, 'r');
  try {
    for (let i = 0; i < PIECES; i++) {
      const at = offset + Math.floor(((bytes - piece.length) * i) / (PIECES - 1));
      hash.update(piece.subarray(0, readSync(file, piece, 0, piece.length, at)));
    }
  } finally {
    closeSync(file);
  }
  return hash.digest('hex');
}
