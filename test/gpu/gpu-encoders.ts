import { availableCores } from '../../src/base/system/cores.ts';
import type { Precision } from '../../src/encoder/identity/model-identity.ts';
import { readModelFolder } from '../../src/encoder/model/model-folder.ts';
import type { ModelOverrides } from '../../src/encoder/model/model-overrides.ts';
import { type ModelEncoder, openModelEncoder, poolOptions } from '../../src/encoder/open-encoder.ts';

export interface GpuEncoderOptions {
  readonly precision: Precision;
  /** CUDA device; null: padded batches on the CPU, which tries everything but the GPU. */
  readonly device: number | null;
  /** Default: as `--device cuda` has. */
  readonly batchTokens?: number;
  readonly overrides?: ModelOverrides;
  readonly onWarning?: (warning: string) => void;
  /** Threads of the device. Default: 1; `null`: as many as `trawl index --device cuda` has. */
  readonly threads?: number | null;
}

/** Tokens of a batch on the CPU. */
const REHEARSED_TOKENS = 16_384;

export async function openGpuEncoder(folder: string, options: GpuEncoderOptions): Promise<ModelEncoder> {
  const { precision, device, overrides, onWarning, threads = 1 } = options;
  const model = await readModelFolder(folder, overrides, { precision });
  const cudaDevices = device === null ? null : [device];
  const run = await poolOptions(model, cudaDevices, { workers: threads ?? undefined, onWarning });
  return openModelEncoder({ ...run, batchTokens: options.batchTokens ?? run.batchTokens ?? REHEARSED_TOKENS });
}

/** The encoder of the comparison: float32 on the CPU, each text as `trawl index` embeds it without a GPU. */
export async function openCpuEncoder(folder: string): Promise<ModelEncoder> {
  const model = await readModelFolder(folder, {}, { precision: 'float32' });
  return openModelEncoder({ model, workers: availableCores() });
}

/** The vectors of texts, row-major. Throws the error of the first text that fails. */
export async function vectorsOf(encoder: ModelEncoder, texts: readonly string[]): Promise<Float32Array> {
  const { vectors, outcomes } = await encoder.encode(texts, { inputType: 'passage' });
  for (const outcome of outcomes) if (!outcome.ok) throw outcome.error;
  return vectors;
}
