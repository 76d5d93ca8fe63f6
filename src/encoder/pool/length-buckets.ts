import { MAX_GROUPED_TOKENS, MIN_GROUPED_TOKENS } from '../inference/length-groups.ts';
import { lengthOf } from '../text-encoder.ts';
import type { WorkInput } from '../tokenizer/text-pair.ts';

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
export class LengthBuckets {
  readonly #inputs: readonly WorkInput[];
  readonly #states: Uint8Array;
  readonly #grouped = new Map<number, number[]>();
  /** First text in `UNGROUPED`. */
  #firstUngrouped = 0;
  /** First text that `textsToCount` has not considered. */
  #nextToCount = 0;
  #ungrouped: number;
  #size: number;

  constructor(inputs: readonly WorkInput[]) {
    this.#inputs = inputs;
    this.#states = new Uint8Array(inputs.length);
    this.#ungrouped = inputs.length;
    this.#size = inputs.length;
  }

  /** Texts in all buckets. */
  get size(): number {
    return this.#size;
  }

  /** Texts in one bucket. */
  textCount(bucket: number): number {
    return bucket === UNGROUPED ? this.#ungrouped : (this.#grouped.get(bucket)?.length ?? 0);
  }

  /** Buckets with texts, those of a token count first. */
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
    this.#size--;
    if (bucket === UNGROUPED) this.#ungrouped--;
    this.#advance();
    return text;
  }

  /** Up to `max` short texts of `UNGROUPED`, each returned once. They stay in the bucket until `setTokens`. */
  textsToCount(max: number): number[] {
    const texts: number[] = [];
    for (; this.#nextToCount < this.#inputs.length && texts.length < max; this.#nextToCount++) {
      if (this.#states[this.#nextToCount] === STATE_UNGROUPED && isShort(this.#inputs[this.#nextToCount]!)) {
        texts.push(this.#nextToCount);
      }
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

function isShort(input: WorkInput): boolean {
  if (typeof input === 'string') return input.length <= MAX_CHARACTERS;
  const length = 'question' in input ? lengthOf(input) : input.query.length + input.passage.length;
  return length <= MAX_CHARACTERS;
}
