import type { Precision } from '../../src/encoder/identity/model-identity.ts';
import { openEncoder } from '../../src/encoder/open-encoder.ts';
import type { Matrix } from './npy.ts';

const QUESTIONS_AT_ONCE = 1_000;

export interface QuestionEncoder {
  readonly model: string;
  readonly precision?: Precision;
  readonly threads?: number;
}

/** Embeds questions as a search does. @throws the error of the first question that cannot be embedded. */
export async function questionVectors(
  texts: readonly string[],
  { model, precision, threads }: QuestionEncoder,
): Promise<Matrix> {
  const encoder = await openEncoder(model, { precision, workers: threads });
  try {
    const values = new Float32Array(texts.length * encoder.dimension);
    for (let from = 0; from < texts.length; from += QUESTIONS_AT_ONCE) {
      const part = texts.slice(from, from + QUESTIONS_AT_ONCE);
      const { vectors, outcomes } = await encoder.encode(part, { inputType: 'query' });
      for (const outcome of outcomes) if (!outcome.ok) throw outcome.error;
      values.set(vectors, from * encoder.dimension);
    }
    return { rows: texts.length, columns: encoder.dimension, values };
  } finally {
    await encoder.close();
  }
}
