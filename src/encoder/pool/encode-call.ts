import { deserializeError, TrawlError } from '../../base/errors.ts';
import { QueueClock } from '../../base/queue-clock.ts';
import { type EncodeOutcome, type EncodeResult, TRUNCATIONS } from '../text-encoder.ts';
import type { WorkInput } from '../tokenizer/text-pair.ts';
import type { TokenizeOptions } from '../tokenizer/truncation.ts';
import type { ChunkSizer } from './chunk-size.ts';
import type { EncodedChunk } from './encoder-messages.ts';
import { LengthBuckets } from './length-buckets.ts';

/** One encoder's counters in a pool that several encoders may share. Only the pool writes them. */
export class PoolUser {
  /** Texts that no thread has. */
  waitingTexts = 0;
  /** Texts encoded. */
  texts = 0;
  /** Texts that were cancelled before a thread had them. */
  droppedTexts = 0;
  /** Chunks that began with a text of this encoder. */
  chunks = 0;
}

export interface CallOptions {
  readonly user: PoolUser;
  readonly tokenize: TokenizeOptions;
  readonly signal?: AbortSignal;
}

/** Texts of one call that go into the same chunk. */
export interface Slice {
  readonly call: EncodeCall;
  /** Their indexes in the call. */
  readonly indexes: readonly number[];
  readonly inputs: readonly WorkInput[];
  readonly weight: number;
}

/** One thread's work: slices of one or several calls. */
export interface Chunk {
  readonly slices: readonly Slice[];
  readonly weight: number;
  /** Whether all texts have the same number of tokens and run together. */
  readonly isGrouped: boolean;
  /** Texts that stay queued; the thread counts their tokens before it encodes the slices. */
  readonly uncounted: readonly Slice[];
}

/** One call of `encode`: hands out its texts in slices and collects the vectors of the slices. */
export class EncodeCall {
  readonly user: PoolUser;
  readonly tokenize: TokenizeOptions;
  readonly result: Promise<EncodeResult>;
  /** Called before waiting texts are dropped because the call was cancelled. */
  onDropped: (() => void) | null = null;
  readonly #inputs: readonly WorkInput[];
  readonly #buckets: LengthBuckets;
  readonly #dimension: number;
  readonly #sizer: ChunkSizer;
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort: () => void;
  readonly #vectors: Float32Array;
  readonly #outcomes: EncodeOutcome[];
  #resolve!: (result: EncodeResult) => void;
  #reject!: (error: TrawlError) => void;
  #finished = 0;
  readonly #clock = new QueueClock();
  #remainingWeight = 0;
  #settled = false;

  constructor(inputs: readonly WorkInput[], options: CallOptions, dimension: number, sizer: ChunkSizer) {
    this.user = options.user;
    this.tokenize = options.tokenize;
    this.#inputs = inputs;
    this.#buckets = new LengthBuckets(inputs);
    this.#dimension = dimension;
    this.#sizer = sizer;
    this.#vectors = new Float32Array(inputs.length * dimension);
    this.#outcomes = new Array<EncodeOutcome>(inputs.length);
    for (const input of inputs) this.#remainingWeight += this.#weightOf(input);
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#signal = options.signal;
    this.#onAbort = () => this.cancel('The encoding was cancelled.', this.#signal?.reason);
    this.#signal?.addEventListener('abort', this.#onAbort, { once: true });
    if (this.#signal?.aborted === true) this.#onAbort();
    else if (inputs.length === 0) this.#finish();
  }

  /** Whether the call has waiting texts and was not cancelled. */
  get hasWork(): boolean {
    return !this.#settled && this.#buckets.size > 0;
  }

  /** Weight of the waiting texts. */
  get remainingWeight(): number {
    return this.hasWork ? this.#remainingWeight : 0;
  }

  /** Texts that no thread has. */
  get remainingTexts(): number {
    return this.hasWork ? this.#buckets.size : 0;
  }

  /** Whether the result is resolved or rejected. */
  get isSettled(): boolean {
    return this.#settled;
  }

  /** Length buckets with waiting texts; see `LengthBuckets`. */
  buckets(): Iterable<number> {
    return this.#buckets.keys();
  }

  textsIn(bucket: number): number {
    return this.#settled ? 0 : this.#buckets.textCount(bucket);
  }

  /** Takes texts of about `targetWeight` from a bucket, at least one. The bucket must not be empty. */
  takeSlice(bucket: number, targetWeight: number): Slice {
    const indexes: number[] = [];
    let weight = 0;
    do {
      const index = this.#buckets.take(bucket);
      indexes.push(index);
      weight += this.#weightOf(this.#inputs[index]!);
    } while (weight < targetWeight && this.#buckets.textCount(bucket) > 0);
    this.#remainingWeight -= weight;
    this.#clock.started(indexes.length);
    return this.#slice(indexes, weight);
  }

  /** Up to `max` waiting texts whose tokens are worth counting, each returned once; null if there are none. */
  textsToCount(max: number): Slice | null {
    const indexes = this.#settled ? [] : this.#buckets.textsToCount(max);
    return indexes.length === 0 ? null : this.#slice(indexes, 0);
  }

  /** Stores the token counts of a slice of `textsToCount`, from `offset` in `tokens`; 0 means that tokenising failed. */
  setTokens({ indexes }: Slice, tokens: Int32Array, offset: number): void {
    if (this.#settled) return;
    for (const [i, index] of indexes.entries()) this.#buckets.setTokens(index, tokens[offset + i]!);
  }

  /** Stores a slice's results, which start at text `offset` of its chunk. Ignored after a cancellation. */
  accept({ indexes }: Slice, encoded: EncodedChunk, offset: number): void {
    if (this.#settled) return;
    const width = this.#dimension;
    for (const [i, index] of indexes.entries()) {
      this.#vectors.set(encoded.vectors.subarray((offset + i) * width, (offset + i + 1) * width), index * width);
      const cut = TRUNCATIONS[encoded.truncations[offset + i]!]!;
      this.#outcomes[index] = { ok: true, tokens: encoded.tokens[offset + i]!, truncated: cut !== 'nothing', cut };
    }
    for (const { index, error } of encoded.failures) {
      const own = indexes[index - offset];
      if (own !== undefined) this.#outcomes[own] = { ok: false, error: deserializeError(error) };
    }
    this.#countFinished(indexes.length);
  }

  /** Fails every text of a slice, because its thread died. */
  fail({ indexes }: Slice, error: TrawlError): void {
    if (this.#settled) return;
    for (const index of indexes) this.#outcomes[index] = { ok: false, error };
    this.#countFinished(indexes.length);
  }

  /** Rejects with CANCELLED. Workers finish the texts that they have; the results are ignored. */
  cancel(message: string, cause?: unknown): void {
    if (this.#settled) return;
    this.onDropped?.();
    this.#settle();
    this.#reject(new TrawlError('CANCELLED', message, { cause }));
  }

  #weightOf(input: WorkInput): number {
    return this.#sizer.weight(input, this.tokenize.maxTokens);
  }

  #slice(indexes: readonly number[], weight: number): Slice {
    return { call: this, indexes, inputs: indexes.map((index) => this.#inputs[index]!), weight };
  }

  #countFinished(texts: number): void {
    this.#finished += texts;
    this.#clock.finished(texts);
    if (this.#finished === this.#inputs.length) this.#finish();
  }

  #finish(): void {
    this.#settle();
    this.#resolve({ vectors: this.#vectors, outcomes: this.#outcomes, waitedMs: this.#clock.waitedMs });
  }

  #settle(): void {
    this.#settled = true;
    this.#signal?.removeEventListener('abort', this.#onAbort);
  }
}
