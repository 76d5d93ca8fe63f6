import { readFile } from 'node:fs/promises';
import { TrawlError } from '../../src/base/errors.ts';
import { firstNonFinite } from '../../src/engine/typed-arrays.ts';
import { SegmentReader } from '../../src/engine/vectors/vector-segments.ts';
import { GaussianRandom } from '../vectors/gaussian-random.ts';
import { decodeNpy, type Matrix } from '../vectors/npy.ts';
import { SyntheticVectors } from '../vectors/synthetic-vectors.ts';
import type { VectorBasis } from '../vectors/vector-basis.ts';
import type { VectorFile } from '../vectors/vector-file.ts';

/** Length of the noise divided by the length of the row. */
const PERTURBATION = 0.25;

/** Vectors with the same distribution as the rows. No query is a row. */
export function heldOutQueries(basis: VectorBasis, count: number, seed: number): Matrix {
  const values = new Float32Array(count * basis.dimension);
  new SyntheticVectors(basis, { seed, float16: false }).fill('queries', 0, count, values);
  return { rows: count, columns: basis.dimension, values };
}

/** Random rows with isotropic noise. The noise has a quarter of the row's length; the sum is scaled to the row's length. */
export function perturbedRows(file: VectorFile, count: number, seed: number): Matrix {
  const { rows, dimension, segment } = file;
  const values = new Float32Array(count * dimension);
  const random = new GaussianRandom(seed, rows, dimension);
  const reader = new SegmentReader([segment], dimension);
  try {
    for (let i = 0; i < count; i++) {
      const query = values.subarray(i * dimension, (i + 1) * dimension);
      reader.read(random.below(rows), 1, query);
      const length = lengthOf(query);
      const deviation = (PERTURBATION * length) / Math.sqrt(dimension);
      for (let j = 0; j < dimension; j++) query[j]! += deviation * random.gaussian();
      const scale = length === 0 ? 1 : length / lengthOf(query);
      for (let j = 0; j < dimension; j++) query[j]! *= scale;
    }
  } finally {
    reader.close();
  }
  return { rows: count, columns: dimension, values };
}

/** @throws TrawlError DIMENSION_MISMATCH, INDEX_FILE_MISSING, INDEX_FILE_FOREIGN, NON_FINITE_QUERY. */
export async function queriesOfFile(path: string, dimension: number): Promise<Matrix> {
  const bytes = await readFile(path).catch((cause: unknown) => {
    throw new TrawlError('INDEX_FILE_MISSING', `${path}: cannot be read. Give a .npy file of query vectors.`, {
      cause,
    });
  });
  const queries = decodeNpy(bytes, path);
  if (queries.columns !== dimension) {
    throw new TrawlError(
      'DIMENSION_MISMATCH',
      `${path}: the queries have ${queries.columns} dimensions, the rows ${dimension}.`,
    );
  }
  const bad = firstNonFinite(queries.values);
  if (bad >= 0) {
    const [query, column] = [Math.floor(bad / dimension), bad % dimension];
    throw new TrawlError(
      'NON_FINITE_QUERY',
      `${path}: query ${query} has ${queries.values[bad]} in column ${column}.`,
      {
        details: { query, column },
      },
    );
  }
  return queries;
}

function lengthOf(vector: Float32Array): number {
  let square = 0;
  for (const value of vector) square += value * value;
  return Math.sqrt(square);
}
