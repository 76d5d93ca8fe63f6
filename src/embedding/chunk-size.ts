import type { WorkInput } from './encoder-messages.ts';
import type { TextKind } from './text-encoder.ts';

/**
 * Work handed to a worker in one message, by expected time: enough that messages (some 50 µs) do not count, little
 * enough that workers end together, callers share them fairly and an abort costs little.
 */
const TARGET_MS = 5;
/** The same where they are of equal length and run together: a few of them, which is enough to gain most of it. */
const TARGET_GROUPED_MS = 20;
/** The same where texts run in padded batches: several of them, so that they can be sorted by length. */
const TARGET_BATCH_MS = 200;
/** Below this, splitting a small batch among idle workers costs more than it saves. */
const LEAST_MS = 0.5;
/** How far the newest measurement moves the estimate. */
const WEIGHT_OF_NEWEST = 0.3;
/** What a text costs besides its length, in characters. */
const CHARACTERS_PER_TEXT = 24;
/** Characters beyond which a text is surely cut: as many to a token are rare. */
const CHARACTERS_PER_TOKEN = 6;

/** Learns what texts cost from what they did cost, in milliseconds per character. */
export class ChunkSizer {
  readonly #maxCharacters: Readonly<Record<TextKind, number>>;
  readonly #targetMs: number;
  readonly #leastWeight: number;
  /** Null: not measured. */
  readonly #msPerCharacter: { apart: number | null; grouped: number | null } = { apart: null, grouped: null };

  /** `batchTokens`: of one padded run, null where there are none. */
  constructor(maxTokens: Readonly<Record<TextKind, number>>, batchTokens: number | null = null) {
    this.#targetMs = batchTokens === null ? TARGET_MS : TARGET_BATCH_MS;
    // Less than fills a batch or two is not worth a message.
    this.#leastWeight = (batchTokens ?? 0) * CHARACTERS_PER_TOKEN;
    this.#maxCharacters = {
      query: maxTokens.query * CHARACTERS_PER_TOKEN,
      passage: maxTokens.passage * CHARACTERS_PER_TOKEN,
    };
  }

  /** Cost of a text in characters. */
  weight(input: WorkInput, kind: TextKind): number {
    const length =
      typeof input === 'string'
        ? input.length
        : input.query.length + ('question' in input ? input.question : input.passage).length;
    return CHARACTERS_PER_TEXT + Math.min(length, this.#maxCharacters[kind]);
  }

  /** A chunk of this total weight took this long; `grouped`: of texts of equal length, that ran together. */
  observe(weight: number, elapsedMs: number, grouped = false): void {
    const way = grouped ? 'grouped' : 'apart';
    const measured = elapsedMs / weight;
    const before = this.#msPerCharacter[way] ?? measured;
    this.#msPerCharacter[way] = before + (measured - before) * WEIGHT_OF_NEWEST;
  }

  /** Expected time of so much weight that waits, in milliseconds; 0 before anything was measured. */
  expectedMs(weight: number): number {
    return weight * (this.#cost(true) ?? 0);
  }

  /**
   * How much weight the next chunk should have; its last text may exceed it. `remainingWeight`: of all that waits, to be
   * shared by `workers`; `grouped`: the texts are known to be of equal length. A single text goes first, to be measured.
   */
  nextWeight(remainingWeight: number, workers: number, grouped = false): number {
    const cost = this.#cost(grouped);
    if (cost === null) return this.#leastWeight;
    const shareMs = (remainingWeight / workers) * cost;
    const wanted = Math.min(grouped ? TARGET_GROUPED_MS : this.#targetMs, Math.max(LEAST_MS, shareMs)) / cost;
    return Math.max(this.#leastWeight, wanted);
  }

  /** Milliseconds per character, of the other way where this one was not measured. */
  #cost(grouped: boolean): number | null {
    const { apart, grouped: together } = this.#msPerCharacter;
    return grouped ? (together ?? apart) : (apart ?? together);
  }
}
