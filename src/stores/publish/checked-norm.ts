import { TrawlError } from '../../base/errors.ts';
import type { Metric } from '../../engine/metric.ts';
import { LARGEST_NORM } from '../milvus/score-bound.ts';
import { upperNorm } from '../published/upper-norm.ts';

/**
 * The norm of a vector, rounded up.
 *
 * @throws TrawlError NOT_SUPPORTED for a vector whose scores Milvus could not compute in float32.
 */
export function checkedNorm(row: number, vector: Float32Array, metric: Metric): number {
  const norm = upperNorm(vector, 0, vector.length);
  if (norm === 0 && metric === 'cosine') {
    throw new TrawlError(
      'NOT_SUPPORTED',
      `Row ${row} is a zero vector, whose cosine Milvus does not define. Remove its passage.`,
    );
  }
  if (norm > LARGEST_NORM || (norm < 1 / LARGEST_NORM && norm > 0)) {
    throw new TrawlError(
      'NOT_SUPPORTED',
      `Row ${row} has a norm of ${norm}; in Milvus, norms from ${1 / LARGEST_NORM} to ${LARGEST_NORM} can be scored in float32. Scale the vectors.`,
    );
  }
  return norm;
}
