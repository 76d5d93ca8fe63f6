import { TrawlError } from '../../base/errors.ts';
import type { ModelIdentity, QueryTemplate } from '../../encoder/identity/model-identity.ts';
import {
  applyTemplate,
  composeText,
  type EncodeOptions,
  type EncodeResult,
  type EncoderInput,
  type TextEncoder,
} from '../../encoder/text-encoder.ts';
import { concatenated } from '../../engine/typed-arrays.ts';
import { scoreOverflow } from '../../engine/vectors/search-checks.ts';
import type { SearchRequest, SearchResult, VectorIndex } from '../../engine/vectors/vector-index.ts';
import type { FailedQuery, QueryEmbedding, QueryOutcome } from '../calls/query-outcome.ts';
import { isEmbedded, isText, type RetrieveCall, type ScopedCall } from '../calls/retrieve-call.ts';
import type { EmbedCall } from '../retriever.ts';
import { type Documents, readHits, withoutRows } from '../rows/hit-rows.ts';
import type { Stopwatch } from '../timings.ts';

export type EmbeddedOutcome = QueryEmbedding & { readonly ok: true; readonly vector: Float32Array };
type EmbedOutcome = EmbeddedOutcome | FailedQuery;

/** The encoder and the vectors of an index. */
export class DenseSearch {
  readonly index: VectorIndex;
  readonly #encoder: TextEncoder;
  readonly #model: ModelIdentity | null;

  constructor(
    { encoder, index }: { readonly encoder: TextEncoder; readonly index: VectorIndex },
    model: ModelIdentity | null,
  ) {
    this.#encoder = encoder;
    this.index = index;
    this.#model = model;
  }

  /** Embeds the queries of a call, searches their vectors and fetches the passages. */
  async retrieve(call: ScopedCall, passages: Documents, watch: Stopwatch): Promise<QueryOutcome[]> {
    const { k, rows: filter, excluded, signal } = call;
    const embedded = await this.embedQueries(call, watch);
    const found = await watch.timeQueued('search', () => this.search(embedded, { k, filter, signal }, excluded));
    const hits = await readHits(found, passages, signal, watch);
    return queryOutcomes(embedded, found.overflows, (query, q) => ({
      ...query,
      hits: hits[q]!,
      certificate: { exact: found.exact, rescored: found.certificate?.rescored[q] ?? null },
    }));
  }

  embed({ inputs, inputType, template, truncate, signal }: EmbedCall, watch: Stopwatch): Promise<EncodeResult> {
    const templated = inputs.map((input) => this.#templated(input, template));
    return this.#encode(templated, { inputType, truncate, signal }, watch);
  }

  /** Embeds the queries that have no vector yet. */
  async embedQueries(
    { queries, template, truncate, signal }: Pick<RetrieveCall, 'queries' | 'template' | 'truncate' | 'signal'>,
    watch: Stopwatch,
  ): Promise<EmbedOutcome[]> {
    const { dimension } = this.index;
    const inputs = queries.filter(isText).map((query) => this.#templated(query, template));
    const { vectors, outcomes } =
      inputs.length === 0
        ? { vectors: new Float32Array(0), outcomes: [] }
        : await this.#encode(inputs, { inputType: 'query', truncate, signal }, watch);
    let next = 0;
    return queries.map((query): EmbedOutcome => {
      if (isEmbedded(query)) {
        if (query.vector.length !== dimension) {
          throw new TrawlError(
            'DIMENSION_MISMATCH',
            `A query vector has ${query.vector.length} values, but the index has ${dimension} dimensions. Embed the query with this index's encoder.`,
          );
        }
        return { ok: true, ...query.embedding, vector: query.vector };
      }
      const i = next++;
      const outcome = outcomes[i]!;
      if (!outcome.ok) return outcome;
      const text = composeText(inputs[i]!, this.#model?.prefixes.query ?? '', this.#encoder.separator);
      return { ...outcome, text, vector: vectors.subarray(i * dimension, (i + 1) * dimension) };
    });
  }

  async search(
    embedded: readonly EmbedOutcome[],
    request: Omit<SearchRequest, 'queries' | 'count'>,
    excluded: ReadonlySet<number> = new Set(),
  ): Promise<SearchResult> {
    const vectors = embedded.flatMap((query) => (query.ok ? [query.vector] : []));
    const k = Math.min(request.k + excluded.size, Math.max(1, this.index.rows));
    const found = await this.index.search({ ...request, k, queries: concatenated(vectors), count: vectors.length });
    return withoutRows(found, excluded, request.k);
  }

  #encode(inputs: readonly EncoderInput[], options: EncodeOptions, watch: Stopwatch): Promise<EncodeResult> {
    return watch.timeQueued('embed', () => this.#encoder.encode(inputs, options));
  }

  /** The parts of a query that the template of the call, or else of the index, keeps. */
  #templated(query: EncoderInput, template: QueryTemplate | undefined): EncoderInput {
    return applyTemplate(query, template ?? this.#model?.queryTemplate);
  }
}

/**
 * The outcome of each query: an error if it could not be embedded or has a score beyond float32, else what `answer` returns.
 *
 * @param overflows its keys, like `q`, are positions among the embedded queries.
 * @param start position of the first query in its call, for messages.
 */
export function queryOutcomes<Answer>(
  embedded: readonly EmbedOutcome[],
  overflows: SearchResult['overflows'],
  answer: (query: EmbeddedOutcome, q: number) => Answer,
  start = 0,
): (Answer | FailedQuery)[] {
  let next = 0;
  return embedded.map((query, i) => {
    if (!query.ok) return query;
    const q = next++;
    const row = overflows?.get(q);
    return row === undefined ? answer(query, q) : { ok: false, error: scoreOverflow([start + i, row]) };
  });
}
