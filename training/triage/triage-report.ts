/** A mean over the questions, and how far it depends on which questions were asked (95 %); null without an interval (`bootstrapInterval`). */
export interface Estimate {
  readonly value: number;
  readonly low: number | null;
  readonly high: number | null;
}

export interface Gate {
  readonly k: number;
  /** The least recall; null: none is asked for. */
  readonly minRecall: number | null;
  /** How far recall may fall below the present encoder's recall; null: any distance. */
  readonly maxDrop: number | null;
}

/**
 * `passed`: the estimate is at the gate or above it. `refused`: it is below. `refused-for-certain`: recall in the pool is below, and
 * recall in the whole index is not higher. `none`: without a gate.
 */
type Verdict = 'passed' | 'refused' | 'refused-for-certain' | 'none';

/** What a gate asks for, given the present recall at its k; null if it asks for nothing. */
export function thresholdOf({ minRecall, maxDrop }: Gate, present: number): number | null {
  const asked = [...(minRecall === null ? [] : [minRecall]), ...(maxDrop === null ? [] : [present - maxDrop])];
  return asked.length === 0 ? null : Math.max(...asked);
}

/** Means and thresholds that differ by less are equal: only rounding makes them differ. */
const ROUNDING = 1e-9;

export function verdictOf(
  { bound, estimate }: { readonly bound: Estimate; readonly estimate: Estimate | null },
  threshold: number | null,
): Verdict {
  if (threshold === null) return 'none';
  if (bound.value < threshold - ROUNDING) return 'refused-for-certain';
  return (estimate ?? bound).value < threshold - ROUNDING ? 'refused' : 'passed';
}
