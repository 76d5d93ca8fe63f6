import { openEncoder } from '../embedding/open-encoder.ts';
import type { TextEncoder } from '../embedding/text-encoder.ts';
import type { IndexManifest } from '../manifest/index-manifest.ts';
import type { ModelIdentity, Precision } from '../manifest/model-identity.ts';
import { checkSameModel } from './compare-model.ts';
import { recordedModel, recordedOverrides } from './recorded-model.ts';

export interface IndexEncoderOptions {
  /** Folder or name of the encoder; default: where the manifest says that it lay, else the name it has there. */
  readonly model?: string;
  /** Default: the manifest's, or the other float precision of the same checkpoint where there is no such graph. */
  readonly precision?: Precision;
  /** `cpu` (default) or CUDA devices (src/embedding/device.ts). */
  readonly device?: string;
  /** See `RunOptions` of the encoder. */
  readonly shareWeights?: boolean | undefined;
  /** See `RunOptions` of the encoder. */
  readonly longLived?: boolean;
  /** Encoder threads; default: as many as cores. */
  readonly encoderThreads?: number;
  /** Told what makes the answers differ a little, or slower than they could be. */
  readonly onWarning?: (warning: string) => void;
}

/**
 * Opens the encoder of an index. It takes prefixes, pooling and limits from the manifest, and its weights have to be those
 * the index was made with. `folders`: the index's, by its given path and by its own where that is another.
 *
 * @throws TrawlError MODEL_NOT_FOUND, MODEL_INVALID, MODEL_MISMATCH or DEVICE_UNAVAILABLE; nothing stays open then.
 */
export async function openIndexEncoder(
  folders: string | readonly string[],
  manifest: IndexManifest,
  options: IndexEncoderOptions,
): Promise<TextEncoder> {
  const encoder = await openEncoder(options.model ?? recordedModel([folders].flat(), manifest), {
    workers: options.encoderThreads,
    device: options.device,
    shareWeights: options.shareWeights,
    longLived: options.longLived,
    precision: options.precision,
    preferredPrecisions: precisionsFor(manifest.model, options.device),
    overrides: recordedOverrides(manifest),
  });
  try {
    const precisionAsked = options.precision !== undefined;
    const remark = checkSameModel(manifest.model, encoder.identity, { precisionAsked });
    if (remark !== null) options.onWarning?.(remark);
    return encoder;
  } catch (error) {
    await encoder.close();
    throw error;
  }
}

/** The index's own precision first. The CPU computes float16 slowly or not at all, so float32 goes before it there. */
function precisionsFor({ precision }: ModelIdentity, device = 'cpu'): readonly Precision[] {
  if (precision === 'int8') return ['int8'];
  const own = device === 'cpu' ? 'float32' : precision;
  return own === 'float32' ? ['float32', 'float16'] : ['float16', 'float32'];
}
