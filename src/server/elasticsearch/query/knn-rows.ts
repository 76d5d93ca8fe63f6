import type { Filter } from '../../../engine/filter/filter.ts';
import type { LexicalQuery } from '../../../engine/lexical/lexical-query.ts';
import type { Metric } from '../../../engine/metric.ts';
import { RowBitmap } from '../../../engine/row-bitmap.ts';
import { lengthProblem } from '../../../index/document-store/check-document.ts';
import type { VECTOR_SIMILARITIES } from '../../../index/document-store/index-files.ts';
import { HAS_VECTOR } from '../../../index/document-store/written-row.ts';
import type { Retriever } from '../../../search/retriever.ts';
import type { RetrieverInfo } from '../../../search/retriever-info.ts';
import { queryFailure } from '../elasticsearch-error.ts';
import type { DslKnn } from './dsl-query.ts';
import { queriedField } from './queried-field.ts';
import { refuseStoredField } from './stored-fields.ts';

/** A row with its score as Elasticsearch has it: a float32 of at least 0. */
export interface ScoredRow {
  readonly row: number;
  readonly score: number;
  /** The similarity before rounding; larger is nearer. */
  readonly near: number;
}

type Similarity = (typeof VECTOR_SIMILARITIES)[number];

/** The similarity by which Elasticsearch would search the vectors of an index. */
export function similarityOf({ metric, model, written }: RetrieverInfo): Similarity {
  const names: Readonly<Record<Metric, Similarity>> = {
    cosine: 'cosine',
    l2: 'l2_norm',
    // Elasticsearch's dot_product needs vectors of length 1.
    'inner-product': (written ?? model)?.normalize === true ? 'dot_product' : 'max_inner_product',
  };
  return names[metric ?? 'cosine'];
}

/**
 * The nearest rows of one index, best first; none if it does not have the field.
 *
 * @param options.rows the rows that match the filter of the knn; undefined: all.
 * @throws ElasticsearchError for a field without vectors, or a vector that does not fit the index.
 */
export async function nearestRows(
  retriever: Retriever,
  { knn, ...options }: { knn: DslKnn; k: number; rows: RowBitmap | undefined; signal: AbortSignal },
): Promise<readonly ScoredRow[]> {
  const { info } = retriever;
  const field = queriedField(knn.field, info);
  if (field === undefined) {
    await refuseStoredField(knn.field, retriever);
    return [];
  }
  if (field.kind !== 'vector')
    throw queryFailure(info.index, '[knn] queries are only supported on [dense_vector] fields');
  const { vector } = knn;
  if (vector.length !== info.dimension) {
    throw queryFailure(
      info.index,
      `The query vector has a different number of dimensions [${vector.length}] than the document vectors [${info.dimension}].`,
    );
  }
  const similarity = similarityOf(info);
  const problem = lengthProblem(vector, similarity);
  if (problem !== undefined) throw queryFailure(info.index, problem);
  // A document may lack the vector.
  const filter: Filter | undefined = info.written && { column: HAS_VECTOR, op: 'exists' };
  const { nearest } = await retriever.nearest({ vector: Float32Array.from(vector), ...options, filter });
  const least =
    knn.similarity === undefined
      ? Number.NEGATIVE_INFINITY
      : scoreOf(similarity, similarity === 'l2_norm' ? -(knn.similarity ** 2) : knn.similarity);
  return nearest
    .map(({ row, score: near }) => ({ row, score: scoreOf(similarity, near), near }))
    .filter(({ score }) => score >= least);
}

const { fround } = Math;

/** Elasticsearch's score of a similarity, in float32. `value` is a cosine, a dot product, or for `l2_norm` the negated square of the distance. */
function scoreOf(similarity: Similarity, value: number): number {
  const near = fround(value);
  switch (similarity) {
    case 'l2_norm':
      return fround(1 / fround(1 - near));
    case 'max_inner_product':
      return near < 0 ? fround(1 / fround(1 - near)) : fround(near + 1);
    default:
      return Math.max(fround(fround(1 + near) / 2), 0);
  }
}

/**
 * The rows as a query with their scores.
 *
 * @param rows of the index.
 * @param among the rows that match the filter of the knn; undefined: all.
 */
export function scoredRowsQuery(
  scored: readonly ScoredRow[],
  rows: number,
  { boost, among }: { readonly boost: number; readonly among: RowBitmap | undefined },
): LexicalQuery {
  const set = new RowBitmap(rows);
  for (const { row } of scored) set.add(row);
  const ascending = [...scored].sort((a, b) => a.row - b.row);
  return { type: 'rows', rows: set, scores: Float32Array.from(ascending, ({ score }) => score), among, boost };
}
