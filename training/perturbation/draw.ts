import { hash } from 'node:crypto';

const BYTES = 6;

/**
 * A number from 0 (inclusive) to 1 (exclusive) that follows from its arguments alone, so that a decision does not depend on the order of
 * requests, on the other queries of a batch or on threads. `draw(…) < rate` stays true when the rate rises.
 */
export function draw(seed: number, ...parts: readonly (string | number)[]): number {
  return hash('sha256', JSON.stringify([seed, ...parts]), 'buffer').readUIntBE(0, BYTES) / 2 ** (8 * BYTES);
}

/** `count` different whole numbers from 1 to `most`, ascending; all of them if there are no more. */
export function drawRanks(
  count: number,
  most: number,
  seed: number,
  ...parts: readonly (string | number)[]
): readonly number[] {
  const left = Array.from({ length: most }, (_, i) => i + 1);
  const drawn: number[] = [];
  for (let i = 0; i < count && left.length > 0; i++) {
    drawn.push(...left.splice(Math.floor(draw(seed, ...parts, i) * left.length), 1));
  }
  return drawn.sort((a, b) => a - b);
}
