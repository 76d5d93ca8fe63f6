/** Steps in which values are counted per factor of two, so that memory does not grow with their number. */
const STEPS_PER_OCTAVE = 1024;

export interface Bin {
  /** Inclusive. */
  readonly from: number;
  /** Exclusive, but inclusive in the last bin. */
  readonly to: number;
  readonly count: number;
}

/** Value → how often it occurred. */
export type Counts = Record<number, number>;

/** Counts a value, rounded towards zero to 11 significant bits. */
export function countValue(counts: Counts, value: number): void {
  const octave = value === 0 ? 1 : 2 ** Math.floor(Math.log2(Math.abs(value)));
  const rounded = (Math.trunc((value / octave) * STEPS_PER_OCTAVE) / STEPS_PER_OCTAVE) * octave;
  counts[rounded] = (counts[rounded] ?? 0) + 1;
}

/** At most `bins` bins of equal width over all values. Empty if there are none. */
export function binsOf(counts: Counts, bins = 12): readonly Bin[] {
  const entries = valuesOf(counts);
  if (entries.length === 0) return [];
  const low = entries.reduce((least, [value]) => Math.min(least, value), Number.POSITIVE_INFINITY);
  const high = entries.reduce((most, [value]) => Math.max(most, value), Number.NEGATIVE_INFINITY);
  if (low === high) return [{ from: low, to: high, count: counts[low]! }];
  const width = (high - low) / bins;
  const found = new Array<number>(bins).fill(0);
  for (const [value, count] of entries) found[Math.min(bins - 1, Math.floor((value - low) / width))]! += count;
  return found.map((count, i) => ({
    from: shortNumber(low + i * width),
    to: shortNumber(i === bins - 1 ? high : low + (i + 1) * width),
    count,
  }));
}

/** Ranks in bins that grow: 1, 2 to 5, 6 to 10, 11 to 20, 21 to 50, and so on. Empty bins at the end are left out. */
export function rankBins(counts: Counts): readonly Bin[] {
  const bins: { from: number; to: number; count: number }[] = [];
  const entries = valuesOf(counts);
  const deepest = entries.reduce((most, [rank]) => Math.max(most, rank), 0);
  let from = 1;
  for (let power = 1; from <= deepest; power *= 10) {
    for (const to of [power, 2 * power, 5 * power].filter((end) => end >= from && end !== 2)) {
      bins.push({ from, to, count: 0 });
      from = to + 1;
      if (from > deepest) break;
    }
  }
  for (const [rank, count] of entries) bins.find(({ to }) => rank <= to)!.count += count;
  return bins;
}

function valuesOf(counts: Counts): (readonly [value: number, count: number])[] {
  return Object.entries(counts).map(([value, count]) => [Number(value), count]);
}

function shortNumber(value: number): number {
  return Number(value.toPrecision(6));
}
