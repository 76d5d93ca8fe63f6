import type { ModelIdentity } from '../../src/manifest/model-identity.ts';
import type { Metric } from '../../src/metric.ts';

/** Rows looked at of each block. */
const ROWS = 32;
/** Float16 encoders normalise to within 5e-4. */
const TOLERANCE = 0.01;

/** Lengths of a few rows of every block: a model that normalises makes vectors of length 1. */
export class NormSample {
  readonly #dimension: number;
  #least = Number.POSITIVE_INFINITY;
  #most = 0;

  constructor(dimension: number) {
    this.#dimension = dimension;
  }

  /** @param values rows, row-major. */
  look(values: Float32Array): void {
    const rows = values.length / this.#dimension;
    for (let i = 0; i < Math.min(rows, ROWS); i++) {
      const begin = rows <= ROWS ? i : Math.floor((i * rows) / ROWS);
      let sum = 0;
      for (let j = begin * this.#dimension; j < (begin + 1) * this.#dimension; j++) sum += values[j]! * values[j]!;
      const norm = Math.sqrt(sum);
      this.#least = Math.min(this.#least, norm);
      this.#most = Math.max(this.#most, norm);
    }
  }

  /** What is odd, as a sentence; undefined where nothing is. */
  remark({ name, normalize }: ModelIdentity, metric: Metric): string | undefined {
    if (!normalize || metric === 'l2' || this.#most === 0) return undefined;
    if (this.#least >= 1 - TOLERANCE && this.#most <= 1 + TOLERANCE) return undefined;
    return (
      `${name} makes vectors of length 1, these have lengths from ${this.#least.toFixed(3)} to ${this.#most.toFixed(3)} ` +
      '(a sample): they may be of another model, or not normalised.' +
      (metric === 'inner-product'
        ? ' Scores are inner products of them as they are; --metric cosine divides by the lengths.'
        : '')
    );
  }
}
