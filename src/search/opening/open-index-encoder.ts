import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { untilAborted } from '../../base/abort.ts';
import { TrawlError } from '../../base/errors.ts';
import { embedProbes, storedProbes } from '../../encoder/endpoint/embed-probes.ts';
import type { EndpointOptions } from '../../encoder/endpoint/endpoint-options.ts';
import { changedEndpoint } from '../../encoder/endpoint/endpoint-watch.ts';
import { DEFAULT_QUERY_TEMPLATE, type ModelIdentity, type Precision } from '../../encoder/identity/model-identity.ts';
import type { ModelOverrides } from '../../encoder/model/model-overrides.ts';
import { openEncoder } from '../../encoder/open-encoder.ts';
import type { EncoderPools } from '../../encoder/pool/encoder-pools.ts';
import type { TextEncoder } from '../../encoder/text-encoder.ts';
import type { IndexManifest } from '../../index/manifest/index-manifest.ts';
import { requireVectors } from '../../index/manifest/vector-space.ts';
import { checkSameModel } from './compare-model.ts';

export interface IndexEncoderOptions {
  /**
   * Folder or name of the model, or the URL of an endpoint. Default: the manifest's model location if it exists, else the manifest's
   * model name.
   */
  readonly model?: string;
  /** Default: the manifest's, or the other float precision if the model folder lacks a graph in that precision. */
  readonly precision?: Precision;
  /** `cpu` (default) or CUDA devices (src/encoder/inference/device.ts). */
  readonly device?: string;
  /** See `RunOptions` of the encoder. */
  readonly shareWeights?: boolean;
  /** See `RunOptions` of the encoder. */
  readonly trialAtStart?: boolean;
  /** Encoder threads, on GPUs of each device. Default: as `RunOptions.workers`. */
  readonly encoderThreads?: number;
  /** Pools that share encoder threads and weights between indexes of the same model. Default: a separate pool. */
  readonly encoderPools?: EncoderPools;
  /** For a URL as `model`. */
  readonly endpoint?: EndpointOptions;
  /** For a URL as `model`: see `OpenEndpointOptions`. */
  readonly answersSince?: number;
  /** Aborting ends the opening of an endpoint with CANCELLED. */
  readonly signal?: AbortSignal;
  /**
   * For a URL as `model` and an index of a model folder, which has no probes: embeds passages of the index again and compares them with
   * their vectors. Resolves to the largest relative distance and whether all are near enough. Without it such an index is refused.
   */
  readonly checkStored?: CheckStored;
  /** Called with a warning when answers may differ in the last bits or be slower than possible, or a block list has unknown entries. */
  readonly onWarning?: (warning: string) => void;
}

export type CheckStored = (
  folder: string,
  encoder: TextEncoder,
) => Promise<{ readonly isSame: boolean; readonly passages: number; readonly largestDistance: number | null }>;

/**
 * Opens the encoder of an index. Prefixes, pooling and token limits come from the manifest, and the encoder must have the weights
 * that the index was built with; an endpoint must give the recorded vectors.
 *
 * @param folders the index's path as given and, if that is a symbolic link, its target.
 * @throws TrawlError NOT_SUPPORTED for an index without vectors, MODEL_NOT_FOUND, MODEL_INVALID, MODEL_MISMATCH, ENDPOINT_FAILED,
 * DEVICE_UNAVAILABLE or CANCELLED; nothing stays open then.
 */
export async function openIndexEncoder(
  folders: string | readonly string[],
  manifest: IndexManifest,
  options: IndexEncoderOptions,
): Promise<TextEncoder> {
  const { model } = requireVectors([folders].flat()[0]!, manifest);
  const encoder = await openEncoder(options.model ?? recordedModel([folders].flat(), { ...manifest, model }), {
    workers: options.encoderThreads,
    device: options.device,
    shareWeights: options.shareWeights,
    trialAtStart: options.trialAtStart,
    precision: options.precision,
    preferredPrecisions: precisionsFor(model, options.device),
    overrides: recordedOverrides(model),
    pools: options.encoderPools,
    endpoint: options.endpoint,
    recorded: model,
    answersSince: options.answersSince,
    signal: options.signal,
    onWarning: options.onWarning,
  });
  try {
    const precisionAsked = options.precision !== undefined;
    const remark =
      model.endpoint === undefined && encoder.identity.endpoint === undefined
        ? checkSameModel(model, encoder.identity, { precisionAsked })
        : await untilAborted(checkVectors([folders].flat()[0]!, model, encoder, options), options.signal);
    if (remark !== null) options.onWarning?.(remark);
    return encoder;
  } catch (error) {
    await encoder.close();
    throw error;
  }
}

/**
 * Compares vectors where a checksum cannot tell: vectors of the probes that the index records, else of its passages.
 *
 * @returns what is to be reported, or null.
 * @throws TrawlError MODEL_MISMATCH, NOT_SUPPORTED.
 */
async function checkVectors(
  folder: string,
  model: ModelIdentity,
  encoder: TextEncoder,
  { checkStored, endpoint }: IndexEncoderOptions,
): Promise<string | null> {
  const error =
    model.endpoint === undefined
      ? await differingPassages(folder, model, encoder, checkStored)
      : changedEndpoint(
          encoder.identity.name,
          // Probes are stored as the endpoint sent them. A model folder is compared with them as the index stores vectors.
          encoder.identity.endpoint === undefined ? storedProbes(model) : model.endpoint.probes,
          encoder.identity.endpoint?.probes ?? (await embedProbes(encoder, model.endpoint.probes)),
        );
  if (error === undefined) return null;
  if (endpoint?.onChange !== 'report') throw error;
  return error.message;
}

async function differingPassages(
  folder: string,
  model: ModelIdentity,
  encoder: TextEncoder,
  check: CheckStored | undefined,
): Promise<TrawlError | undefined> {
  if (check === undefined) {
    throw new TrawlError(
      'NOT_SUPPORTED',
      `The index of ${model.name} cannot be opened with an endpoint without checkStored, which compares their vectors.`,
    );
  }
  const { isSame, passages, largestDistance } = await check(folder, encoder);
  if (isSame) return undefined;
  return new TrawlError(
    'MODEL_MISMATCH',
    `The index was built with ${model.name}, but the endpoint ${encoder.identity.name} gives its passages other vectors: of ${passages} ` +
      `passages embedded again, the farthest has a relative distance of ${largestDistance?.toFixed(3)} to its vector. Start the endpoint ` +
      'with the model of the index, its pooling and without a prompt of its own, or build the index again.',
    { details: { passages, largestDistance } },
  );
}

/** Precisions in order of preference: the index's own, but float32 instead of float16 on the CPU, where float16 is slow. */
function precisionsFor({ precision }: ModelIdentity, device = 'cpu'): readonly Precision[] {
  if (precision === 'int8' || precision === 'bfloat16') return [precision];
  const own = device === 'cpu' ? 'float32' : precision;
  return own === 'float32' ? ['float32', 'float16'] : ['float16', 'float32'];
}

/** The manifest's model location, resolved against the first of `folders` in which it exists; else the model's name. */
export function recordedModel(
  folders: readonly string[],
  { model, modelLocation }: { readonly model: ModelIdentity; readonly modelLocation?: string },
): string {
  if (model.endpoint !== undefined) {
    throw new TrawlError(
      'MODEL_NOT_FOUND',
      `The index was embedded by ${model.name} behind an endpoint. Name its address with --model http://HOST:PORT, or the model's folder with --model DIR.`,
    );
  }
  if (modelLocation === undefined) return model.name;
  const paths = folders.map((folder) => resolve(folder, modelLocation));
  return paths.find((path) => existsSync(path)) ?? model.name;
}

/** The model settings recorded in the manifest, which override the settings of the model folder. */
export function recordedOverrides(model: ModelIdentity): ModelOverrides {
  const { endpoint } = model;
  const template = { queryTemplate: model.queryTemplate ?? DEFAULT_QUERY_TEMPLATE };
  if (endpoint !== undefined) {
    // A model folder instead of the endpoint keeps its own pooling and limits, and its prompts if the endpoint added them.
    // Trawl cut the endpoint's vectors to the dimension without a layer norm before.
    const appliesPrompts = Object.keys({ ...endpoint.requests.query, ...endpoint.requests.passage }).length > 0;
    return {
      ...template,
      normalize: model.normalize,
      ...(appliesPrompts ? {} : { queryPrefix: model.prefixes.query, passagePrefix: model.prefixes.passage }),
      ...(model.fullDimension === undefined ? {} : { dimension: model.dimension, beforeTruncation: null }),
    };
  }
  return {
    ...template,
    queryPrefix: model.prefixes.query,
    passagePrefix: model.prefixes.passage,
    pooling: model.pooling,
    normalize: model.normalize,
    maxQueryTokens: model.maxTokens.query ?? undefined,
    maxPassageTokens: model.maxTokens.passage ?? undefined,
    ...(model.fullDimension === undefined
      ? {}
      : { dimension: model.dimension, beforeTruncation: model.beforeTruncation ?? null }),
  };
}
