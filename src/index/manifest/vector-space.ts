import { TrawlError } from '../../base/errors.ts';
import type { ModelIdentity } from '../../encoder/identity/model-identity.ts';
import type { Metric } from '../../engine/metric.ts';

/** What the vectors of an index or a shard have in common. */
export interface VectorSpace {
  readonly model: ModelIdentity;
  readonly metric: Metric;
  readonly dimension: number;
}

interface MaybeVectors {
  readonly model: ModelIdentity | null;
  readonly metric: Metric | null;
  readonly dimension: number;
}

/** The vector space of an index or a shard; undefined if it has inverted indexes alone. */
export function vectorSpace({ model, metric, dimension }: MaybeVectors): VectorSpace | undefined {
  return model === null || metric === null ? undefined : { model, metric, dimension };
}

/** @throws TrawlError NOT_SUPPORTED for an index that has inverted indexes alone. */
export function requireVectors(folder: string, manifest: MaybeVectors): VectorSpace {
  const space = vectorSpace(manifest);
  if (space !== undefined) return space;
  throw new TrawlError(
    'NOT_SUPPORTED',
    `${folder}: the index has no vectors, only inverted indexes for BM25. Build it again with --model for vectors.`,
  );
}
