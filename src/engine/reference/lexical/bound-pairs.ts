import { decodeLength } from '../../lexical/bm25.ts';
import { UNBOUNDED_TF } from './lexical-format.ts';

const { fround } = Math;

interface BoundPair {
  readonly tf: number;
  readonly lengthCode: number;
}

/** Collects postings and gives four pairs that dominate them, the same as native/src/lexical/bound_pairs.cpp. */
export class BoundCollector {
  /** The added pairs that no other dominates, in order of rising tf and length code. */
  #pairs: BoundPair[] = [];

  add(tf: number, lengthCode: number): void {
    const bounded = Math.min(tf, UNBOUNDED_TF);
    let end = this.#pairs.findIndex((pair) => pair.tf >= bounded);
    if (end < 0) end = this.#pairs.length;
    const next = this.#pairs[end];
    if (next !== undefined && next.lengthCode <= lengthCode) return;
    let first = end;
    while (first > 0 && this.#pairs[first - 1]!.lengthCode >= lengthCode) first--;
    if (next?.tf === bounded) end++;
    this.#pairs.splice(first, end - first, { tf: bounded, lengthCode });
  }

  /** Four pairs as bytes: tf and length code of each. The last is repeated if fewer suffice. */
  bytes(): Uint8Array {
    const kept = [...this.#pairs];
    while (kept.length > 4) mergeTwo(kept);
    return Uint8Array.from({ length: 8 }, (_, i) => {
      const { tf, lengthCode } = kept[Math.min(i >> 1, kept.length - 1)]!;
      return i % 2 === 0 ? tf : lengthCode;
    });
  }

  addBytes(bytes: Uint8Array): void {
    for (let i = 0; i < bytes.length; i += 2) this.add(bytes[i]!, bytes[i + 1]!);
  }

  clear(): void {
    this.#pairs = [];
  }
}

/** Merges the two neighbours whose merging raises the bound least. */
function mergeTwo(pairs: BoundPair[]): void {
  let best = 0;
  let bestGrowth = 2;
  for (let i = 0; i + 1 < pairs.length; i++) {
    const [low, high] = [pairs[i]!, pairs[i + 1]!];
    const merged = looseness({ tf: high.tf, lengthCode: low.lengthCode });
    const growth = fround(merged - Math.max(looseness(low), looseness(high)));
    if (growth < bestGrowth) [best, bestGrowth] = [i, growth];
  }
  pairs.splice(best, 2, { tf: pairs[best + 1]!.tf, lengthCode: pairs[best]!.lengthCode });
}

/** Estimates a pair's score, each operation rounded to float32. */
function looseness({ tf, lengthCode }: BoundPair): number {
  const length = fround(decodeLength(lengthCode));
  const relative = fround(fround(fround(0.4) * length) / 60);
  const norm = fround(fround(0.9) * fround(fround(0.6) + relative));
  return fround(tf / fround(tf + norm));
}
