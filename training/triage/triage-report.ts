/** A mean over the questions, and how far it depends on which questions were asked (95 %); null without an interval (`bootstrapInterval`). */
export interface Estimate {
  readonly value: number;
  readonly low: number | null;
  readonly high: number | null;
}

/** Recall of the model that is tried. */
export interface TriedRecall {
  /** In the pool alone. Recall in the whole index cannot be higher for these questions. */
  readonly bound: Estimate;
  /** The estimate for the whole index. Null without a sample. */
  readonly estimate: Estimate | null;
  /** The estimate with each sampled passage counted as often as its share says. Null without a sample. */
  readonly counts: number | null;
}

/** Recall of the encoder of the index, whose whole index is known. */
interface PresentRecall {
  readonly whole: Estimate;
  /**
   * The same encoder on a pool without what it has retrieved itself, as if it were new: what the trial would have said of it. Null if
   * the index has no vectors, or the pool has no sample.
   */
  readonly asNew: { readonly bound: number; readonly estimate: number; readonly counts: number } | null;
}

export interface RecallAt {
  readonly k: number;
  readonly tried: TriedRecall;
  readonly present: PresentRecall;
  /** Estimate of the model that is tried minus `whole` of the present encoder, question by question. Null without an estimate. */
  readonly change: Estimate | null;
}

export interface Gate {
  /** The k whose recall decides. */
  readonly k: number;
  /** The least recall; null: none is asked for. */
  readonly minRecall: number | null;
  /** How far recall may fall below the present encoder's recall; null: any distance. */
  readonly maxDrop: number | null;
}

/**
 * `passed`: the estimate is at the gate or above it. `refused`: it is below. `refused-for-certain`: recall in the pool is below, so that
 * of the whole index is, too, for these questions. `none`: without a gate.
 */
type Verdict = 'passed' | 'refused' | 'refused-for-certain' | 'none';

export interface TriageReport {
  readonly index: { readonly name: string; readonly generation: string; readonly model: string | null };
  readonly model: {
    readonly name: string;
    readonly sha256: string | null;
    readonly precision: string | null;
    readonly dimension: number;
  };
  readonly questions: {
    readonly read: number;
    readonly judged: number;
    readonly unjudged: number;
    /** Relevant passages of the judged questions, and those that the index does not have: no model finds them. */
    readonly relevant: number;
    readonly missing: number;
  };
  readonly passages: {
    /** Passages that a search may find. */
    readonly whole: number;
    readonly pool: number;
    /** Retrieved or relevant. */
    readonly chosen: number;
    readonly sampled: number;
    readonly sources: readonly { readonly name: string; readonly passages: number }[];
    /** Distinct ids in lists of other generations that this index does not have. */
    readonly unknownIds: number;
  };
  /** Records read, and those that belong to none of the questions; null without records. */
  readonly records: { readonly read: number; readonly ofOtherQuestions: number } | null;
  readonly settings: { readonly depth: number; readonly sample: number; readonly seed: number };
  readonly recall: readonly RecallAt[];
  readonly gate: Gate;
  /** What the gate asked for: the larger of `minRecall` and present recall − `maxDrop`; null without a gate. */
  readonly threshold: number | null;
  readonly verdict: Verdict;
  /** Differs from run to run; everything else is the same, bit for bit, for the same inputs. */
  readonly times: {
    /** Time spent on embedding the pool, by this run and those that it resumed. */
    readonly embedMs: number;
    /** Passages that earlier runs had embedded. */
    readonly resumed: number;
    readonly passagesPerSecond: number;
    /** What embedding the whole index would take at that speed. */
    readonly wholeMs: number;
    readonly totalMs: number;
  };
}

/** What a gate asks for, given the present recall at its k; null if it asks for nothing. */
export function thresholdOf({ minRecall, maxDrop }: Gate, present: number): number | null {
  const asked = [...(minRecall === null ? [] : [minRecall]), ...(maxDrop === null ? [] : [present - maxDrop])];
  return asked.length === 0 ? null : Math.max(...asked);
}

/** Means and thresholds that differ by less are equal: only rounding makes them differ. */
const ROUNDING = 1e-9;

export function verdictOf({ tried }: Pick<RecallAt, 'tried'>, threshold: number | null): Verdict {
  if (threshold === null) return 'none';
  if (tried.bound.value < threshold - ROUNDING) return 'refused-for-certain';
  return (tried.estimate ?? tried.bound).value < threshold - ROUNDING ? 'refused' : 'passed';
}
