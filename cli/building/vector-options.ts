import { randomUUID } from 'node:crypto';
import { resolve } from 'node:path';
import { openVectorFiles, VECTOR_FILE_FORMATS } from '../../indexer/vector-files/open-vector-files.ts';
import { checkFits, type PrecomputedVectors } from '../../indexer/vectors/precomputed-vectors.ts';
import { usageError } from '../../src/base/errors.ts';
import type { OptionTable, OptionValues } from '../../src/base/options/option-spec.ts';
import type { ModelOverrides } from '../../src/encoder/model/model-overrides.ts';
import type { TextEncoder } from '../../src/encoder/text-encoder.ts';
import { METRICS } from '../../src/engine/metric.ts';
import { VECTOR_DTYPES } from '../../src/engine/vectors/vector-segments.ts';
import * as option from '../options/option.ts';

/** Options for vectors from files. */
export const VECTOR_FILE_OPTIONS = {
  'vectors-format': option.choice(
    VECTOR_FILE_FORMATS,
    'Format of the vector files; memmap: raw values without a header. Default: recognised by the first bytes.',
  ),
  dtype: option.choice(
    { choices: VECTOR_DTYPES, default: 'float32' },
    'Type of the values in raw vector files. Other formats record it.',
  ),
  metric: option.choice(
    METRICS,
    "Metric of vectors from files. Default: the model's metric. The files must not record a different one.",
  ),
  'check-model': option.integer(
    { default: 32, min: 0, max: 100_000 },
    'Embed N random passages and compare them with their vectors from files, to check model, prefix, pooling and template. If other settings match better, the error names them. 0: no check.',
  ),
} as const satisfies OptionTable;

/** @throws TrawlError USAGE for options that apply only to vectors from files. */
export function refuseVectorFileOptions(given: ReadonlySet<string>): void {
  const other = Object.keys(VECTOR_FILE_OPTIONS).find((name) => given.has(name));
  if (other === undefined) return;
  throw usageError(`--${other} is only for vectors from files (--from-embeddings).`);
}

/** A new file beside the index at `out`, for `givenVectors`. Remove it after the build. */
export function newWorkingFile(out: string): string {
  return `${resolve(out)}.vectors-${randomUUID().slice(0, 8)}`;
}

/** @throws TrawlError VECTORS_NOT_FOUND, VECTORS_INVALID, VECTORS_UNSUPPORTED, VECTORS_MISMATCH. */
export async function givenVectors(
  paths: readonly string[],
  options: OptionValues<typeof VECTOR_FILE_OPTIONS>,
  how: {
    use: PrecomputedVectors['use'];
    relativePaths?: boolean;
    workingFile: string;
    signal: AbortSignal;
    encoder: TextEncoder;
    reopen: (changed: ModelOverrides) => Promise<TextEncoder>;
  },
): Promise<PrecomputedVectors> {
  const { use, relativePaths, workingFile, signal, encoder, reopen } = how;
  const set = await openVectorFiles(paths, {
    dimension: encoder.dimension,
    dtype: options.dtype,
    format: options['vectors-format'],
    workingFile,
    signal,
  });
  const metric = checkFits(set, encoder.identity, options.metric);
  return {
    set,
    use: set.isCopied ? 'copy' : use,
    metric,
    relativePaths,
    check: { rows: options['check-model'], reopen },
  };
}
