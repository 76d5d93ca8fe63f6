/** Tokens of a group of texts of equal length. Larger groups were not faster (measured on a CPU with AVX-512). */
export const GROUP_TOKENS = 128;
/** Longer texts run alone: grouping gains 10 % at this length and nothing at twice the length. */
export const MAX_GROUPED_TOKENS = 48;
/** A text of one token runs alone: onnxruntime sums a single row in a different order from several rows. */
export const MIN_GROUPED_TOKENS = 2;

/** Padded lengths are multiples of this: few shapes, for which a GPU plans its memory once, and whole tiles of its matrix units. */
const LENGTH_STEP = 8;

/** Groups texts of equal length, which run together unpadded, by the limits above. Returns indexes into `lengths`. */
export function groupByLength(lengths: readonly number[]): number[][] {
  const groups: number[][] = [];
  const open = new Map<number, number[]>();
  for (const [index, length] of lengths.entries()) {
    const group = open.get(length);
    if (group !== undefined && (group.length + 1) * length <= GROUP_TOKENS) {
      group.push(index);
      continue;
    }
    const begun = [index];
    groups.push(begun);
    if (length >= MIN_GROUPED_TOKENS && length <= MAX_GROUPED_TOKENS) open.set(length, begun);
  }
  return groups;
}

/** A batch that is not full has some eighths of the rows of a full one, or a power of two, so that a GPU gets few shapes. */
const ROW_STEPS = 8;

/** Texts that run together, by their indexes, the length they are padded to, and the batch's rows; those after the texts are padding. */
export interface TextBatch {
  readonly indexes: readonly number[];
  readonly length: number;
  readonly rows: number;
}

/**
 * Packs texts into padded batches of at most `budget` tokens, padding included; a single text may have more. Texts are sorted by
 * length, longest first, so that a batch has little padding and the largest allocation comes first. Returns indexes into
 * `lengths`, without texts that have no tokens.
 */
export function packByLength(lengths: readonly number[], budget: number): TextBatch[] {
  const order = lengths.map((_, index) => index).filter((index) => lengths[index]! > 0);
  order.sort((a, b) => lengths[b]! - lengths[a]! || a - b);
  const batches: TextBatch[] = [];
  for (let next = 0; next < order.length; ) {
    const length = Math.ceil(lengths[order[next]!]! / LENGTH_STEP) * LENGTH_STEP;
    const most = Math.max(1, Math.floor(budget / length));
    const indexes = order.slice(next, next + most);
    batches.push({ indexes, length, rows: rowsFor(indexes.length, most) });
    next += indexes.length;
  }
  return batches;
}

function rowsFor(texts: number, most: number): number {
  const step = Math.ceil(most / ROW_STEPS);
  const rows = texts <= step ? 2 ** Math.ceil(Math.log2(texts)) : Math.ceil(texts / step) * step;
  return Math.min(most, rows);
}
