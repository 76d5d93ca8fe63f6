import type { ModelIdentity, QueryTemplate } from '../../encoder/identity/model-identity.ts';
import {
  applyTemplate,
  composeText,
  type EncodeOptions,
  type EncodeResult,
  type EncoderInput,
  type TextEncoder,
} from '../../encoder/text-encoder.ts';
import type { RowBitmap } from '../../engine/row-bitmap.ts';
import type { SearchResult, VectorIndex } from '../../engine/vectors/vector-index.ts';
import type { EmbedCall } from '../calls/embed-call.ts';
import type { RetrieveCall } from '../calls/retrieve-call.ts';
import { isEmbedded, isText } from '../embedded-query.ts';
import type { Stopwatch } from '../timings.ts';
import { type EmbedOutcome, type QueryVectors, rowOf, usableQueries, wrongDimension } from './query-vectors.ts';

/** Which rows are searched for each vector. */
interface NearestRows {
  readonly k: number;
  /** The rows that may be found; undefined: all. */
  readonly filter: RowBitmap | undefined;
  readonly signal?: AbortSignal;
}

/** The encoder and the vectors of an index. */
export class DenseSearch {
  readonly #encoder: TextEncoder;
  readonly #index: VectorIndex;
  readonly #model: ModelIdentity | null;

  constructor(
    { encoder, index }: { readonly encoder: TextEncoder; readonly index: VectorIndex },
    model: ModelIdentity | null,
  ) {
    this.#encoder = encoder;
    this.#index = index;
    this.#model = model;
  }

  get dimension(): number {
    return this.#index.dimension;
  }

  embed({ inputs, template, ...options }: EmbedCall, watch: Stopwatch): Promise<EncodeResult> {
    return this.#encode(
      inputs.map((input) => this.#templated(input, template)),
      options,
      watch,
    );
  }

  /** Embeds the queries that have no vector yet, and returns the vectors of all queries. */
  async embedQueries(
    { queries, template, truncate, signal }: Pick<RetrieveCall, 'queries' | 'template' | 'truncate' | 'signal'>,
    watch: Stopwatch,
  ): Promise<QueryVectors> {
    const { dimension } = this;
    const inputs = queries.filter(isText).map((query) => this.#templated(query, template));
    const options = {
      inputType: 'query',
      truncate,
      signal,
    } as const;
    const encoded =
      inputs.length === 0 ? { vectors: new Float32Array(0), outcomes: [] } : await this.#encode(inputs, options, watch);
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

  /** The k nearest rows of each vector; the result does not count the queries that could not be embedded. */
  nearestTo(embedded: QueryVectors, wanted: NearestRows): Promise<SearchResult> {
    const { vectors, count } = usableQueries(embedded, this.dimension);
    return this.nearest(vectors, count, wanted);
  }

  /** The k nearest rows of each of `count` vectors, with the proof that they are, unless the index is an approximate one of Milvus. */
  nearest(queries: Float32Array, count: number, { k, filter, signal }: NearestRows): Promise<SearchResult> {
    return this.#index.search({
      queries,
      count,
      k,
      filter,
      signal,
    });
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
