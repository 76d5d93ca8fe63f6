import { createHash } from 'node:crypto';

/**
 * Draws `count` of the items without repetition, in their order. The draw depends on the seed and the key alone, so a row is the same
 * wherever it stands in a file.
 */
export function seededSample<T>(
  items: readonly T[],
  count: number,
  { seed, key }: { seed: number; key: string },
): readonly T[] {
  const random = randomNumbers(`${seed}\0${key}`);
  const places = items.map((_, place) => place);
  // The first steps of Fisher and Yates' shuffle.
  for (let i = 0; i < count; i++) {
    const j = i + Math.floor(random() * (places.length - i));
    [places[i], places[j]] = [places[j]!, places[i]!];
  }
  return places
    .slice(0, count)
    .sort((a, b) => a - b)
    .map((place) => items[place]!);
}

/** Numbers in [0, 1) with 53 bits, from SHA-256 of the key and a counter. */
function randomNumbers(key: string): () => number {
  let block = 0;
  let bytes = Buffer.alloc(0);
  return () => {
    if (bytes.length < 8) {
      bytes = createHash('sha256').update(`${key}\0${block}`).digest();
      block += 1;
    }
    const value = bytes.readBigUInt64LE(0) >> 11n;
    bytes = bytes.subarray(8);
    return Number(value) / 2 ** 53;
  };
}
