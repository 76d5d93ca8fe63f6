/** Steps in which values are counted per factor of two, so that memory does not grow with their number. */
const STEPS_PER_OCTAVE = 1024;

export interface Bin {
  /** Inclusive. */
  readonly from: number;
  /** Exclusive, but inclusive in the last bin. */
  readonly to: number;
  readonly count: number;
}

/** Value → how often it occurred. As JSON: pairs. */
export type Counts = Map<number, number>;

/** Counts a value, rounded towards zero to 11 significant bits. */
export function countValue(counts: Counts, value: number): void {
  const rounded = roundedValue(value);
  counts.set(rounded, (counts.get(rounded) ?? 0) + 1);
}

function roundedValue(value: number): number {
  if (value === 0) return 0;
  const octave = 2 ** Math.floor(Math.log2(Math.abs(value)));
  return (Math.trunc((value / octave) * STEPS_PER_OCTAVE) / STEPS_PER_OCTAVE) * octave;
}

/** At most `bins` bins of equal width over all values. Empty if there are none. */
export function binsOf(counts: Counts, bins = 12): readonly Bin[] {
  if (counts.size === 0) return [];
  const values = [...counts.keys()];
  const low = values.reduce((a, b) => Math.min(a, b));
  const high = values.reduce((a, b) => Math.max(a, b));
  if (low === high) return [{ from: low, to: high, count: counts.get(low)! }];
  const width = (high - low) / bins;
  const found = new Array<number>(bins).fill(0);
  for (const [value, count] of counts) found[Math.min(bins - 1, Math.floor((value - low) / width))]! += count;
  return found.map((count, i) => ({
    from: shortNumber(low + i * width),
    to: shortNumber(i === bins - 1 ? high : low + (i + 1) * width),
    count,
  }));
}

/** Ranks in bins that grow: 1, 2 to 5, 6 to 10, 11 to 20, 21 to 50, and so on. Empty bins at the end are left out. */
export function rankBins(counts: Counts): readonly Bin[] {
  const bins: { from: number; to: number; count: number }[] = [];
  const deepest = [...counts.keys()].reduce((a, b) => Math.max(a, b), 0);
  let from = 1;
  for (let power = 1; from <= deepest; power *= 10) {
    for (const to of [power, 2 * power, 5 * power].filter((end) => end >= from && end !== 2)) {
      bins.push({ from, to, count: 0 });
      from = to + 1;
      if (from > deepest) break;
    }
  }
  for (const [rank, count] of counts) bins.find(({ to }) => rank <= to)!.count += count;
  return bins;
}

function shortNumber(value: number): number {
  return Number(value.toPrecision(6));
}
