import { throwIfCancelled } from '../../base/abort.ts';
import { TrawlError } from '../../base/errors.ts';
import type { Metric } from '../../engine/metric.ts';
import type { CandidateSource, Candidates } from '../published/candidate-source.ts';
import type { OpenSearchClient } from './opensearch-client.ts';
import type { OpenSearchHit } from './opensearch-replies.ts';
import { rowQuery, textLength } from './row-query.ts';
import { scoreScript } from './score-script.ts';
import { ROW_FIELD, VECTOR_FIELD, vectorOf } from './stored-rows.ts';

/** Searches of a call. */
const SEARCHES_A_CALL = 32;
/** Rows that a call may score, so that it ends well within its time limit. */
const SCORED_A_CALL = 20_000_000;
/** Characters of the conditions of a call, less than OpenSearch's limit of a request (100 MB). */
const TEXT_A_CALL = 2 ** 25;

interface IndexVectors {
  readonly index: string;
  readonly dimension: number;
  readonly metric: Metric;
}

/** The first pass of a search, in OpenSearch: every row that fulfils the condition is scored by a script. */
export class OpenSearchCandidates implements CandidateSource {
  readonly takesBitmaps = true;
  readonly #client: OpenSearchClient;
  readonly #vectors: IndexVectors;

  constructor(client: OpenSearchClient, vectors: IndexVectors) {
    this.#client = client;
    this.#vectors = vectors;
  }

  async search(
    queries: Float32Array,
    { count, limit, among, condition, signal }: Parameters<CandidateSource['search']>[1],
  ): Promise<readonly Candidates[]> {
    const { index, dimension, metric } = this.#vectors;
    const query = rowQuery(condition);
    const atOnce = Math.max(
      1,
      Math.min(
        SEARCHES_A_CALL,
        Math.floor(SCORED_A_CALL / Math.max(1, among)),
        Math.floor(TEXT_A_CALL / Math.max(1, textLength(condition))),
      ),
    );
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
      for (const { hits, total } of await this.#client.searchMany(index, searches, signal)) {
        found.push({
          rows: Float64Array.from(hits, ({ sort }) => Number(sort?.[1])),
          values: Float64Array.from(hits, ({ sort }) => Number(sort?.[0])),
          total,
        });
      }
    }
    return found;
  }

  async vectors(rows: readonly number[], signal?: AbortSignal): Promise<Float32Array> {
    const { index, dimension } = this.#vectors;
    const hits = await readRows(this.#client, index, { rows, docValues: [VECTOR_FIELD], signal });
    const values = new Float32Array(rows.length * dimension);
    for (const [i, { fields }] of hits.entries()) {
      values.set(vectorOf(rows[i]!, fields?.[VECTOR_FIELD]?.[0], dimension), i * dimension);
    }
    return values;
  }
}

/**
 * The documents of distinct rows, in their order.
 *
 * @throws TrawlError STORE_FAILED if one of them is missing.
 */
export async function readRows(
  client: OpenSearchClient,
  index: string,
  {
    rows,
    source = [],
    docValues = [],
    signal,
  }: {
    readonly rows: readonly number[];
    readonly source?: readonly string[];
    readonly docValues?: readonly string[];
    readonly signal?: AbortSignal;
  },
): Promise<readonly OpenSearchHit[]> {
  if (rows.length === 0) return [];
  const { hits } = await client.search(
    index,
    {
      size: rows.length,
      query: rowQuery({ type: 'in', rows }),
      docvalue_fields: [ROW_FIELD, ...docValues],
      _source: source.length === 0 ? false : source,
    },
    signal,
  );
  const byRow = new Map(hits.map((hit) => [Number(hit.fields?.[ROW_FIELD]?.[0]), hit]));
  const found = rows.map((row) => byRow.get(row));
  if (!found.includes(undefined)) return found as OpenSearchHit[];
  throw new TrawlError(
    'STORE_FAILED',
    `OpenSearch at ${client.server} did not return all of ${rows.length} rows of ${index} that it has. Some of its data may not be available at the moment.`,
  );
}
