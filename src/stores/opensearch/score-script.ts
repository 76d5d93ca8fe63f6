import type { Metric } from '../../engine/metric.ts';
import type { StoreScores } from '../published/candidate-source.ts';
import { VECTOR_FIELD } from './stored-rows.ts';

/** Reads the next float32, little-endian, into `x`. In one expression, Painless refuses it. */
const NEXT = `int bits = bytes[at + 3] & 255;
  bits = (bits << 8) | (bytes[at + 2] & 255);
  bits = (bits << 8) | (bytes[at + 1] & 255);
  bits = (bits << 8) | (bytes[at] & 255);
  double x = (double) Float.intBitsToFloat(bits);
  at += 4;`;

const START = `def stored = doc['${VECTOR_FIELD}'].value;
byte[] bytes = stored.bytes;
int at = stored.offset;
List q = params.q;
int dimension = q.size();
double sum = 0;`;

/**
 * Painless scripts with the score of a row: sums in double, in the order of the columns, as here (`scoreFunction`). They are the same for
 * every query, so that OpenSearch compiles them once.
 */
const SOURCES: Readonly<Record<Metric, string>> = {
  'inner-product': `${START}
for (int j = 0; j < dimension; ++j) {
  ${NEXT}
  sum += (double) q.get(j) * x;
}
return sum;`,
  cosine: `${START}
double square = 0;
for (int j = 0; j < dimension; ++j) {
  ${NEXT}
  sum += (double) q.get(j) * x;
  square += x * x;
}
if (square == 0) return 0;
return sum / (double) params.norm / Math.sqrt(square);`,
  l2: `${START}
for (int j = 0; j < dimension; ++j) {
  ${NEXT}
  double difference = (double) q.get(j) - x;
  sum += difference * difference;
}
return 0 - sum;`,
};

/** The script that scores a row for a query, larger is nearer. With cosine, the query is not a zero vector. */
export function scoreScript(metric: Metric, query: Float32Array): object {
  const q = Array.from(query);
  const norm = Math.sqrt(q.reduce((sum, value) => sum + value * value, 0));
  return { lang: 'painless', source: SOURCES[metric], params: metric === 'cosine' ? { q, norm } : { q } };
}

/** Unit roundoff of float64. */
const U = 2 ** -53;

/**
 * How far a score of the script can be from the score here. Both are the same operations of IEEE 754 in the same order, so that they are
 * equal; this bounds them in any order, each off by at most γ from the exact value (docs/cluster.md).
 */
function scoreError(metric: Metric, { dimension, queryNorm, rowNorm }: Parameters<StoreScores['error']>[1]): number {
  const n = 2 * dimension + 16;
  const gamma = (2 * n * U) / (1 - n * U);
  switch (metric) {
    case 'inner-product':
      return gamma * queryNorm * rowNorm;
    case 'l2':
      return gamma * (queryNorm + rowNorm) ** 2;
    case 'cosine':
      return 2 * gamma;
  }
}

/** The squared distance of two vectors of float32 is far from the limits of float64, so that no vector is too long or too short. */
export const OPENSEARCH_SCORES: StoreScores = {
  store: 'OpenSearch',
  largestNorm: Number.POSITIVE_INFINITY,
  scalesQueries: false,
  error: scoreError,
};
