/** How far a figure may be from the recorded one: by a difference, or by a factor in either direction. */
export type Tolerance = { readonly difference: number } | { readonly factor: number };

/** A figure that a reproduction has to reach. */
export interface Expectation {
  readonly name: string;
  readonly value: number;
  readonly tolerance: Tolerance;
}

export interface ComparedExpectation extends Expectation {
  /** Undefined if the new run has no such figure, as where a baseline is not installed. */
  readonly found: number | undefined;
  readonly within: boolean;
}

/** The same bits everywhere, but for the last bits of float32 in other versions of a library. */
export const QUALITY: Tolerance = { difference: 0.002 };

/** Ratios depend on processor, cores and other work; with the same of each they vary by less than half. */
export const RATIO: Tolerance = { factor: 2.5 };

export const MEMORY: Tolerance = { factor: 1.25 };

/** A graph depends on the order in which threads insert rows. */
export const GRAPH_RECALL: Tolerance = { difference: 0.05 };

/** Compares by name. A figure that the new run lacks is not within its tolerance. */
export function compareExpectations(
  expected: readonly Expectation[],
  found: readonly Expectation[],
): ComparedExpectation[] {
  const byName = new Map(found.map(({ name, value }) => [name, value]));
  return expected.map((expectation) => {
    const value = byName.get(expectation.name);
    return { ...expectation, found: value, within: value !== undefined && isWithin(value, expectation) };
  });
}

function isWithin(found: number, { value, tolerance }: Expectation): boolean {
  if ('difference' in tolerance) return Math.abs(found - value) <= tolerance.difference + 1e-12;
  if (value === 0) return found === 0;
  const factor = found / value;
  return factor <= tolerance.factor && factor >= 1 / tolerance.factor;
}

/** Such as `0.901 ± 0.002` or `10.7, by a factor of at most 2.5`. */
export function describeExpectation({ value, tolerance }: Expectation): string {
  const shown = Number(value.toPrecision(4)).toLocaleString('en-US', { maximumFractionDigits: 4 });
  return 'difference' in tolerance
    ? `${shown} ± ${tolerance.difference}`
    : `${shown}, within a factor of ${tolerance.factor}`;
}
