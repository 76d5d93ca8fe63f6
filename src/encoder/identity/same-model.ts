import { decodeVector } from '../../base/base64-vector.ts';
import { isSameJson } from '../../base/objects.ts';
import type { Probe } from './endpoint-record.ts';
import type { ModelIdentity } from './model-identity.ts';

/**
 * The fields by which two models are compared. An endpoint's vectors may differ in their last bits from start to start, and a server
 * of another program may stand behind another address: its probes are compared instead (`haveSameProbes`).
 */
export function comparedFields(model: ModelIdentity): object {
  if (model.endpoint === undefined) return model;
  const { sha256: _, name, maxTokens, endpoint, ...fields } = model;
  const { requests, separator } = endpoint;
  return { ...fields, requests, separator };
}

/** Whether two endpoints give the probes the same vectors. True for models of folders, which have no probes. */
export function haveSameProbes(a: ModelIdentity, b: ModelIdentity): boolean {
  if (a.endpoint === undefined || b.endpoint === undefined) return a.endpoint === b.endpoint;
  return areSameProbes(compareProbes(a.endpoint.probes, b.endpoint.probes));
}

export function isSameModel(a: ModelIdentity | null, b: ModelIdentity | null): boolean {
  if (a === null || b === null) return a === b;
  return isSameJson(comparedFields(a), comparedFields(b)) && haveSameProbes(a, b);
}

interface ProbeSimilarity {
  readonly name: string;
  /** Cosine of the probe's vector and the recorded one, −1 to 1; larger is nearer. NaN if their lengths differ. */
  readonly cosine: number;
}

/** Lowest cosine of the vectors that one model gives one text in other batches, kernels or float formats; other models are far below. */
const SAME_PROBE = 0.999;
/** Largest difference of two lengths, as a fraction of the recorded one. */
const SAME_LENGTH = 0.02;

/** Compares probes by their names. Leaves out a probe that only one of the two has, or that only one of them refused. */
export function compareProbes(recorded: readonly Probe[], found: readonly Probe[]): ProbeSimilarity[] {
  return recorded.flatMap(({ name, vector }) => {
    const other = found.find((probe) => probe.name === name);
    if (other === undefined) return [];
    if (vector === null || other.vector === null) return vector === other.vector ? [{ name, cosine: 1 }] : [];
    return [{ name, cosine: similarity(decodeVector(vector), decodeVector(other.vector)) }];
  });
}

export function areSameProbes(similarities: readonly ProbeSimilarity[]): boolean {
  return similarities.length > 0 && similarities.every(({ cosine }) => cosine >= SAME_PROBE);
}

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
