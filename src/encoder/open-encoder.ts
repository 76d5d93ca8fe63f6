import { stat } from 'node:fs/promises';
import { TrawlError } from '../base/errors.ts';
import { availableCores } from '../base/system/cores.ts';
import { memoryLimit } from '../base/system/memory.ts';
import type { EndpointOptions } from './endpoint/endpoint-options.ts';
import { openEndpoint } from './endpoint/open-endpoint.ts';
import type { ModelIdentity, Precision } from './identity/model-identity.ts';
import { type CudaDevices, parseDevice } from './inference/device.ts';
import { type ModelFolder, readModelFolder } from './model/model-folder.ts';
import type { ModelOverrides } from './model/model-overrides.ts';
import { ModelEncoder } from './model-encoder.ts';
import { isServerUrl } from './model-server/server-url.ts';
import type { EncoderPoolOptions } from './pool/encoder-pool.ts';
import type { EncoderPools } from './pool/encoder-pools.ts';
import type { TextEncoder } from './text-encoder.ts';

export interface RunOptions {
  /**
   * Whether the grouping trial runs while the encoder opens (0.2 s for 22 million weights, 1.3 s for 110 million) instead of with
   * the first texts of equal length. For servers. Default: false.
   */
  readonly trialAtStart?: boolean;
  /**
   * Worker threads, at least 1. On the CPU, more threads than cores slow each other down; default: the cores that this process may
   * use. On CUDA: the threads of each device. Each has its own copy of the weights, and one tokenises while the device runs another's
   * batch. Default there: 8, 4, 2 or 1, by the size of the weights, and at most the cores.
   */
  readonly workers?: number;
  /** `cpu` (default), `cuda`, `cuda:0,cuda:1`. */
  readonly device?: string;
  /**
   * Whether the workers share one copy of the weights. It takes less memory but is slower, and vectors differ in their last bits.
   * Possible only for weights in external data files. Default: only if a copy per worker would take more than half of the memory
   * that this process may use.
   */
  readonly shareWeights?: boolean;
  /** Called with a warning about an endpoint, or about the memory of a device. */
  readonly onWarning?: (warning: string) => void;
}

export interface OpenEncoderOptions extends RunOptions {
  readonly overrides?: ModelOverrides;
  /** Precision of the graph; CONFIG_INVALID if the folder has no such graph. */
  readonly precision?: Precision;
  /**
   * Preferred precisions, best first, if `precision` is not given. If the folder has none of them, the model's default graph is
   * used. Default: float16, float32 on CUDA; none on the CPU.
   */
  readonly preferredPrecisions?: readonly Precision[];
  /** Pools that share workers and weights, or an endpoint's client, between encoders of the same model. Default: a separate pool. */
  readonly pools?: EncoderPools;
  /** For a model that is given by a URL. */
  readonly endpoint?: EndpointOptions;
  /** For a model that is given by a URL: the model of the index, whose prefixes and settings it takes instead of `overrides`. */
  readonly recorded?: ModelIdentity;
  /** For a model that is given by a URL: see `OpenEndpointOptions`. */
  readonly answersSince?: number;
  /** For a model that is given by a URL: aborting ends the opening with CANCELLED. */
  readonly signal?: AbortSignal;
}

/**
 * Opens an encoder by its name in `models/`, by its folder, or by the URL of an endpoint. Call `close` when done. Errors:
 * MODEL_NOT_FOUND, MODEL_INVALID, CONFIG_INVALID, DEVICE_UNAVAILABLE, ENDPOINT_FAILED, CANCELLED.
 */
export async function openEncoder(nameOrFolder: string, options: OpenEncoderOptions = {}): Promise<TextEncoder> {
  if (isServerUrl(nameOrFolder)) {
    const { endpoint, overrides, recorded, answersSince, signal, onWarning, pools } = options;
    return openEndpoint(nameOrFolder, {
      ...endpoint,
      overrides,
      recorded,
      answersSince,
      signal,
      onWarning,
      clients: pools?.endpoints,
    });
  }
  const devices = parseDevice(options.device ?? 'cpu');
  const preferred = options.preferredPrecisions ?? (devices === null ? [] : (['float16', 'float32'] as const));
  const precision = options.precision ?? (await firstPresent(nameOrFolder, preferred));
  const model = await readModelFolder(nameOrFolder, options.overrides, { precision });
  return ModelEncoder.open(await poolOptions(model, devices, options), options.pools);
}

/** Chooses the workers, their devices and whether they share weights. Throws CONFIG_INVALID. */
export async function poolOptions(
  model: ModelFolder,
  cudaDevices: CudaDevices,
  options: RunOptions,
): Promise<EncoderPoolOptions> {
  if (cudaDevices !== null && model.enginePrecision !== null) {
    throw new TrawlError(
      'CONFIG_INVALID',
      `${model.enginePrecision} runs on CPUs only. Omit --device, or choose another precision with --precision.`,
    );
  }
  const { trialAtStart = false, onWarning } = options;
  if (cudaDevices !== null) {
    const size = deviceSize(await bytesOf([model.graphPath, ...model.externalData]));
    const threads = options.workers ?? Math.min(size.threads, availableCores());
    if (!Number.isSafeInteger(threads) || threads < 1) {
      throw new TrawlError('CONFIG_INVALID', `workers is ${threads}; it must be a whole number from 1.`);
    }
    // In turns, so that the first texts go to different devices.
    const ofThreads = Array.from({ length: threads }, () => cudaDevices).flat();
    const { batchTokens } = size;
    return {
      model,
      workers: ofThreads.length,
      cudaDevices: ofThreads,
      batchTokens,
      shareWeights: false,
      trialAtStart,
      onWarning,
    };
  }
  const workers = options.workers ?? availableCores();
  const canShare = model.externalData.length > 0;
  const shareWeights = canShare && (options.shareWeights ?? (await copiesTooLarge(model, workers)));
  return { model, workers, cudaDevices, shareWeights, trialAtStart, onWarning };
}

/**
 * Threads of each device and tokens of a batch, by the size of the weights: enough threads to prepare batches as fast as a device runs
 * them. A batch of 16,384 tokens takes a thread about 15 ms, and an H100 3 ms with MiniLM and 10 ms with BERT-base. Larger batches were
 * faster with MiniLM there, and slower with BERT-base (docs/gpu.md).
 */
const DEVICE_SIZES = [
  { mebibytes: 128, threads: 8, batchTokens: 65_536 },
  { mebibytes: 512, threads: 4, batchTokens: 16_384 },
  { mebibytes: 4096, threads: 2, batchTokens: 16_384 },
  { mebibytes: Number.POSITIVE_INFINITY, threads: 1, batchTokens: 16_384 },
];

function deviceSize(bytes: number) {
  return DEVICE_SIZES.find(({ mebibytes }) => bytes <= mebibytes * 2 ** 20)!;
}

async function copiesTooLarge(model: ModelFolder, workers: number): Promise<boolean> {
  return (await bytesOf(model.externalData)) * workers > memoryLimit() / 2;
}

async function bytesOf(files: readonly string[]): Promise<number> {
  let bytes = 0;
  for (const path of files) bytes += (await stat(path)).size;
  return bytes;
}

async function firstPresent(nameOrFolder: string, preferred: readonly Precision[]): Promise<Precision | undefined> {
  if (preferred.length === 0) return undefined;
  const { precisions } = await readModelFolder(nameOrFolder);
  return preferred.find((precision) => precisions.includes(precision));
}
