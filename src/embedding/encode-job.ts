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
import { TextLanes } from './text-lanes.ts';

/** Texts of one job. */
export interface Piece {
  readonly job: EncodeJob;
  /** Their numbers within the job. */
  readonly places: readonly number[];
  readonly inputs: readonly WorkInput[];
  readonly weight: number;
}

/** What one worker has: texts of one job or of several. */
export interface Chunk {
  readonly pieces: readonly Piece[];
  readonly weight: number;
  /** Texts of equal length, as many as are worth a run together. */
  readonly isFilled: boolean;
  /** Texts that go on waiting, whose tokens the worker counts first. */
  readonly uncounted: readonly Piece[];
}

/** One call of `encode`: hands out its texts in pieces and puts what comes back in its place. */
export class EncodeJob {
  readonly kind: TextKind;
  readonly truncate: TruncateSide;
  readonly result: Promise<EncodeResult>;
  /** Called before texts that no worker has are given up, because nobody waits for them any more. */
  onDropped: (() => void) | null = null;
  readonly #inputs: readonly WorkInput[];
  readonly #lanes: TextLanes;
  readonly #dimension: number;
  readonly #sizer: ChunkSizer;
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort: () => void;
  readonly #vectors: Float32Array;
  readonly #outcomes: EncodeOutcome[];
  #resolve!: (result: EncodeResult) => void;
  #reject!: (error: TrawlError) => void;
  #returned = 0;
  readonly #clock = new QueueClock();
  #remainingWeight = 0;
  #settled = false;

  constructor(inputs: readonly WorkInput[], options: EncodeOptions, dimension: number, sizer: ChunkSizer) {
    this.kind = options.kind;
    this.truncate = options.truncate ?? 'tail';
    this.#inputs = inputs;
    this.#lanes = new TextLanes(inputs);
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
    return !this.#settled && this.#lanes.size > 0;
  }

  /** Weight of the texts that no worker has. */
  get remainingWeight(): number {
    return this.hasWork ? this.#remainingWeight : 0;
  }

  /** Texts that no worker has. */
  get remainingTexts(): number {
    return this.hasWork ? this.#lanes.size : 0;
  }

  /** True when nobody waits for its texts any more. */
  get isSettled(): boolean {
    return this.#settled;
  }

  /** The lanes that its waiting texts are in; see `TextLanes`. */
  lanes(): Iterable<number> {
    return this.#lanes.keys();
  }

  textsIn(lane: number): number {
    return this.#settled ? 0 : this.#lanes.texts(lane);
  }

  /** Texts of a lane that has some, at least one, of about this weight. */
  takePiece(lane: number, wanted: number): Piece {
    const places: number[] = [];
    let weight = 0;
    do {
      const place = this.#lanes.take(lane);
      places.push(place);
      weight += this.#sizer.weight(this.#inputs[place]!, this.kind);
    } while (weight < wanted && this.#lanes.texts(lane) > 0);
    this.#remainingWeight -= weight;
    this.#clock.taken(places.length);
    return this.#piece(places, weight);
  }

  /** Up to `most` texts whose tokens may be worth counting and which were not asked for before; null where there are none. */
  uncounted(most: number): Piece | null {
    const places = this.#settled ? [] : this.#lanes.uncounted(most);
    return places.length === 0 ? null : this.#piece(places, 0);
  }

  /** Tokens of the texts of `uncounted`, 0 where it failed, from `at` in `tokens`. Texts that a worker has by now are passed over. */
  counted({ places }: Piece, tokens: Int32Array, at: number): void {
    if (!this.#settled) for (const [i, place] of places.entries()) this.#lanes.counted(place, tokens[at + i]!);
  }

  /** A piece's results, which begin at text `at` of its chunk's. After a cancellation nobody wants them. */
  accept({ places }: Piece, encoded: EncodedChunk, at: number): void {
    if (this.#settled) return;
    const width = this.#dimension;
    for (const [i, place] of places.entries()) {
      this.#vectors.set(encoded.vectors.subarray((at + i) * width, (at + i + 1) * width), place * width);
      const cut = CUTS[encoded.cuts[at + i]!]!;
      this.#outcomes[place] = { ok: true, tokens: encoded.tokens[at + i]!, truncated: cut !== 'nothing', cut };
    }
    for (const { index, error } of encoded.failures) {
      const place = places[index - at];
      if (place !== undefined) this.#outcomes[place] = { ok: false, error: deserializeError(error) };
    }
    this.#countReturned(places.length);
  }

  /** All texts of a piece failed for one reason: their worker died. */
  fail({ places }: Piece, error: TrawlError): void {
    if (this.#settled) return;
    for (const place of places) this.#outcomes[place] = { ok: false, error };
    this.#countReturned(places.length);
  }

  /** Rejects with CANCELLED; texts that a worker has run on, for nobody. */
  cancel(message: string, cause?: unknown): void {
    if (this.#settled) return;
    this.onDropped?.();
    this.#settle();
    this.#reject(new TrawlError('CANCELLED', message, { cause }));
  }

  #piece(places: readonly number[], weight: number): Piece {
    return { job: this, places, inputs: places.map((place) => this.#inputs[place]!), weight };
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
