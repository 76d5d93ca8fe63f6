import type { LexicalQuery } from '../../../engine/lexical/lexical-query.ts';
import type { Metric } from '../../../engine/metric.ts';
import { RowBitmap } from '../../../engine/row-bitmap.ts';
import type { Retriever } from '../../../search/retriever.ts';
import type { RetrieverInfo } from '../../../search/retriever-info.ts';
import type { ElasticsearchError } from '../elasticsearch-error.ts';
import { queryFailure } from '../elasticsearch-error.ts';
import type { DslKnn } from './dsl-query.ts';
import { queriedField } from './queried-field.ts';

/** A row with its score as Elasticsearch has it: a float32 of at least 0. */
export interface ScoredRow {
  readonly row: number;
  readonly score: number;
}

export interface NearestRequest {
  readonly knn: DslKnn;
  readonly k: number;
  /** The rows that match the filter of the knn; undefined: all. */
  readonly rows: RowBitmap | undefined;
  readonly signal: AbortSignal;
}

/** Names of Elasticsearch's similarities. */
export type Similarity = 'cosine' | 'dot_product' | 'max_inner_product' | 'l2_norm';

/** The similarity by which Elasticsearch would search the vectors of an index. */
export function similarityOf({ metric, model }: Pick<RetrieverInfo, 'metric' | 'model'>): Similarity {
  const names: Readonly<Record<Metric, Similarity>> = {
    cosine: 'cosine',
    l2: 'l2_norm',
    // Elasticsearch's dot_product needs vectors of length 1.
    'inner-product': model?.normalize === true ? 'dot_product' : 'max_inner_product',
  };
  return names[metric ?? 'cosine'];
}

/** The nearest rows of one index, best first. A field that the index does not have, or that has no vectors, is an error. */
export async function nearestRows(
  retriever: Pick<Retriever, 'info' | 'nearest'>,
  { knn, k, rows, signal }: NearestRequest,
): Promise<readonly ScoredRow[]> {
  const { info } = retriever;
  const field = queriedField(knn.field, info);
  if (field === undefined) return [];
  if (field.kind !== 'vector') throw failure(info, '[knn] queries are only supported on [dense_vector] fields');
  const { vector } = knn;
  if (vector.length !== info.dimension) {
    throw failure(
      info,
      `The query vector has a different number of dimensions [${vector.length}] than the document vectors [${info.dimension}].`,
    );
  }
  const similarity = similarityOf(info);
  if (similarity === 'cosine' && vector.every((value) => value === 0)) {
    throw failure(info, 'The [cosine] similarity does not support vectors with zero magnitude.');
  }
  const { nearest } = await retriever.nearest({
    vector: Float32Array.from(vector),
    k,
    rows,
    signal,
  });
  const least =
    knn.similarity === undefined
      ? Number.NEGATIVE_INFINITY
      : scoreOf(similarity, similarity === 'l2_norm' ? -(knn.similarity ** 2) : knn.similarity);
  return nearest
    .map(({ row, score }) => ({ row, score: scoreOf(similarity, score) }))
    .filter(({ score }) => score >= least);
}

const { fround } = Math;

/** Elasticsearch's score of a similarity, in float32. That of `l2_norm` is the negated square of the distance. */
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

function failure({ index }: Pick<RetrieverInfo, 'index'>, why: string): ElasticsearchError {
  return queryFailure(index, why);
}
