import { statSync } from 'node:fs';
import { basename } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { fileState } from '../../src/base/system/file-checksum.ts';
import type { ModelIdentity } from '../../src/encoder/identity/model-identity.ts';
import type { Metric } from '../../src/engine/metric.ts';
import { faissMetric } from '../../src/engine/vectors/faiss-format.ts';
import { sampleChecksum } from '../../src/engine/vectors/sample-checksum.ts';
import type { BuildRecord } from '../../src/index/manifest/build-records.ts';
import type { ShardManifest } from '../../src/index/manifest/shard-manifest.ts';
import type { VectorFileSet } from '../vector-files/vector-file-set.ts';
import type { ReopenEncoder } from './embedding-settings.ts';

export interface ModelCheck {
  readonly rows: number;
  /** Opens the model with other settings, to find those that the vectors were made with. */
  readonly reopen: ReopenEncoder;
}

/** Vectors from files, used instead of embedding. */
export interface PrecomputedVectors {
  readonly set: VectorFileSet;
  /** `adopt`: the index refers to the files in place. `copy`: the index gets a copy as float32. */
  readonly use: 'adopt' | 'copy';
  readonly metric: Metric;
  /** Store the paths of adopted files relative to the shard, so that both can be moved together. Default: absolute. */
  readonly relativePaths?: boolean;
  /** Embed some passages again, to check that the vectors come from the model. */
  readonly check?: ModelCheck;
}

/**
 * Checks that vectors fit the model. Returns the metric of the index: the requested one, else the model's, which must agree
 * with the file's.
 *
 * @throws TrawlError VECTORS_MISMATCH for another dimension or metric.
 */
export function checkFits(set: VectorFileSet, model: ModelIdentity, metric: Metric | undefined): Metric {
  const [file] = set.files;
  if (set.dimension !== model.dimension) {
    const hint =
      set.dimension < model.dimension
        ? ` If they were truncated to it (Matryoshka), add --dimension ${set.dimension}.`
        : '';
    throw mismatch(
      `${file!.path}: its vectors have ${set.dimension} dimensions; ${model.name} makes ${model.dimension}. Name ` +
        `the model that made them with --model.${hint}`,
    );
  }
  if (metric !== undefined) return metric;
  const own = model.similarity;
  if (set.metric !== undefined && set.metric !== faissMetric(own)) {
    throw mismatch(
      `${file!.path}: the metric of this file is ${set.metric}, that of ${model.name} is ${own}. Choose one with ` +
        `--metric ${set.metric} or --metric ${own}.`,
    );
  }
  return own;
}

/** @throws TrawlError VECTORS_MISMATCH if the numbers of vectors and passages differ. */
export function checkRows({ set }: PrecomputedVectors, passages: number, what = 'the corpus has'): void {
  if (set.rows === passages) return;
  const files = set.files.length === 1 ? set.files[0]!.path : `${set.files[0]!.path} and ${set.files.length - 1} more`;
  const halves = set.formats.includes('memmap') && set.dtype === 'float32' && passages === 2 * set.rows;
  throw mismatch(
    `${files}: ${set.rows} vectors, but ${what} ${passages} passages. Vector n belongs to passage n: name the whole corpus ` +
      'that the vectors were made from, in its order.' +
      (halves ? ' Read as float16, the numbers would be equal: add --dtype float16.' : ''),
    { vectors: set.rows, passages },
  );
}

export function vectorsRecord({ set, use, metric }: PrecomputedVectors): NonNullable<BuildRecord['vectors']> {
  return { use, metric, dtype: set.dtype, rows: set.rows, files: [...set.files] };
}

/** The record of vector files for a shard's manifest. Identifies the files independent of their paths. */
export function vectorsInput({
  set,
  use,
  metric,
}: PrecomputedVectors): NonNullable<NonNullable<ShardManifest['input']>['vectors']> {
  const sample = (path: string, bytes: number): string => sampleChecksum(path, { offset: 0, bytes });
  const files = set.files.map(({ path, bytes }) => ({ name: basename(path), bytes, sample: sample(path, bytes) }));
  return { use, metric, rows: set.rows, files };
}

/** @throws TrawlError VECTORS_INVALID if a file changed since it was opened. */
export function checkVectorsUnchanged({ set }: PrecomputedVectors): void {
  for (const { path, bytes, state } of set.files) {
    if (fileState(path) === state) continue;
    const now = statSync(path, { throwIfNoEntry: false });
    throw new TrawlError(
      'VECTORS_INVALID',
      `${path} changed while it was read (${bytes} bytes, now ${now?.size ?? 'gone'}). Run the command again when no other ` +
        'program writes the file.',
      { details: { path } },
    );
  }
}

function mismatch(message: string, details: Readonly<Record<string, unknown>> = {}): TrawlError {
  return new TrawlError('VECTORS_MISMATCH', message, { details });
}
