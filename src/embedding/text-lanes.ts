import type { WorkInput } from './encoder-messages.ts';
import { LEAST_GROUPED_TOKENS, MAX_GROUPED_TOKENS } from './token-batch.ts';

/** The lane of texts whose tokens nobody has counted, or that run alone because of their number. */
export const UNCOUNTED = 0;

/** A text of more characters has more tokens than are worth counting. */
const MAX_CHARACTERS = MAX_GROUPED_TOKENS * 8;

const ENTERED = 0;
const COUNTED = 1;
const TAKEN = 2;

/**
 * The waiting texts of one job in lanes of equal length: lane n has those of n tokens. All begin in `UNCOUNTED`, in their
 * order.
 */
export class TextLanes {
  readonly #inputs: readonly WorkInput[];
  readonly #states: Uint8Array;
  readonly #counted = new Map<number, number[]>();
  /** Before it no text is in `UNCOUNTED`. */
  #next = 0;
  /** Before it every text was asked for. */
  #asked = 0;
  #uncounted: number;
  #size: number;

  constructor(inputs: readonly WorkInput[]) {
    this.#inputs = inputs;
    this.#states = new Uint8Array(inputs.length);
    this.#uncounted = inputs.length;
    this.#size = inputs.length;
  }

  /** Texts in all lanes. */
  get size(): number {
    return this.#size;
  }

  texts(lane: number): number {
    return lane === UNCOUNTED ? this.#uncounted : (this.#counted.get(lane)?.length ?? 0);
  }

  /** Lanes with texts, counted ones first. */
  *keys(): Iterable<number> {
    yield* this.#counted.keys();
    if (this.#uncounted > 0) yield UNCOUNTED;
  }

  /** A text of a lane that has some. */
  take(lane: number): number {
    const texts = this.#counted.get(lane);
    const place = lane === UNCOUNTED ? this.#next : texts!.shift()!;
    if (texts?.length === 0) this.#counted.delete(lane);
    this.#states[place] = TAKEN;
    this.#size--;
    if (lane === UNCOUNTED) this.#uncounted--;
    this.#skip();
    return place;
  }

  /** Up to `most` texts of `UNCOUNTED` that were not asked for before and are short. */
  uncounted(most: number): number[] {
    const places: number[] = [];
    for (; this.#asked < this.#inputs.length && places.length < most; this.#asked++) {
      if (this.#states[this.#asked] === ENTERED && isShort(this.#inputs[this.#asked]!)) places.push(this.#asked);
    }
    return places;
  }

  /** A text has so many tokens; 0 where it failed. */
  counted(place: number, tokens: number): void {
    if (this.#states[place] !== ENTERED || tokens < LEAST_GROUPED_TOKENS || tokens > MAX_GROUPED_TOKENS) return;
    this.#states[place] = COUNTED;
    this.#uncounted--;
    const texts = this.#counted.get(tokens);
    if (texts === undefined) this.#counted.set(tokens, [place]);
    else texts.push(place);
    this.#skip();
  }

  #skip(): void {
    while (this.#next < this.#inputs.length && this.#states[this.#next] !== ENTERED) this.#next++;
  }
}

function isShort(input: WorkInput): boolean {
  if (typeof input === 'string') return input.length <= MAX_CHARACTERS;
  return 'question' in input && input.question.length + input.query.length <= MAX_CHARACTERS;
}
