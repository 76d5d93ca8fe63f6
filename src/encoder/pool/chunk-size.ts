import { type WorkInput, workCharacters } from '../tokenizer/text-pair.ts';

/** Target time of a chunk, in milliseconds: long beside its message (about 50 µs), short enough for fair shares and quick aborts. */
const TARGET_MS = 5;
/** Target time of a chunk of texts of equal length: a few groups, which give most of the gain. */
const TARGET_GROUPED_MS = 20;
/** Target time if texts run in padded batches: several batches, so that texts can be sorted by length. */
const TARGET_BATCH_MS = 200;
/** Splitting a small batch among idle threads into chunks below this costs more than it saves. */
const MIN_CHUNK_MS = 0.5;
const SMOOTHING = 0.3;
const CHARACTERS_PER_TEXT = 24;
/** Few texts have more characters per token than this, so characters beyond it are assumed to be truncated. */
const CHARACTERS_PER_TOKEN = 6;

/** Chooses chunk sizes from a moving average of the measured cost, in milliseconds per character. */
export class ChunkSizer {
  readonly #targetMs: number;
  readonly #minWeight: number;
  readonly #msPerCharacter: { single: number | null; grouped: number | null } = { single: null, grouped: null };

  /** `batchTokens`: tokens of a padded batch; null if texts run unpadded. */
  constructor(batchTokens: number | null = null) {
    this.#targetMs = batchTokens === null ? TARGET_MS : TARGET_BATCH_MS;
    // A chunk fills at least about one batch.
    this.#minWeight = (batchTokens ?? 0) * CHARACTERS_PER_TOKEN;
  }

  /** Estimated cost of a text in characters. Characters beyond the token limit cost nothing. */
  weight(input: WorkInput, maxTokens: number): number {
    return CHARACTERS_PER_TEXT + Math.min(workCharacters(input), maxTokens * CHARACTERS_PER_TOKEN);
  }

  /** Records the time of a chunk. `grouped`: its texts had equal length and ran together. */
  observe(weight: number, elapsedMs: number, grouped = false): void {
    const key = grouped ? 'grouped' : 'single';
    const measured = elapsedMs / weight;
    const before = this.#msPerCharacter[key] ?? measured;
    this.#msPerCharacter[key] = before + (measured - before) * SMOOTHING;
  }

  /** Expected time for texts of this total weight on one thread, in milliseconds; 0 before the first measurement. */
  expectedMs(weight: number): number {
    return weight * (this.#cost(true) ?? 0);
  }

  /**
   * Target weight of the next chunk, which its last text may exceed; 0, a single text, before the first measurement. `threads` threads
   * share the `remainingWeight` of all waiting texts. `grouped`: the chunk has texts of equal length.
   */
  nextWeight(remainingWeight: number, threads: number, grouped = false): number {
    const cost = this.#cost(grouped);
    if (cost === null) return this.#minWeight;
    const shareMs = (remainingWeight / threads) * cost;
    const target = Math.min(grouped ? TARGET_GROUPED_MS : this.#targetMs, Math.max(MIN_CHUNK_MS, shareMs)) / cost;
    return Math.max(this.#minWeight, target);
  }

  /** Milliseconds per character of single or grouped texts; if not measured, the other cost. */
  #cost(grouped: boolean): number | null {
    const { single, grouped: together } = this.#msPerCharacter;
    return grouped ? (together ?? single) : (single ?? together);
  }
}
