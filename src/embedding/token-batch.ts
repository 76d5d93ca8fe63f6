import type { TokenizedText } from './truncation.ts';

/** Tokens of texts side by side, row-major, rows × length; behind a row's tokens stands padding that nothing attends to. */
export interface TokenBatch {
  readonly rows: number;
  readonly length: number;
  readonly ids: Int32Array;
  /** Per token the text it is of, 0 or 1; absent where all are 0. */
  readonly types: Int32Array | null;
  /** Per row how many tokens are the text's own. */
  readonly tokens: Int32Array;
}

/** Padded lengths are multiples of this, so that a device sees few shapes and plans its memory once for each. */
const LENGTH_STEP = 32;

/** `length`: at least that of the longest text. Texts must have tokens. */
export function tokenBatch(texts: readonly TokenizedText[], length: number): TokenBatch {
  const rows = texts.length;
  const ids = new Int32Array(rows * length);
  const tokens = Int32Array.from(texts, (text) => text.ids.length);
  const types = texts.some((text) => text.types !== undefined) ? new Int32Array(rows * length) : null;
  for (const [row, text] of texts.entries()) {
    ids.set(text.ids, row * length);
    if (text.types !== undefined) types!.set(text.types, row * length);
  }
  return { rows, length, ids, types, tokens };
}

/** Tokens of one run of texts of equal length: more gains nothing more (measured on a CPU with AVX-512). */
export const GROUP_TOKENS = 128;
/** Texts of more tokens run alone: at this length company gains a tenth, at twice of it nothing. */
export const MAX_GROUPED_TOKENS = 48;
/** A text of one token runs alone: onnxruntime multiplies a single row in another order than several. */
export const LEAST_GROUPED_TOKENS = 2;

/** Places of texts of equal length together, up to 128 tokens; texts of fewer than 2 tokens or more than 48 alone. */
export function groupByLength(lengths: readonly number[]): number[][] {
  const groups: number[][] = [];
  const open = new Map<number, number[]>();
  for (const [place, length] of lengths.entries()) {
    const group = open.get(length);
    if (group !== undefined && (group.length + 1) * length <= GROUP_TOKENS) {
      group.push(place);
      continue;
    }
    const begun = [place];
    groups.push(begun);
    if (length >= LEAST_GROUPED_TOKENS && length <= MAX_GROUPED_TOKENS) open.set(length, begun);
  }
  return groups;
}

/**
 * Packs texts into batches of at most `budget` tokens, padding counted (a single text may have more), the longest first:
 * neighbours in length share a batch, so little is padded, and the largest memory is asked for at the beginning. Gives
 * the places of the texts in `lengths`; texts without tokens are in no batch.
 */
export function packByLength(lengths: readonly number[], budget: number): { places: number[]; length: number }[] {
  const order = lengths.map((_, place) => place).filter((place) => lengths[place]! > 0);
  order.sort((a, b) => lengths[b]! - lengths[a]! || a - b);
  const batches: { places: number[]; length: number }[] = [];
  for (let next = 0; next < order.length; ) {
    const length = Math.ceil(lengths[order[next]!]! / LENGTH_STEP) * LENGTH_STEP;
    const places = order.slice(next, next + Math.max(1, Math.floor(budget / length)));
    batches.push({ places, length });
    next += places.length;
  }
  return batches;
}
