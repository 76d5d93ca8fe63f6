import { join } from 'node:path';
import { readJsonFileIfPresent } from '../../src/encoder/model/json-file.ts';

/** The sizes of a Transformer encoder that determine its number of operations. */
export interface EncoderShape {
  readonly layers: number;
  readonly hidden: number;
  readonly intermediate: number;
}

/** From the config.json of a folder; null if it is missing or describes no encoder of this dimension. */
export async function encoderShape(folder: string, dimension: number): Promise<EncoderShape | null> {
  const config = await readJsonFileIfPresent(join(folder, 'config.json'));
  const [layers, hidden, intermediate] = [config?.num_hidden_layers, config?.hidden_size, config?.intermediate_size];
  const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) > 0;
  if (hidden !== dimension) return null;
  return isCount(layers) && isCount(hidden) && isCount(intermediate) ? { layers, hidden, intermediate } : null;
}

/**
 * Multiplications and additions in the matrix products of texts, given the sums of their tokens and squared tokens. A layer
 * takes 8·n·h² for query, key, value and output, 4·n·h·i for the feed-forward network and 4·n²·h for attention. The rest of
 * the encoder, about one percent, is not counted.
 */
export function operations(
  { layers, hidden, intermediate }: EncoderShape,
  tokens: number,
  squaredTokens: number,
): number {
  return layers * (tokens * (8 * hidden * hidden + 4 * hidden * intermediate) + squaredTokens * 4 * hidden);
}
