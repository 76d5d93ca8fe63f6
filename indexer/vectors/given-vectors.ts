import { statSync } from 'node:fs';
import { basename } from 'node:path';
import { cutSegments, type EmbeddingSet } from '../../embeddings/embedding-set.ts';
import { TrawlError } from '../../src/errors.ts';
import type { BuildRecord } from '../../src/manifest/build-records.ts';
import type { ModelIdentity } from '../../src/manifest/model-identity.ts';
import type { ShardManifest } from '../../src/manifest/shard-manifest.ts';
import type { Metric } from '../../src/metric.ts';
import { faissMetric } from '../../src/vector-index/faiss-format.ts';
import { sampleChecksum } from '../../src/vector-index/sample-checksum.ts';
import type { VectorSegment } from '../../src/vector-index/vector-segments.ts';
import type { ModelCheck } from './check-model.ts';

type ShardInput = NonNullable<ShardManifest['input']>;

/** Vectors that are there already, in place of those an encoder would make. */
export interface GivenVectors {
  readonly set: EmbeddingSet;
  /** `adopt`: the index refers to the files where they lie. `copy`: it gets its own file, as float32. */
  readonly use: 'adopt' | 'copy';
  readonly metric: Metric;
  /** Paths of adopted files relative to the shard, so that index and files can be moved together. Default: absolute. */
  readonly relativePaths?: boolean | undefined;
  /** Embeds some rows again before anything else is done with the vectors. */
  readonly check?: ModelCheck | undefined;
}

/** The vectors of one shard. */
export interface ShardRows {
  readonly segments: readonly VectorSegment[];
  /** Row number within the whole of the shard's first. */
  readonly firstRow: number;
}

/**
 * The metric of an index of these vectors: what was asked for, else the model's, which must not contradict the file's.
 *
 * @throws TrawlError VECTORS_MISMATCH on dimension or metric.
 */
export function checkFits(set: EmbeddingSet, model: ModelIdentity, metric: Metric | undefined): Metric {
  const [file] = set.files;
  if (set.dimension !== model.dimension) {
    const cut =
      set.dimension < model.dimension ? ` Where they were cut to it (Matryoshka): --dimension ${set.dimension}.` : '';
    throw mismatch(
      `${file!.path}: vectors of ${set.dimension} dimensions, and ${model.name} gives ${model.dimension}. Name the model ` +
        `that made them with --model.${cut}`,
    );
  }
  if (metric !== undefined) return metric;
  const own = model.similarity;
  if (set.metric !== undefined && set.metric !== faissMetric(own)) {
    throw mismatch(
      `${file!.path}: is an index of metric ${set.metric}, and vectors of ${model.name} are compared by ${own}. ` +
        `--metric ${set.metric} or --metric ${own} says which is meant.`,
    );
  }
  return own;
}

/** @throws TrawlError VECTORS_MISMATCH with both numbers. */
export function checkRows({ set }: GivenVectors, passages: number, what = 'the corpus has'): void {
  if (set.rows === passages) return;
  const files = set.files.length === 1 ? set.files[0]!.path : `${set.files[0]!.path} and ${set.files.length - 1} more`;
  const halves = set.formats.includes('memmap') && set.dtype === 'float32' && passages === 2 * set.rows;
  throw mismatch(
    `${files}: ${set.rows} vectors, and ${what} ${passages} passages. Row n of the vectors has to be that of passage n: ` +
      'name the very corpus they were made from, whole and in its order' +
      (halves ? '; as float16 they would be as many: --dtype float16.' : '.'),
    { vectors: set.rows, passages },
  );
}

export function shardRows({ set }: GivenVectors, firstRow: number, rows: number): ShardRows {
  return { segments: cutSegments(set, firstRow, rows), firstRow };
}

/** For the note of a build. */
export function vectorsRecord({ set, use, metric }: GivenVectors): NonNullable<BuildRecord['vectors']> {
  return { use, metric, dtype: set.dtype, rows: set.rows, files: [...set.files] };
}

/** For a shard's manifest: what its vectors are told by, wherever the files lie. */
export function vectorsInput({ set, use, metric }: GivenVectors): NonNullable<ShardInput['vectors']> {
  const files = set.files.map(({ path, bytes }) => ({
    name: basename(path),
    bytes,
    sample: sampleChecksum(path, { offset: 0, bytes }),
  }));
  return { use, metric, rows: set.rows, files };
}

/** @throws TrawlError VECTORS_INVALID where a file is not as it was when it was looked at. */
export function checkUnchanged({ set }: GivenVectors): void {
  for (const { path, bytes, modifiedMs } of set.files) {
    const now = statSync(path, { throwIfNoEntry: false });
    if (now?.size === bytes && now.mtimeMs === modifiedMs) continue;
    throw new TrawlError(
      'VECTORS_INVALID',
      `${path} was changed while it was read (${bytes} bytes, now ${now?.size ?? 'gone'}). Run it again when nobody writes it.`,
      { details: { path } },
    );
  }
}

function mismatch(message: string, details: Readonly<Record<string, unknown>> = {}): TrawlError {
  return new TrawlError('VECTORS_MISMATCH', message, { details });
}
