import { TrawlError } from '../../base/errors.ts';
import type { Metric } from '../../engine/metric.ts';
import type { CandidateSource, RowCondition } from '../published/candidate-source.ts';
import { ROW_FIELD, VECTOR_FIELD } from '../published/published-row.ts';
import type { Entity, MilvusClient } from './milvus-client.ts';

export const MILVUS_METRIC: Readonly<Record<Metric, string>> = { 'inner-product': 'IP', cosine: 'COSINE', l2: 'L2' };

export interface PublishedCollection {
  readonly collection: string;
  readonly rows: number;
}

interface CollectionVectors extends PublishedCollection {
  readonly dimension: number;
  readonly metric: Metric;
  readonly indexType: string;
}

/** The first pass of a search, in Milvus. */
export function milvusCandidates(client: MilvusClient, published: CollectionVectors): CandidateSource {
  const { collection, dimension, metric, indexType } = published;
  return {
    takesBitmaps: false,
    search: async (queries, { limit, condition, signal }) => {
      const search = () =>
        client.search({
          collection,
          queries,
          dimension,
          limit,
          metric: MILVUS_METRIC[metric],
          filter: filterExpression(condition),
          // HNSW must look at least at as many rows as it returns; four times as many for better recall.
          params: indexType === 'HNSW' ? { ef: Math.min(32_768, Math.max(64, 4 * limit)) } : {},
          signal,
        });
      const found = await fromAllRows(client, published, search, signal);
      // Milvus returns squared distances; the smallest is the nearest.
      const sign = metric === 'l2' ? -1 : 1;
      return found.map((hits) => ({
        rows: Float64Array.from(hits, ({ key }) => key),
        values: Float64Array.from(hits, ({ score }) => sign * score),
      }));
    },
    count: (condition, signal) =>
      client.countOf(collection, { filter: filterExpression(condition), consistency: 'Bounded', signal }),
    vectors: async (rows, signal) => {
      const entities = await readRows(client, collection, { rows, fields: [ROW_FIELD, VECTOR_FIELD], signal });
      const values = new Float32Array(rows.length * dimension);
      for (const [i, entity] of entities.entries()) values.set(entity[VECTOR_FIELD] as number[], i * dimension);
      return values;
    },
  };
}

/**
 * What `read` finds among all rows of the collection. For seconds after a query node ended, Milvus 2.3 answers with what the other nodes
 * find, as if it were everything. Its count lacks the same rows (docs/cluster.md), so the rows are counted beside `read` and after it.
 *
 * @throws TrawlError STORE_FAILED unless Milvus counts as many rows as were published.
 */
export async function fromAllRows<T>(
  client: MilvusClient,
  { collection, rows }: PublishedCollection,
  read: () => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const checkCount = async (): Promise<void> => {
    const found = await client.countOf(collection, { filter: '', consistency: 'Bounded', signal });
    if (found === rows) return;
    throw new TrawlError(
      'STORE_FAILED',
      `Milvus at ${client.server} finds ${found} rows in ${collection}, but ${rows} were published. If a query node has ended, they are found again once another node has loaded them; \`trawl doctor\` says what is missing.`,
    );
  };
  const beside = checkCount();
  // If `read` fails, its error is thrown.
  beside.catch(() => undefined);
  const found = await read();
  await beside;
  await checkCount();
  return found;
}

/** The entities of distinct rows, in their order. @throws TrawlError STORE_FAILED if one of them is missing. */
export async function readRows(
  client: MilvusClient,
  collection: string,
  { rows, fields, signal }: { rows: readonly number[]; fields: readonly string[]; signal?: AbortSignal },
): Promise<readonly Entity[]> {
  const filter = filterExpression({ type: 'in', rows });
  // An existing row cannot be wrong, whatever was written since; a row that is not there yet is asked for again.
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

function filterExpression(condition: RowCondition): string {
  switch (condition.type) {
    case 'all':
      return '';
    case 'in':
    case 'not-in':
      return `${ROW_FIELD} ${condition.type === 'in' ? 'in' : 'not in'} [${condition.rows.join(',')}]`;
    case 'filter':
      return `(${condition.expression}) and ${rangeExpression(ROW_FIELD, condition.first, condition.end)}`;
    case 'range':
      return rangeExpression(ROW_FIELD, condition.first, condition.end);
    case 'bitmap':
      throw new TypeError('Milvus takes no bitmaps.');
  }
}

export function rangeExpression(field: string, first: number, end: number): string {
  return `${field} >= ${first} and ${field} < ${end}`;
}
