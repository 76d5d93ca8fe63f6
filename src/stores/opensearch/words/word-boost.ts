import type { Bm25Parameters } from '../../../engine/lexical/bm25.ts';

const { fround } = Math;

/** Neighbours of the nearest boost that are tried on each side. */
const NEIGHBOURS = 4;

interface SentBoost {
  readonly boost: number;
  /** Whether OpenSearch and Trawl give the term exactly the same weight. */
  readonly isExact: boolean;
}

export interface BoostScale {
  readonly parameters: Pick<Bm25Parameters, 'k1' | 'k1Factor'>;
  /** Whether OpenSearch's scores have the factor k1 + 1, as before version 3. */
  readonly hasFactor: boolean;
}

/**
 * The boost of a term that OpenSearch is sent, so that the term gets the weight `termWeight`. Below boosts of `outer`
 * together, OpenSearch computes float32(float32(outer · boost) · (k1 + 1)), or without the last factor. Not every float32 is such a
 * product.
 */
export function sentBoost(boost: number, outer: number, { parameters, hasFactor }: BoostScale): SentBoost {
  const factor = fround(1 + fround(parameters.k1));
  const total = fround(outer * fround(boost));
  const wanted = parameters.k1Factor ? fround(total * factor) : total;
  const given = (sent: number): number => (hasFactor ? fround(fround(outer * sent) * factor) : fround(outer * sent));
  const near = fround(wanted / outer / (hasFactor ? factor : 1));
  let best = near;
  for (const sent of [fround(boost), ...neighboursOf(near)]) {
    if (given(sent) === wanted) return { boost: sent, isExact: true };
    if (Math.abs(given(sent) - wanted) < Math.abs(given(best) - wanted)) best = sent;
  }
  return { boost: best, isExact: false };
}

/** The float32 numbers around a positive one, nearest first. */
function neighboursOf(value: number): number[] {
  const found = [value];
  for (let distance = 1; distance <= NEIGHBOURS; distance++) {
    for (const step of [-distance, distance]) {
      const bits = new Uint32Array(Float32Array.of(value).buffer);
      bits[0]! += step;
      found.push(new Float32Array(bits.buffer)[0]!);
    }
  }
  return found;
}
