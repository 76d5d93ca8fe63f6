import { availableCores } from './available-cores.ts';
import { EncoderPool } from './encoder-pool.ts';
import { readModelFolder } from './model-folder.ts';
import type { ModelOverrides } from './model-overrides.ts';
import type { TextEncoder } from './text-encoder.ts';

export interface OpenEncoderOptions {
  /**
   * Worker threads, [1, ∞); default: the cores this process may use. More only wait for each other; each takes the
   * memory of one model.
   */
  readonly workers?: number | undefined;
  readonly overrides?: ModelOverrides | undefined;
}

/**
 * An encoder for a model's name or folder, ready to encode. Errors: MODEL_NOT_FOUND, MODEL_INVALID, CONFIG_INVALID. Call
 * `close` when done.
 */
export async function openEncoder(nameOrFolder: string, options: OpenEncoderOptions = {}): Promise<TextEncoder> {
  const model = await readModelFolder(nameOrFolder, options.overrides);
  return EncoderPool.open({ model, workers: options.workers ?? availableCores() });
}
