import { deserializeError, TrawlError } from '../errors.ts';
import { QueueClock } from '../queue-clock.ts';
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

/** Neighbouring texts of one job. */
export interface Piece {
  readonly job: EncodeJob;
  readonly first: number;
  readonly inputs: readonly WorkInput[];
  readonly weight: number;
}

/** What one worker has: texts of one job or of several. */
export interface Chunk {
  readonly pieces: readonly Piece[];
  readonly weight: number;
}

/** One call of `encode`: hands out its texts in pieces and puts what comes back in its place. */
export class EncodeJob {
  readonly kind: TextKind;
  readonly truncate: TruncateSide;
  readonly result: Promise<EncodeResult>;
  readonly #inputs: readonly WorkInput[];
  readonly #dimension: number;
  readonly #sizer: ChunkSizer;
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort: () => void;
  readonly #onDropped: (texts: number, weight: number) => void;
  readonly #vectors: Float32Array;
  readonly #outcomes: EncodeOutcome[];
  #resolve!: (result: EncodeResult) => void;
  #reject!: (error: TrawlError) => void;
  #next = 0;
  #returned = 0;
  readonly #clock = new QueueClock();
  #remainingWeight = 0;
  #settled = false;

  /** `onDropped`: told the texts, and their weight, that no worker will have because nobody waits for them any more. */
  constructor(
    inputs: readonly WorkInput[],
    options: EncodeOptions,
    dimension: number,
    sizer: ChunkSizer,
    onDropped: (texts: number, weight: number) => void = () => {},
  ) {
    this.kind = options.kind;
    this.truncate = options.truncate ?? 'tail';
    this.#inputs = inputs;
    this.#dimension = dimension;
    this.#sizer = sizer;
    this.#onDropped = onDropped;
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

  /** Weight of the texts that no worker has. */
  get remainingWeight(): number {
    return this.hasWork ? this.#remainingWeight : 0;
  }

  /** Texts that no worker has. */
  get remainingTexts(): number {
    return this.hasWork ? this.#inputs.length - this.#next : 0;
  }

  /** True when nobody waits for its texts any more. */
  get isSettled(): boolean {
    return this.#settled;
  }

  /** The next texts, at least one, of about this weight. */
  takePiece(wanted: number): Piece {
    const first = this.#next;
    let weight = 0;
    do {
      weight += this.#sizer.weight(this.#inputs[this.#next++]!, this.kind);
    } while (weight < wanted && this.#next < this.#inputs.length);
    this.#remainingWeight -= weight;
    this.#clock.taken(this.#next - first);
    return { job: this, first, inputs: this.#inputs.slice(first, this.#next), weight };
  }

  /** A piece's results, which begin at text `at` of its chunk's. After a cancellation nobody wants them. */
  accept(piece: Piece, encoded: EncodedChunk, at: number): void {
    if (this.#settled) return;
    const { length } = piece.inputs;
    const values = encoded.vectors.subarray(at * this.#dimension, (at + length) * this.#dimension);
    this.#vectors.set(values, piece.first * this.#dimension);
    for (let i = 0; i < length; i++) {
      const cut = CUTS[encoded.cuts[at + i]!]!;
      this.#outcomes[piece.first + i] = {
        ok: true,
        tokens: encoded.tokens[at + i]!,
        truncated: cut !== 'nothing',
        cut,
      };
    }
    for (const { index, error } of encoded.failures) {
      if (index < at || index >= at + length) continue;
      this.#outcomes[piece.first + index - at] = { ok: false, error: deserializeError(error) };
    }
    this.#countReturned(length);
  }

  /** All texts of a piece failed for one reason: their worker died. */
  fail(piece: Piece, error: TrawlError): void {
    if (this.#settled) return;
    this.#outcomes.fill({ ok: false, error }, piece.first, piece.first + piece.inputs.length);
    this.#countReturned(piece.inputs.length);
  }

  /** Rejects with CANCELLED; texts that a worker has run on, for nobody. */
  cancel(message: string, cause?: unknown): void {
    if (this.#settled) return;
    this.#onDropped(this.remainingTexts, this.remainingWeight);
    this.#settle();
    this.#reject(new TrawlError('CANCELLED', message, { cause }));
  }

  #countReturned(texts: number): void {
    this.#returned += texts;
    this.#clock.returned(texts);
    if (this.#returned === this.#inputs.length) this.#finish();
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
