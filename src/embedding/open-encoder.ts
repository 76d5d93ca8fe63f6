import { stat } from 'node:fs/promises';
import { TrawlError } from '../errors.ts';
import type { Precision } from '../manifest/model-identity.ts';
import { availableCores } from './available-cores.ts';
import { type CudaDevices, parseDevice } from './device.ts';
import { EncoderPool, type EncoderPoolOptions } from './encoder-pool.ts';
import { memoryLimit } from './memory-limit.ts';
import { type ModelFolder, readModelFolder } from './model-folder.ts';
import type { ModelOverrides } from './model-overrides.ts';
import type { TextEncoder } from './text-encoder.ts';

export interface RunOptions {
  /**
   * What is learned of a graph by trying it is learned while the encoder is opened (0.2 s for 22 million weights, 1.3 s for
   * 110 million), and not by the first texts that meet: for a server. Default: no.
   */
  readonly longLived?: boolean | undefined;
  /**
   * Worker threads on the CPU, [1, ∞); default: the cores this process may use. More only wait for each other. On CUDA
   * there is one for each device.
   */
  readonly workers?: number | undefined;
  /** `cpu` (default), `cuda`, `cuda:0,cuda:1`. */
  readonly device?: string | undefined;
  /**
   * Whether the workers share one copy of the weights: less memory, less speed, and vectors that differ in their last bits.
   * Default: where copies would take more than half of the memory that this process may use at most, and the weights lie
   * in files of their own.
   */
  readonly shareWeights?: boolean | undefined;
}

export interface OpenEncoderOptions extends RunOptions {
  readonly overrides?: ModelOverrides | undefined;
  /** The graph to take; CONFIG_INVALID where the folder has none of that precision. */
  readonly precision?: Precision | undefined;
  /**
   * Without `precision`: graphs that are liked, the best first. Where the folder has none of them the description's own is
   * taken. Default: on CUDA float16 and float32, on the CPU the description's own.
   */
  readonly preferredPrecisions?: readonly Precision[] | undefined;
}

/**
 * An encoder for a model's name or folder, ready to encode. Errors: MODEL_NOT_FOUND, MODEL_INVALID, CONFIG_INVALID,
 * DEVICE_UNAVAILABLE. Call `close` when done.
 */
export async function openEncoder(nameOrFolder: string, options: OpenEncoderOptions = {}): Promise<TextEncoder> {
  const devices = parseDevice(options.device ?? 'cpu');
  const preferred = options.preferredPrecisions ?? (devices === null ? [] : (['float16', 'float32'] as const));
  const precision = options.precision ?? (await firstPresent(nameOrFolder, preferred));
  const model = await readModelFolder(nameOrFolder, options.overrides, { precision });
  return EncoderPool.open(await poolOptions(model, devices, options));
}

/** How many workers a model gets, and how they keep its weights. */
export async function poolOptions(
  model: ModelFolder,
  cudaDevices: CudaDevices,
  options: RunOptions,
): Promise<EncoderPoolOptions> {
  if (cudaDevices !== null && options.workers !== undefined && options.workers !== cudaDevices.length) {
    throw new TrawlError(
      'CONFIG_INVALID',
      `${options.workers} workers for ${cudaDevices.length} CUDA devices: there is one for each device. Leave the number out.`,
    );
  }
  const workers = cudaDevices?.length ?? options.workers ?? availableCores();
  const canShare = cudaDevices === null && model.externalData.length > 0;
  const shareWeights = canShare && (options.shareWeights ?? (await copiesTooLarge(model, workers)));
  return { model, workers, cudaDevices, shareWeights, longLived: options.longLived ?? false };
}

async function copiesTooLarge(model: ModelFolder, workers: number): Promise<boolean> {
  let bytes = 0;
  for (const path of model.externalData) bytes += (await stat(path)).size;
  return bytes * workers > memoryLimit() / 2;
}

async function firstPresent(nameOrFolder: string, preferred: readonly Precision[]): Promise<Precision | undefined> {
  if (preferred.length === 0) return undefined;
  const { precisions } = await readModelFolder(nameOrFolder);
  return preferred.find((precision) => precisions.includes(precision));
}
