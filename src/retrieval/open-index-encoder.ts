import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { ModelOverrides } from '../embedding/model/model-overrides.ts';
import { openEncoder } from '../embedding/open-encoder.ts';
import type { EncoderPools } from '../embedding/pool/encoder-pools.ts';
import type { TextEncoder } from '../embedding/text-encoder.ts';
import type { IndexManifest } from '../manifest/index-manifest.ts';
import { DEFAULT_QUERY_TEMPLATE, type ModelIdentity, type Precision } from '../manifest/model-identity.ts';
import { requireVectors } from '../manifest/vector-space.ts';
import { checkSameModel } from './compare-model.ts';

export interface IndexEncoderOptions {
  /** Folder or name of the model. Default: the manifest's model location if it exists, else the manifest's model name. */
  readonly model?: string;
  /** Default: the manifest's, or the other float precision if the model folder lacks a graph in that precision. */
  readonly precision?: Precision;
  /** `cpu` (default) or CUDA devices (src/embedding/inference/device.ts). */
  readonly device?: string;
  /** See `RunOptions` of the encoder. */
  readonly shareWeights?: boolean | undefined;
  /** See `RunOptions` of the encoder. */
  readonly trialAtStart?: boolean;
  /** Encoder threads; default: the available cores. */
  readonly encoderThreads?: number;
  /** Pools that share encoder threads and weights between indexes of the same model. Default: a separate pool. */
  readonly encoderPools?: EncoderPools;
  /** Called with a warning when answers may differ in the last bits or be slower than possible, or a block list has unknown entries. */
  readonly onWarning?: (warning: string) => void;
}

/**
 * Opens the encoder of an index. Prefixes, pooling and token limits come from the manifest, and the encoder must have the weights
 * that the index was built with. `folders`: the index's path as given and, if that is a symbolic link, its target.
 *
 * @throws TrawlError NOT_SUPPORTED for an index without vectors, MODEL_NOT_FOUND, MODEL_INVALID, MODEL_MISMATCH or DEVICE_UNAVAILABLE; nothing stays open then.
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
  });
  try {
    const precisionAsked = options.precision !== undefined;
    const remark = checkSameModel(model, encoder.identity, { precisionAsked });
    if (remark !== null) options.onWarning?.(remark);
    return encoder;
  } catch (error) {
    await encoder.close();
    throw error;
  }
}

/** Precisions in order of preference: the index's own, but float32 instead of float16 on the CPU, where float16 is slow. */
function precisionsFor({ precision }: ModelIdentity, device = 'cpu'): readonly Precision[] {
  if (precision === 'int8') return ['int8'];
  const own = device === 'cpu' ? 'float32' : precision;
  return own === 'float32' ? ['float32', 'float16'] : ['float16', 'float32'];
}

/** The manifest's model location, resolved against the first of `folders` in which it exists; else the model's name. */
export function recordedModel(
  folders: readonly string[],
  { model, modelLocation }: { readonly model: ModelIdentity; readonly modelLocation?: string },
): string {
  if (modelLocation === undefined) return model.name;
  const paths = folders.map((folder) => resolve(folder, modelLocation));
  return paths.find((path) => existsSync(path)) ?? model.name;
}

/** The model settings recorded in the manifest, which override those of the model folder. */
export function recordedOverrides(model: ModelIdentity): ModelOverrides {
  return {
    queryPrefix: model.prefixes.query,
    passagePrefix: model.prefixes.passage,
    queryTemplate: model.queryTemplate ?? DEFAULT_QUERY_TEMPLATE,
    pooling: model.pooling,
    normalize: model.normalize,
    maxQueryTokens: model.maxTokens.query,
    maxPassageTokens: model.maxTokens.passage,
    ...(model.fullDimension === undefined ? {} : { dimension: model.dimension }),
  };
}
