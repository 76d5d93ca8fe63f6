import type { EncoderInput } from '../embedding/text-encoder.ts';
import { TrawlError } from '../errors.ts';
import type {
  EmbedCall,
  EmbedResult,
  FindCall,
  FindResult,
  RetrieveCall,
  RetrieveResult,
  Retriever,
  RetrieverInfo,
  RetrieverStatistics,
} from './retriever.ts';

export const DEFAULT_MAX_WAITING_BYTES = 512 * 1024 * 1024;

/** What a query costs while it waits, beside its text and its vector. */
const QUERY_BYTES = 512;
/** What a passage is taken for until some were seen. */
const FIRST_PASSAGE_BYTES = 2_000;
/** How far the newest answer moves the mean passage. */
const WEIGHT_OF_NEWEST = 0.1;

/**
 * Calls wait as long as their callers do, up to a bound on the bytes of what waits: queries, vectors and the answers that
 * are expected of them. Past it a call is refused at once, unless all its answers are at hand. The call that crosses the bound is still taken, or one larger
 * than the bound could never be answered.
 */
export class BoundedRetriever implements Retriever {
  readonly info: RetrieverInfo;
  readonly #inner: Retriever;
  readonly #maxBytes: number;
  #passageBytes = FIRST_PASSAGE_BYTES;
  #calls = 0;
  #bytes = 0;
  #refused = 0;

  constructor(inner: Retriever, maxBytes: number) {
    this.info = inner.info;
    this.#inner = inner;
    this.#maxBytes = maxBytes;
  }

  async retrieve(call: RetrieveCall): Promise<RetrieveResult> {
    const { queries } = call;
    const hits = queries.length * Math.min(call.k, this.info.rows);
    const bytes = this.#queriesBytes(queries) + hits * this.#passageBytes;
    if (this.#isFull && !this.#inner.hasAnswers(call)) throw this.#refusal();
    const result = await this.#hold(bytes, () => this.#inner.retrieve(call));
    this.#observe(result);
    return result;
  }

  hasAnswers(call: RetrieveCall): boolean {
    return this.#inner.hasAnswers(call);
  }

  async embed(call: EmbedCall): Promise<EmbedResult> {
    if (this.#isFull) throw this.#refusal();
    return this.#hold(this.#queriesBytes(call.inputs), () => this.#inner.embed(call));
  }

  async find(call: FindCall): Promise<FindResult> {
    if (this.#isFull) throw this.#refusal();
    const keys = call.keys.reduce((sum, key) => sum + 2 * key.length, 0);
    // Most keys have one passage or none, whatever the limit.
    return this.#hold(keys + call.keys.length * this.#passageBytes, () => this.#inner.find(call));
  }

  get failure(): TrawlError | undefined {
    return this.#inner.failure;
  }

  statistics(): RetrieverStatistics {
    const waiting = { calls: this.#calls, bytes: this.#bytes, maxBytes: this.#maxBytes, refused: this.#refused };
    return { ...this.#inner.statistics(), waiting };
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  get #isFull(): boolean {
    return this.#bytes >= this.#maxBytes;
  }

  #refusal(): TrawlError {
    this.#refused++;
    return new TrawlError(
      'OVERLOADED',
      `${this.#calls} calls wait with ${this.#bytes} bytes of queries and answers, as much as this server holds. Try again later.`,
      { details: { calls: this.#calls, bytes: this.#bytes } },
    );
  }

  async #hold<T>(bytes: number, work: () => Promise<T>): Promise<T> {
    this.#calls++;
    this.#bytes += bytes;
    try {
      return await work();
    } finally {
      this.#calls--;
      this.#bytes -= bytes;
    }
  }

  #queriesBytes(inputs: readonly EncoderInput[]): number {
    const each = QUERY_BYTES + 4 * this.info.dimension;
    return inputs.reduce((sum, input) => sum + each + 2 * lengthOf(input), 0);
  }

  #observe({ outcomes }: RetrieveResult): void {
    const [first] = outcomes;
    if (first?.ok !== true || first.hits.length === 0) return;
    const mean = first.hits.reduce((sum, { document }) => sum + 2 * document.length, 0) / first.hits.length;
    this.#passageBytes = Math.round(this.#passageBytes + (mean - this.#passageBytes) * WEIGHT_OF_NEWEST);
  }
}

function lengthOf(input: EncoderInput): number {
  return typeof input === 'string' ? input.length : input.question.length + input.query.length;
}
