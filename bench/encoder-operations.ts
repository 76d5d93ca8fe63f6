import { join } from 'node:path';
import { readJsonFileIfPresent } from '../src/embedding/json-file.ts';

/** The sizes of a Transformer encoder that its work depends on. */
export interface EncoderShape {
  readonly layers: number;
  readonly hidden: number;
  readonly intermediate: number;
}

/** From the config.json of a folder; null where there is none, or it describes no encoder of this dimension. */
export async function encoderShape(folder: string, dimension: number): Promise<EncoderShape | null> {
  const config = await readJsonFileIfPresent(join(folder, 'config.json'));
  const [layers, hidden, intermediate] = [config?.num_hidden_layers, config?.hidden_size, config?.intermediate_size];
  const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) > 0;
  if (hidden !== dimension) return null;
  return isCount(layers) && isCount(hidden) && isCount(intermediate) ? { layers, hidden, intermediate } : null;
}

/**
 * Multiplications and additions in the matrix products of texts whose tokens and squared tokens have these sums: per
 * layer 8·n·h² for query, key, value and output, 4·n·h·i for the two of the feed-forward network, 4·n²·h for attention.
 * Everything else of the encoder is some hundredth of it and is not counted.
 */
export function operations(
  { layers, hidden, intermediate }: EncoderShape,
  tokens: number,
  squaredTokens: number,
): number {
  return layers * (tokens * (8 * hidden * hidden + 4 * hidden * intermediate) + squaredTokens * 4 * hidden);
}
