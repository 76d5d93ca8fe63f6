import { createHash } from 'node:crypto';
import { SegmentReader } from '../src/vector-index/vector-segments.ts';
import { Random } from './random.ts';
import { openVectorFile } from './vector-file.ts';

/** A mean and centred vectors: what synthetic rows take their distribution from. */
export interface VectorBasis {
  readonly dimension: number;
  readonly mean: Float32Array;
  /** Row-major, `count` × dimension, with the mean zero. */
  readonly centred: Float32Array;
  readonly count: number;
  /** Sum of the variances of all dimensions. */
  readonly variance: number;
  /** What it comes from, for the report. */
  readonly name: string;
  /** Another one for other vectors. */
  readonly digest: string;
}

/** More vectors of a file than this are not taken: they would leave the caches. */
const MOST_VECTORS = 4096;

/** Of the built-in spectrum, after E5-base-v2 on passages of Wikipedia (docs: bench/README.md, "Vectors"). */
const SPECTRUM = { vectors: 1000, meanSquare: 0.712, variance: 0.288, offset: 5, seed: 20_240_501 } as const;

/** The first vectors of a FAISS flat file, as they are. */
export function basisOfFile(path: string): VectorBasis {
  const { rows, dimension, segment } = openVectorFile(path);
  const count = Math.min(rows, MOST_VECTORS);
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
 * Without real vectors: the mean a random direction of squared length 0.712 (so that two rows have this mean cosine), and
 * about it Gaussians with axes along the coordinates, variance of axis i (from 0) proportional to 1 / (i + 5), 0.288 in
 * all. E5's eigenvalues fall like this from the first to about the 300th, the others faster.
 */
export function basisOfSpectrum(dimension: number): VectorBasis {
  const { vectors: count, meanSquare, variance, offset, seed } = SPECTRUM;
  const random = new Random(seed, dimension, 0);
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
