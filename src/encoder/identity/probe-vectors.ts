import { decodeVector } from '../../base/base64-vector.ts';
import type { Probe } from './endpoint-record.ts';

/** The comparison of a probe's vector with the recorded one. */
interface ProbeSimilarity {
  readonly name: string;
  /** Cosine, −1 to 1; larger is nearer. NaN if a length differs. */
  readonly cosine: number;
}

/**
 * Lowest cosine of the vectors that one model gives one text. Other batches, kernels, and bfloat16 instead of float16 stay above it;
 * another model, pooling or prompt is far below.
 */
const SAME_PROBE = 0.999;
/** Largest difference of two lengths, as a fraction of the recorded one. */
const SAME_LENGTH = 0.02;

/**
 * Compares probes by their names. A probe that only one of the two has is left out, and so is one that only one of them refused: a
 * refused text shows nothing about the vectors.
 */
export function compareProbes(recorded: readonly Probe[], found: readonly Probe[]): ProbeSimilarity[] {
  return recorded.flatMap(({ name, vector }) => {
    const other = found.find((probe) => probe.name === name);
    if (other === undefined) return [];
    if (vector === null || other.vector === null) return vector === other.vector ? [{ name, cosine: 1 }] : [];
    return [{ name, cosine: similarity(decodeVector(vector), decodeVector(other.vector)) }];
  });
}

/** Whether the probes have the vectors of one model. */
export function areSameProbes(similarities: readonly ProbeSimilarity[]): boolean {
  return similarities.length > 0 && similarities.every(({ cosine }) => cosine >= SAME_PROBE);
}

/** The similarities in words, lowest first. */
export function describeSimilarities(similarities: readonly ProbeSimilarity[]): string {
  return similarities
    .toSorted((a, b) => (a.cosine || -2) - (b.cosine || -2))
    .map(({ name, cosine }) => `${name} ${Number.isNaN(cosine) ? 'different' : cosine.toFixed(4)}`)
    .join(', ');
}

function similarity(a: Float32Array, b: Float32Array): number {
  if (a.length !== b.length) return Number.NaN;
  let [dot, left, right] = [0, 0, 0];
  for (const [i, value] of a.entries()) {
    dot += value * b[i]!;
    left += value * value;
    right += b[i]! * b[i]!;
  }
  if (Math.abs(Math.sqrt(left) - Math.sqrt(right)) > SAME_LENGTH * Math.sqrt(left)) return Number.NaN;
  return left === 0 || right === 0 ? 1 : dot / Math.sqrt(left) / Math.sqrt(right);
}
