import { createHash } from 'node:crypto';

/** Bytes that look random and are the same for a seed. */
export function seededBytes(seed: number, length: number): Buffer {
  const blocks = Array.from({ length: Math.ceil(length / 32) }, (_, i) =>
    createHash('sha256').update(`${seed}:${i}`).digest(),
  );
  return Buffer.concat(blocks).subarray(0, length);
}
