import assert from 'node:assert/strict';
import type { TextEncoder } from '../../src/encoder/text-encoder.ts';

/** The smallest cosine of the vectors of two encoders, which are normalised. */
export async function smallestCosine(a: TextEncoder, b: TextEncoder, texts: readonly string[]): Promise<number> {
  const [x, y] = [await vectorsOf(a, texts), await vectorsOf(b, texts)];
  const dimension = x.length / texts.length;
  let least = 1;
  for (let from = 0; from < x.length; from += dimension) {
    let dot = 0;
    for (let c = from; c < from + dimension; c++) dot += x[c]! * y[c]!;
    least = Math.min(least, dot);
  }
  return least;
}

export async function vectorsOf(encoder: TextEncoder, texts: readonly string[]): Promise<Float32Array> {
  const { vectors, outcomes } = await encoder.encode(texts, { inputType: 'passage' });
  for (const outcome of outcomes) assert.ok(outcome.ok);
  return vectors;
}
