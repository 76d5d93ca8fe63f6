declare const sortedBrand: unique symbol;

/** Numbers in ascending order, at least one. */
type SortedSamples = readonly [number, ...number[]] & { readonly [sortedBrand]: true };

/** @throws RangeError if `values` is empty or has a NaN. */
export function sortedSamples(values: Iterable<number>): SortedSamples {
  const sorted = Float64Array.from(values).sort();
  if (sorted.length === 0) throw new RangeError('a percentile of no samples');
  if (sorted.some(Number.isNaN)) throw new RangeError('a sample is not a number');
  return [...sorted] as unknown as SortedSamples;
}

/**
 * The value below which `percent` % of the samples lie, interpolated linearly between the two nearest (numpy's default).
 * Of 1, 2, 3, 4 the 50th percentile is 2.5, the 0th is 1, the 100th is 4.
 */
export function percentile(samples: SortedSamples, percent: number): number {
  if (!(percent >= 0 && percent <= 100)) throw new RangeError(`percentile ${percent} is not within [0, 100]`);
  const position = ((samples.length - 1) * percent) / 100;
  const below = Math.floor(position);
  const low = samples[below]!;
  const high = samples[Math.min(below + 1, samples.length - 1)]!;
  return low + (high - low) * (position - below);
}

export function median(samples: SortedSamples): number {
  return percentile(samples, 50);
}
