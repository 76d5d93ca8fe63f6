import { deserializeError, TrawlError } from '../errors.ts';
import type { ChunkSizer } from './chunk-size.ts';
import type { EncodedChunk, WorkInput } from './encoder-messages.ts';
import {
  CUTS,
  type EncodeOptions,
  type EncodeOutcome,
  type EncodeResult,
  type TextKind,
  type TruncateSide,
} from './text-encoder.ts';

/** A run of texts of one job that one worker has. */
export interface Chunk {
  readonly job: EncodeJob;
  readonly first: number;
  readonly inputs: readonly WorkInput[];
  readonly weight: number;
}

/** One call of `encode`: hands out its texts in chunks and puts what comes back in its place. */
export class EncodeJob {
  readonly kind: TextKind;
  readonly truncate: TruncateSide;
  readonly result: Promise<EncodeResult>;
  readonly #inputs: readonly WorkInput[];
  readonly #dimension: number;
  readonly #sizer: ChunkSizer;
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort: () => void;
  readonly #vectors: Float32Array;
  readonly #outcomes: EncodeOutcome[];
  #resolve!: (result: EncodeResult) => void;
  #reject!: (error: TrawlError) => void;
  #next = 0;
  #returned = 0;
  #remainingWeight = 0;
  #settled = false;

  constructor(inputs: readonly WorkInput[], options: EncodeOptions, dimension: number, sizer: ChunkSizer) {
    this.kind = options.kind;
    this.truncate = options.truncate ?? 'tail';
    this.#inputs = inputs;
    this.#dimension = dimension;
    this.#sizer = sizer;
    this.#vectors = new Float32Array(inputs.length * dimension);
    this.#outcomes = new Array<EncodeOutcome>(inputs.length);
    for (const input of inputs) this.#remainingWeight += sizer.weight(input, this.kind);
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

  /** True while there are texts that no worker has and somebody waits for. */
  get hasWork(): boolean {
    return !this.#settled && this.#next < this.#inputs.length;
  }

  takeChunk(workers: number): Chunk {
    const first = this.#next;
    const wanted = this.#sizer.nextWeight(this.#remainingWeight, workers);
    let weight = 0;
    do {
      weight += this.#sizer.weight(this.#inputs[this.#next++]!, this.kind);
    } while (weight < wanted && this.#next < this.#inputs.length);
    this.#remainingWeight -= weight;
    return { job: this, first, inputs: this.#inputs.slice(first, this.#next), weight };
  }

  /** A chunk's results. After a cancellation nobody wants them. */
  accept(chunk: Chunk, encoded: EncodedChunk): void {
    if (this.#settled) return;
    this.#vectors.set(encoded.vectors, chunk.first * this.#dimension);
    for (let i = 0; i < chunk.inputs.length; i++) {
      const cut = CUTS[encoded.cuts[i]!]!;
      this.#outcomes[chunk.first + i] = { ok: true, tokens: encoded.tokens[i]!, truncated: cut !== 'nothing', cut };
    }
    for (const { index, error } of encoded.failures) {
      this.#outcomes[chunk.first + index] = { ok: false, error: deserializeError(error) };
    }
    this.#countReturned(chunk.inputs.length);
  }

  /** All texts of a chunk failed for one reason: its worker died. */
  fail(chunk: Chunk, error: TrawlError): void {
    if (this.#settled) return;
    this.#outcomes.fill({ ok: false, error }, chunk.first, chunk.first + chunk.inputs.length);
    this.#countReturned(chunk.inputs.length);
  }

  /** Rejects with CANCELLED; texts that a worker has run on, for nobody. */
  cancel(message: string, cause?: unknown): void {
    if (this.#settled) return;
    this.#settle();
    this.#reject(new TrawlError('CANCELLED', message, { cause }));
  }

  #countReturned(texts: number): void {
    this.#returned += texts;
    if (this.#returned === this.#inputs.length) this.#finish();
  }

  #finish(): void {
    this.#settle();
    this.#resolve({ vectors: this.#vectors, outcomes: this.#outcomes });
  }

  #settle(): void {
    this.#settled = true;
    this.#signal?.removeEventListener('abort', this.#onAbort);
  }
}
