import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import { SegmentReader } from '../../src/engine/vectors/vector-segments.ts';
import { GaussianRandom } from './gaussian-random.ts';
import { openVectorFile } from './vector-file.ts';

/** The mean and centred vectors from which synthetic rows are drawn. */
export interface VectorBasis {
  readonly dimension: number;
  readonly mean: Float32Array;
  /** Row-major, `count` × dimension, with mean zero. */
  readonly centred: Float32Array;
  readonly count: number;
  /** Sum of the variances of all dimensions. */
  readonly variance: number;
  /** Where the vectors come from, for the report. */
  readonly name: string;
  /** A hash of the vectors. */
  readonly digest: string;
}

/** More vectors would not fit into the processor's caches. */
const MAX_VECTORS = 4096;

/** The built-in spectrum, fitted to E5-base-v2 on passages of Wikipedia (bench/search.md, "Vectors"). */
const SPECTRUM = { vectors: 1000, meanSquare: 0.712, variance: 0.288, offset: 5, seed: 20_240_501 } as const;

/** Real vectors of E5-base-v2, if they are beside the checkout. */
const E5_SAMPLE = join(packageRoot, '..', 'shared', 'data', 'flashrag_sample', 'e5_flat_sample.index');
const E5_DIMENSION = 768;

/**
 * The distribution of synthetic rows: that of the vectors in the FAISS file `like`. Without one, that of E5's sample, else the built-in
 * spectrum.
 *
 * @throws TrawlError DIMENSION_MISMATCH if the file has other dimensions.
 */
export function basisFor({ like, dimension }: { readonly like?: string; readonly dimension: number }): VectorBasis {
  if (like === undefined && (dimension !== E5_DIMENSION || !existsSync(E5_SAMPLE))) return basisOfSpectrum(dimension);
  const path = like ?? E5_SAMPLE;
  const basis = basisOfFile(path);
  if (basis.dimension === dimension) return basis;
  throw new TrawlError(
    'DIMENSION_MISMATCH',
    `${path} has ${basis.dimension} dimensions; give --dimension ${basis.dimension}.`,
  );
}

/** A basis of the first vectors of a FAISS flat file, at most 4,096. @internal Exported for tests. */
export function basisOfFile(path: string): VectorBasis {
  const { rows, dimension, segment } = openVectorFile(path);
  const count = Math.min(rows, MAX_VECTORS);
  const vectors = new Float32Array(count * dimension);
  const reader = new SegmentReader([segment], dimension);
  try {
    reader.read(0, count, vectors);
  } finally {
    reader.close();
  }
  return basisOf(vectors, count, dimension, `${count} vectors of ${path}`);
}

/**
 * A basis of Gaussian vectors, for use without real vectors. Their mean has a random direction and a squared length of 0.712,
 * which is then the mean cosine of two rows. The variance along coordinate i (from 0) is proportional to 1 / (i + 5), 0.288 in
 * total. E5's eigenvalues decay like this up to about the 300th, and faster after that.
 * @internal Exported for tests.
 */
export function basisOfSpectrum(dimension: number): VectorBasis {
  const { vectors: count, meanSquare, variance, offset, seed } = SPECTRUM;
  const random = new GaussianRandom(seed, dimension, 0);
  const direction = Float64Array.from({ length: dimension }, () => random.gaussian());
  const length = Math.sqrt(direction.reduce((sum, value) => sum + value * value, 0));
  const mean = direction.map((value) => (value / length) * Math.sqrt(meanSquare));
  const shares = Float64Array.from({ length: dimension }, (_, i) => 1 / (i + offset));
  const total = shares.reduce((sum, share) => sum + share, 0);
  const deviations = shares.map((share) => Math.sqrt((variance * share) / total));
  const vectors = new Float32Array(count * dimension);
  for (let i = 0; i < vectors.length; i++) {
    vectors[i] = mean[i % dimension]! + deviations[i % dimension]! * random.gaussian();
  }
  return basisOf(vectors, count, dimension, 'the built-in spectrum');
}

function basisOf(vectors: Float32Array, count: number, dimension: number, name: string): VectorBasis {
  const digest = createHash('sha256').update(vectors).digest('hex').slice(0, 16);
  const sums = new Float64Array(dimension);
  for (let i = 0; i < vectors.length; i++) sums[i % dimension]! += vectors[i]!;
  const mean = Float32Array.from(sums, (sum) => sum / count);
  const centred = vectors.map((value, i) => value - mean[i % dimension]!);
  const variance = centred.reduce((sum, value) => sum + value * value, 0) / count;
  return { dimension, mean, centred, count, variance, name, digest };
}
