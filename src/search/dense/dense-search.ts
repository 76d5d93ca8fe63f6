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
import { scoreOverflow } from '../../engine/vectors/search-checks.ts';
import { placesPerQuery, type SearchResult, type VectorIndex } from '../../engine/vectors/vector-index.ts';
import type { EmbedCall } from '../calls/model-calls.ts';
import type { Hit, QueryEmbedding, QueryOutcome } from '../calls/query-outcome.ts';
import { isEmbedded, isText, type RetrieveQuery, type ScopedCall } from '../calls/retrieve-call.ts';
import { type Documents, hitRows } from '../rows/hit-rows.ts';
import type { Stopwatch } from '../timings.ts';

/** Queries to embed, and how. */
interface QueriesToEmbed {
  readonly queries: readonly RetrieveQuery[];
  readonly template?: QueryTemplate | undefined;
  readonly truncate?: EncodeOptions['truncate'];
  readonly signal?: AbortSignal | undefined;
}

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
    const { k, rows: filter, signal } = call;
    const embedded = await this.embedQueries(call, watch);
    const usable = usableQueries(embedded, this.index.dimension);
    const found = await watch.timeQueued('search', () => this.index.search({ ...usable, k, filter, signal }));
    const documents = await watch.time('fetch', () => passages.getMany(hitRows(found), signal));
    return outcomesOf({ embedded, dimension: this.index.dimension, found }, documents);
  }

  embed({ inputs, inputType, template, truncate, signal }: EmbedCall, watch: Stopwatch): Promise<EncodeResult> {
    const templated = inputs.map((input) => this.#templated(input, template));
    return this.#encode(templated, { inputType, truncate, signal }, watch);
  }

  /** Embeds the queries that have no vector yet, and returns the vectors of all queries. */
  async embedQueries({ queries, template, truncate, signal }: QueriesToEmbed, watch: Stopwatch): Promise<QueryVectors> {
    const { dimension } = this.index;
    const inputs = queries.filter(isText).map((query) => this.#templated(query, template));
    const encoded =
      inputs.length === 0
        ? { vectors: new Float32Array(0), outcomes: [] }
        : await this.#encode(inputs, { inputType: 'query', truncate, signal }, watch);
    const outcomes = encoded.outcomes.map((outcome, i) => ({ ...outcome, text: this.#textOf(inputs[i]!) }));
    if (inputs.length === queries.length) return { vectors: encoded.vectors, outcomes };
    const vectors = new Float32Array(queries.length * dimension);
    let next = 0;
    const all = queries.map((query, i): EmbedOutcome => {
      if (!isEmbedded(query)) {
        vectors.set(rowOf(encoded.vectors, next, dimension), i * dimension);
        return outcomes[next++]!;
      }
      if (query.vector.length !== dimension) throw wrongDimension(query.vector.length, dimension);
      vectors.set(query.vector, i * dimension);
      return { ok: true, ...query.embedding };
    });
    return { vectors, outcomes: all };
  }

  #encode(inputs: readonly EncoderInput[], options: EncodeOptions, watch: Stopwatch): Promise<EncodeResult> {
    return watch.timeQueued('embed', () => this.#encoder.encode(inputs, options));
  }

  /** The parts of a query that the template of the call or of the index has. */
  #templated(query: EncoderInput, template: QueryTemplate | undefined): EncoderInput {
    return applyTemplate(query, template ?? this.#model?.queryTemplate);
  }

  #textOf(query: EncoderInput): string {
    return composeText(query, this.#model?.prefixes.query ?? '', this.#encoder.separator);
  }
}

interface DenseResults {
  readonly embedded: QueryVectors;
  readonly dimension: number;
  /** Of the queries that could be embedded. */
  readonly found: SearchResult;
}

/** @param documents of the hits, query after query */
function outcomesOf({ embedded, dimension, found }: DenseResults, documents: readonly string[]): QueryOutcome[] {
  let q = 0;
  let nextDocument = 0;
  const places = placesPerQuery(found);
  return embedded.outcomes.map((outcome, i): QueryOutcome => {
    if (!outcome.ok) return { ok: false, error: outcome.error };
    const overflow = found.overflows?.get(q);
    if (overflow !== undefined) {
      q++;
      return { ok: false, error: scoreOverflow([i, overflow]) };
    }
    const hits: Hit[] = [];
    for (let at = q * places; at < q * places + found.counts[q]!; at++) {
      // Adding 0 turns −0, to which a tiny negative score rounds, into 0.
      const score = Math.fround(found.scores[at]!) + 0;
      hits.push({ row: found.rows[at]!, score, document: documents[nextDocument++]! });
    }
    const certificate = { exact: found.exact, rescored: found.certificate?.rescored[q] ?? null };
    q++;
    const { tokens, truncated, text, cut } = outcome;
    const vector = rowOf(embedded.vectors, i, dimension);
    return { ok: true, hits, tokens, truncated, text, cut, vector, certificate };
  });
}

type EmbedOutcome = ({ readonly ok: true } & QueryEmbedding) | { readonly ok: false; readonly error: TrawlError };

export interface QueryVectors {
  /** Row-major, queries × dimension; zeros for a query that could not be embedded. */
  readonly vectors: Float32Array;
  readonly outcomes: readonly EmbedOutcome[];
}

/** The vector of a row, from row-major `vectors`: a view of them, not a copy, so it changes with them. */
export function rowOf(vectors: Float32Array, row: number, dimension: number): Float32Array {
  return vectors.subarray(row * dimension, (row + 1) * dimension);
}

function wrongDimension(found: number, expected: number): TrawlError {
  return new TrawlError(
    'DIMENSION_MISMATCH',
    `A query vector has ${found} values, but the index has ${expected} dimensions. Embed the query with this index's encoder.`,
  );
}

/** The vectors of the embedded queries, packed without the failed ones, for a search. */
export function usableQueries(
  { vectors, outcomes }: QueryVectors,
  dimension: number,
): { queries: Float32Array; count: number } {
  const usable = outcomes.flatMap((outcome, i) => (outcome.ok ? [i] : []));
  if (usable.length === outcomes.length) return { queries: vectors, count: usable.length };
  const packed = new Float32Array(usable.length * dimension);
  for (const [at, i] of usable.entries()) packed.set(rowOf(vectors, i, dimension), at * dimension);
  return { queries: packed, count: usable.length };
}
