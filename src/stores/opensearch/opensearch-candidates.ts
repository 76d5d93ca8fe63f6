import { throwIfCancelled } from '../../base/abort.ts';
import type { Metric } from '../../engine/metric.ts';
import type { CandidateSource, Candidates, StoreScores } from '../published/candidate-source.ts';
import { ROW_FIELD, VECTOR_FIELD } from '../published/published-row.ts';
import type { OpenSearchClient } from './opensearch-client.ts';
import { rowQuery, searchesAtOnce } from './row-query.ts';
import { readRows, vectorOf } from './stored-rows.ts';

/** Rows that a call may score, so that it ends well within its time limit. */
const SCORED_A_CALL = 20_000_000;

/** The first pass of a search, in OpenSearch: a script scores every row that meets the condition. */
export function openSearchCandidates(
  client: OpenSearchClient,
  { index, dimension, metric }: { readonly index: string; readonly dimension: number; readonly metric: Metric },
): CandidateSource {
  return {
    takesBitmaps: true,
    search: async (queries, { count, limit, among, condition, signal }) => {
      const query = rowQuery(condition);
      const atOnce = searchesAtOnce(condition, Math.floor(SCORED_A_CALL / Math.max(1, among)));
      const found: Candidates[] = [];
      for (let first = 0; first < count; first += atOnce) {
        throwIfCancelled(signal);
        const searches = Array.from({ length: Math.min(atOnce, count - first) }, (_, i) => {
          const at = (first + i) * dimension;
          const script = scoreScript(metric, queries.subarray(at, at + dimension));
          return {
            size: limit,
            query,
            sort: [{ _script: { type: 'number', order: 'desc', script } }, { [ROW_FIELD]: 'asc' }],
            _source: false,
            stored_fields: '_none_',
          };
        });
        for (const { hits, total } of await client.searchMany(index, searches, signal)) {
          found.push({
            rows: Float64Array.from(hits, ({ sort }) => Number(sort?.[1])),
            values: Float64Array.from(hits, ({ sort }) => Number(sort?.[0])),
            total,
          });
        }
      }
      return found;
    },
    vectors: async (rows, signal) => {
      const hits = await readRows(client, index, { rows, docValues: [VECTOR_FIELD], signal });
      const values = new Float32Array(rows.length * dimension);
      for (const [i, { fields }] of hits.entries())
        values.set(vectorOf(rows[i]!, fields?.[VECTOR_FIELD]?.[0], dimension), i * dimension);
      return values;
    },
  };
}

/**
 * A Painless script that computes `sum` over the columns of the stored vector; `step` adds column j, whose value is `x`. It reads float32,
 * little-endian, in steps because Painless refuses one expression.
 */
const script = (step: string, result: string): string => `def stored = doc['${VECTOR_FIELD}'].value;
byte[] bytes = stored.bytes;
int at = stored.offset;
List q = params.q;
int dimension = q.size();
double sum = 0;
double square = 0;
for (int j = 0; j < dimension; ++j) {
  int bits = bytes[at + 3] & 255;
  bits = (bits << 8) | (bytes[at + 2] & 255);
  bits = (bits << 8) | (bytes[at + 1] & 255);
  bits = (bits << 8) | (bytes[at] & 255);
  double x = (double) Float.intBitsToFloat(bits);
  at += 4;
  ${step}
}
${result}`;

/** Scores of a row: sums in double, in the order of the columns, as here (`scoreFunction`). One script for all queries is compiled once. */
const SOURCES: Readonly<Record<Metric, string>> = {
  'inner-product': script('sum += (double) q.get(j) * x;', 'return sum;'),
  cosine: script(
    'sum += (double) q.get(j) * x; square += x * x;',
    'if (square == 0) return 0; return sum / (double) params.norm / Math.sqrt(square);',
  ),
  l2: script('double difference = (double) q.get(j) - x; sum += difference * difference;', 'return 0 - sum;'),
};

/** The script that scores a row for a query, larger is nearer. With cosine, the query is not a zero vector. */
function scoreScript(metric: Metric, query: Float32Array): object {
  const q = Array.from(query);
  const norm = Math.sqrt(q.reduce((sum, value) => sum + value * value, 0));
  return { lang: 'painless', source: SOURCES[metric], params: metric === 'cosine' ? { q, norm } : { q } };
}

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
