import { createHash } from 'node:crypto';

/** Pseudo-random bytes, the same for the same seed. */
export function seededBytes(seed: number, length: number): Buffer {
  const blocks = Array.from({ length: Math.ceil(length / 32) }, (_, i) =>
    createHash('sha256').update(`${seed}:${i}`).digest(),
  );
  return Buffer.concat(blocks).subarray(0, length);
}
