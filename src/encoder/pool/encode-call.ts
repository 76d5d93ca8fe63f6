import { deserializeError, TrawlError } from '../../base/errors.ts';
import { QueueClock } from '../../base/queue-clock.ts';
import { MAX_GROUPED_TOKENS, MIN_GROUPED_TOKENS } from '../inference/length-groups.ts';
import { type EncodeOutcome, type EncodeResult, TRUNCATIONS } from '../text-encoder.ts';
import { type WorkInput, workCharacters } from '../tokenizer/text-pair.ts';
import type { TokenizeOptions } from '../tokenizer/truncation.ts';
import type { ChunkSizer } from './chunk-size.ts';
import type { EncodedChunk } from './encoder-messages.ts';

/** One encoder's counters in a pool that several encoders may share; see `EncoderLoad`. Only the pool writes them. */
export class PoolUser {
  waitingTexts = 0;
  texts = 0;
  droppedTexts = 0;
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
  /** Whether the result is resolved or rejected. */
  isSettled = false;

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
    return !this.isSettled && this.#buckets.size > 0;
  }

  get remainingWeight(): number {
    return this.hasWork ? this.#remainingWeight : 0;
  }

  /** Texts that no thread has. */
  get remainingTexts(): number {
    return this.hasWork ? this.#buckets.size : 0;
  }

  /** Length buckets with waiting texts; see `LengthBuckets`. */
  buckets(): Iterable<number> {
    return this.#buckets.keys();
  }

  textsIn(bucket: number): number {
    return this.isSettled ? 0 : this.#buckets.textCount(bucket);
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
    const indexes = this.isSettled ? [] : this.#buckets.textsToCount(max);
    return indexes.length === 0 ? null : this.#slice(indexes, 0);
  }

  /** Stores the token counts of a slice of `textsToCount`, from `offset` in `tokens`; 0 means that tokenising failed. */
  setTokens({ indexes }: Slice, tokens: Int32Array, offset: number): void {
    if (this.isSettled) return;
    for (const [i, index] of indexes.entries()) this.#buckets.setTokens(index, tokens[offset + i]!);
  }

  /** Stores a slice's results, which start at text `offset` of its chunk. Ignored after a cancellation. */
  accept({ indexes }: Slice, encoded: EncodedChunk, offset: number): void {
    if (this.isSettled) return;
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
    if (this.isSettled) return;
    for (const index of indexes) this.#outcomes[index] = { ok: false, error };
    this.#countFinished(indexes.length);
  }

  /** Rejects with CANCELLED. Workers finish the texts that they have; the results are ignored. */
  cancel(message: string, cause?: unknown): void {
    if (this.isSettled) return;
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
    this.isSettled = true;
    this.#signal?.removeEventListener('abort', this.#onAbort);
  }
}

/** Bucket of the texts that run alone: those whose tokens are not counted, or whose token count is outside the grouped range. */
export const UNGROUPED = 0;

/** A longer text is assumed to have more than `MAX_GROUPED_TOKENS` tokens and is not counted. */
const MAX_CHARACTERS = MAX_GROUPED_TOKENS * 8;

/** States of a text. Only texts with `STATE_UNGROUPED` are in the bucket `UNGROUPED`. */
const STATE_UNGROUPED = 0;
const GROUPED = 1;
const TAKEN = 2;

/**
 * The waiting texts of one call by token count: bucket n has the texts of n tokens. All texts start in `UNGROUPED`, in the order
 * of the call. A text is identified by its index in the call.
 */
class LengthBuckets {
  readonly #inputs: readonly WorkInput[];
  readonly #states: Uint8Array;
  readonly #grouped = new Map<number, number[]>();
  #firstUngrouped = 0;
  /** First text that `textsToCount` has not considered. */
  #nextToCount = 0;
  #ungrouped: number;
  size: number;

  constructor(inputs: readonly WorkInput[]) {
    this.#inputs = inputs;
    this.#states = new Uint8Array(inputs.length);
    this.#ungrouped = inputs.length;
    this.size = inputs.length;
  }

  textCount(bucket: number): number {
    return bucket === UNGROUPED ? this.#ungrouped : (this.#grouped.get(bucket)?.length ?? 0);
  }

  /** Buckets with texts; the bucket `UNGROUPED` is last. */
  *keys(): Iterable<number> {
    yield* this.#grouped.keys();
    if (this.#ungrouped > 0) yield UNGROUPED;
  }

  /** Takes the first text of a bucket, which must not be empty. */
  take(bucket: number): number {
    const texts = this.#grouped.get(bucket);
    const text = bucket === UNGROUPED ? this.#firstUngrouped : texts!.shift()!;
    if (texts?.length === 0) this.#grouped.delete(bucket);
    this.#states[text] = TAKEN;
    this.size--;
    if (bucket === UNGROUPED) this.#ungrouped--;
    this.#advance();
    return text;
  }

  /** Up to `max` short texts of `UNGROUPED`, each returned once. They stay in the bucket until `setTokens`. */
  textsToCount(max: number): number[] {
    const texts: number[] = [];
    for (; this.#nextToCount < this.#inputs.length && texts.length < max; this.#nextToCount++) {
      const text = this.#nextToCount;
      if (this.#states[text] !== STATE_UNGROUPED) continue;
      if (workCharacters(this.#inputs[text]!) <= MAX_CHARACTERS) texts.push(text);
    }
    return texts;
  }

  /** Moves a waiting text to the bucket of its token count. `tokens`: 0 if tokenising failed. */
  setTokens(text: number, tokens: number): void {
    if (this.#states[text] !== STATE_UNGROUPED || tokens < MIN_GROUPED_TOKENS || tokens > MAX_GROUPED_TOKENS) return;
    this.#states[text] = GROUPED;
    this.#ungrouped--;
    const texts = this.#grouped.get(tokens);
    if (texts === undefined) this.#grouped.set(tokens, [text]);
    else texts.push(text);
    this.#advance();
  }

  #advance(): void {
    while (this.#firstUngrouped < this.#inputs.length && this.#states[this.#firstUngrouped] !== STATE_UNGROUPED) {
      this.#firstUngrouped++;
    }
  }
}
