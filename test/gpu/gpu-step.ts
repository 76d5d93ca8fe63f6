import type { GpuModel } from './gpu-models.ts';

/** `missing`: something that the machine lacks; `skipped`: not needed here, or not possible. */
type Outcome = 'passed' | 'failed' | 'missing' | 'skipped';

export interface StepResult {
  readonly name: string;
  readonly outcome: Outcome;
  /** What was found, and for `missing` what to do. */
  readonly text: string;
  readonly figures?: unknown;
  readonly seconds: number;
}

/** What a step returns. */
export type StepOutcome = Omit<StepResult, 'name' | 'seconds'>;

export interface GpuRun {
  /** CUDA device; null: a rehearsal on the CPU. */
  readonly device: number | null;
  readonly devices: readonly number[];
  readonly models: readonly GpuModel[];
  /** Tiny models and few texts. */
  readonly small: boolean;
  /** For the files of the steps. */
  readonly folder: string;
  /** Python with torch and sentence-transformers; undefined if there is none. */
  readonly python: string | undefined;
  readonly say: (line: string) => void;
}

export interface GpuStep {
  readonly name: string;
  run(run: GpuRun): Promise<StepOutcome>;
}

/** Least cosine of a vector from a GPU and the one from the CPU. */
const LEAST_COSINE = 0.9999;

/** The cosines of rows, with the rows that are below the limit. */
export interface Agreement {
  readonly least: number;
  readonly mean: number;
  readonly below: readonly number[];
}

export function agreement(vectors: Float32Array, others: Float32Array, rows: number): Agreement {
  const width = vectors.length / rows;
  const below: number[] = [];
  let [least, sum] = [1, 0];
  for (let row = 0; row < rows; row++) {
    const cosine = cosineOf(vectors, others, row * width, (row + 1) * width);
    // NaN is below any limit.
    if (!(cosine >= LEAST_COSINE)) below.push(row);
    least = Math.min(least, cosine);
    sum += cosine;
  }
  return { least, mean: sum / rows, below };
}

function cosineOf(a: Float32Array, b: Float32Array, from: number, to: number): number {
  let [dot, left, right] = [0, 0, 0];
  for (let i = from; i < to; i++) {
    dot += a[i]! * b[i]!;
    left += a[i]! * a[i]!;
    right += b[i]! * b[i]!;
  }
  return dot / Math.sqrt(left * right);
}

/** A step's result from the agreements that it found, by what was compared. */
export function agreementResult(found: Readonly<Record<string, Agreement>>): StepOutcome {
  const entries = Object.entries(found);
  const failed = entries.filter(([, { below }]) => below.length > 0);
  const lines = entries.map(
    ([what, { least, mean }]) => `${what}: least cosine ${least.toFixed(6)}, mean ${mean.toFixed(6)}`,
  );
  const wrong = failed.map(
    ([what, { below }]) => `${what}: ${below.length} texts below ${LEAST_COSINE}, the first is ${below[0]}`,
  );
  return { outcome: failed.length === 0 ? 'passed' : 'failed', text: [...wrong, ...lines].join('\n'), figures: found };
}
