import { stat } from 'node:fs/promises';
import { availableCores } from '../base/system/cores.ts';
import { memoryLimit } from '../base/system/memory.ts';
import type { EndpointOptions } from './endpoint/endpoint-options.ts';
import { openEndpoint } from './endpoint/open-endpoint.ts';
import type { FolderModelIdentity, ModelIdentity, Precision } from './identity/model-identity.ts';
import { type CudaDevices, identityOn, parseDevice } from './inference/device.ts';
import { invalidConfig } from './model/json-file.ts';
import { type ModelFolder, readModelFolder } from './model/model-folder.ts';
import type { ModelOverrides } from './model/model-overrides.ts';
import { isServerUrl } from './model-server/server-url.ts';
import type { EncoderPoolOptions } from './pool/encoder-pool.ts';
import { EncoderPools } from './pool/encoder-pools.ts';
import type { TextEncoder } from './text-encoder.ts';

export interface RunOptions {
  /** Whether the grouping trial (0.2 to 1.3 s) runs while the encoder opens, not with the first texts of equal length. Default: false. */
  readonly trialAtStart?: boolean;
  /**
   * Worker threads, at least 1, each with its own copy of the weights. Default: the cores that this process may use. On CUDA: the threads
   * of each device, so that some tokenise while the device runs the batch of another. Default there: 8, 4, 2 or 1, by the size of the
   * weights, and at most the cores.
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
  /** Without `precision`: precisions to prefer to the model's default, best first. Default: float16, float32 on CUDA; none on the CPU. */
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
    const { endpoint, overrides, recorded, answersSince, signal, onWarning } = options;
    // Named one by one, because the options of an index also have a `model`.
    const rest = { overrides, recorded, answersSince, signal, onWarning, clients: options.pools?.endpoints };
    return openEndpoint(nameOrFolder, { ...endpoint, ...rest });
  }
  const devices = parseDevice(options.device ?? 'cpu');
  const preferred = options.preferredPrecisions ?? (devices === null ? [] : (['float16', 'float32'] as const));
  const precision = options.precision ?? (await firstPresent(nameOrFolder, preferred));
  const model = await readModelFolder(nameOrFolder, options.overrides, { precision });
  return openModelEncoder(await poolOptions(model, devices, options), options.pools);
}

/** An encoder of a model folder. */
export type ModelEncoder = TextEncoder & { readonly identity: FolderModelIdentity };

/** Opens an encoder on a pool of `pools`, by default on a separate one. Prefixes and token limits are the encoder's, not the pool's. */
export async function openModelEncoder(options: EncoderPoolOptions, pools = new EncoderPools()): Promise<ModelEncoder> {
  const identity = identityOn(options.cudaDevices ?? null, options.model.identity);
  const { prefixes, maxTokens } = identity;
  const lease = await pools.lease(options);
  const { pool } = lease;
  return {
    identity,
    dimension: pool.dimension,
    separator: pool.separator,
    get failure() {
      return pool.failure;
    },
    get load() {
      return lease.load;
    },
    encode(inputs, { inputType, truncate = 'tail', signal }) {
      const isPlain = inputType === 'plain';
      const tokenize = {
        prefix: isPlain ? '' : prefixes[inputType],
        maxTokens: isPlain ? Math.max(maxTokens.query, maxTokens.passage) : maxTokens[inputType],
        truncate,
      };
      return lease.encode(inputs, { tokenize, signal });
    },
    close: () => lease.close(),
  };
}

/** Chooses the workers, their devices and whether they share weights. Throws CONFIG_INVALID. */
export async function poolOptions(
  model: ModelFolder,
  cudaDevices: CudaDevices,
  options: RunOptions,
): Promise<EncoderPoolOptions> {
  const { trialAtStart, onWarning } = options;
  const { externalData, enginePrecision, graphPath } = model;
  if (cudaDevices === null) {
    const workers = options.workers ?? availableCores();
    const shareWeights =
      externalData.length > 0 &&
      (options.shareWeights ?? (await totalBytes(externalData)) * workers > memoryLimit() / 2);
    return { model, workers, shareWeights, trialAtStart, onWarning };
  }
  if (enginePrecision !== undefined) {
    throw invalidConfig(
      `${enginePrecision} runs on CPUs only. Omit --device, or choose another precision with --precision.`,
    );
  }
  const weightBytes = await totalBytes([graphPath, ...externalData]);
  const size = DEVICE_SIZES.find(({ mebibytes }) => weightBytes <= mebibytes * 2 ** 20)!;
  const threads = options.workers ?? Math.min(size.threads, availableCores());
  if (!Number.isSafeInteger(threads) || threads < 1) {
    throw invalidConfig(`workers is ${threads}; it must be a whole number from 1.`);
  }
  // In turns, so that the first texts go to different devices.
  const devices = Array.from({ length: threads }, () => cudaDevices).flat();
  const { batchTokens } = size;
  return { model, workers: devices.length, cudaDevices: devices, batchTokens, trialAtStart, onWarning };
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

async function totalBytes(files: readonly string[]): Promise<number> {
  const sizes = await Promise.all(files.map(async (path) => (await stat(path)).size));
  return sizes.reduce((sum, size) => sum + size, 0);
}

async function firstPresent(nameOrFolder: string, preferred: readonly Precision[]): Promise<Precision | undefined> {
  if (preferred.length === 0) return undefined;
  const { precisions } = await readModelFolder(nameOrFolder);
  return preferred.find((precision) => precisions.includes(precision));
}
