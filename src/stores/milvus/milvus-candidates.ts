import { TrawlError } from '../../base/errors.ts';
import type { Metric } from '../../engine/metric.ts';
import type { CandidateSource, Candidates, RowCondition } from '../published/candidate-source.ts';
import { fromAllRows, type PublishedCollection } from './from-all-rows.ts';
import type { Entity, MilvusClient } from './milvus-client.ts';
import { ROW_FIELD, VECTOR_FIELD } from './published-rows.ts';

/** Milvus's names of the metrics. */
export const MILVUS_METRIC: Readonly<Record<Metric, string>> = { 'inner-product': 'IP', cosine: 'COSINE', l2: 'L2' };

interface CollectionVectors extends PublishedCollection {
  readonly dimension: number;
  readonly metric: Metric;
  /** Milvus's name of the index over the vectors. */
  readonly indexType: string;
}

/** The first pass of a search, in Milvus. */
export class MilvusCandidates implements CandidateSource {
  readonly takesBitmaps = false;
  readonly #client: MilvusClient;
  readonly #vectors: CollectionVectors;

  constructor(client: MilvusClient, vectors: CollectionVectors) {
    this.#client = client;
    this.#vectors = vectors;
  }

  async search(
    queries: Float32Array,
    { limit, condition, signal }: Parameters<CandidateSource['search']>[1],
  ): Promise<readonly Candidates[]> {
    const { collection, dimension, metric, indexType } = this.#vectors;
    const search = () =>
      this.#client.search({
        collection,
        field: VECTOR_FIELD,
        queries,
        dimension,
        limit,
        metric: MILVUS_METRIC[metric],
        filter: expressionOf(condition),
        params: searchParameters(indexType, limit),
        // Nothing is written after the publication, so a few seconds of delay hide nothing (docs/cluster.md).
        consistency: 'Bounded',
        signal,
      });
    const found = await fromAllRows(this.#client, this.#vectors, search, signal);
    // Milvus gives squared distances, of which the least is the nearest.
    const sign = metric === 'l2' ? -1 : 1;
    return found.map((hits) => ({
      rows: Float64Array.from(hits, ({ key }) => key),
      values: Float64Array.from(hits, ({ score }) => sign * score),
    }));
  }

  async count(condition: RowCondition, signal?: AbortSignal): Promise<number> {
    const filter = expressionOf(condition);
    return this.#client.countOf(this.#vectors.collection, { filter, consistency: 'Bounded', signal });
  }

  async vectors(rows: readonly number[], signal?: AbortSignal): Promise<Float32Array> {
    const { collection, dimension } = this.#vectors;
    const entities = await readRows(this.#client, collection, { rows, fields: [ROW_FIELD, VECTOR_FIELD], signal });
    const values = new Float32Array(rows.length * dimension);
    for (const [i, entity] of entities.entries()) values.set(entity[VECTOR_FIELD] as number[], i * dimension);
    return values;
  }
}

/**
 * The entities of distinct rows, in their order.
 *
 * @throws TrawlError STORE_FAILED if one of them is missing.
 */
export async function readRows(
  client: MilvusClient,
  collection: string,
  { rows, fields, signal }: { rows: readonly number[]; fields: readonly string[]; signal?: AbortSignal },
): Promise<readonly Entity[]> {
  const filter = expressionOf({ type: 'in', rows });
  // Rows that are there cannot be wrong, whatever was written since; rows that are not yet there are asked for again.
  for (const consistency of ['Eventually', 'Strong'] as const) {
    const found = await client.query(collection, { filter, fields, consistency, signal });
    const byRow = new Map(found.map((entity) => [Number(entity[ROW_FIELD]), entity]));
    const entities = rows.map((row) => byRow.get(row));
    if (!entities.includes(undefined)) return entities as Entity[];
  }
  throw new TrawlError(
    'STORE_FAILED',
    `Milvus at ${client.server} did not return all of ${rows.length} rows of ${collection} that it has. Some of its data may not be loaded at the moment.`,
  );
}

/** Milvus's filter expression. */
function expressionOf(condition: RowCondition): string {
  switch (condition.type) {
    case 'all':
      return '';
    case 'in':
      return `${ROW_FIELD} in [${condition.rows.join(',')}]`;
    case 'not-in':
      return `${ROW_FIELD} not in [${condition.rows.join(',')}]`;
    case 'filter':
      return `(${condition.expression}) and ${ROW_FIELD} >= ${condition.first} and ${ROW_FIELD} < ${condition.end}`;
    case 'range':
      return `${ROW_FIELD} >= ${condition.first} and ${ROW_FIELD} < ${condition.end}`;
    case 'bitmap':
      throw new TypeError('Milvus takes no bitmaps.');
  }
}

/** HNSW must look at least at as many rows as it returns; four times as many for better recall. */
function searchParameters(indexType: string, limit: number): Readonly<Record<string, number>> {
  return indexType === 'HNSW' ? { ef: Math.min(32_768, Math.max(64, 4 * limit)) } : {};
}
