import type { ModelIdentity } from '../../src/encoder/identity/model-identity.ts';
import type { Metric } from '../../src/engine/metric.ts';

/** Rows measured per block. */
const ROWS = 32;
/** Encoders in float16 normalise to within 5e-4. */
const TOLERANCE = 0.01;

/** Measures the lengths of a few rows per block. Vectors of a model that normalises have length 1. */
export class NormSample {
  readonly #dimension: number;
  #least = Number.POSITIVE_INFINITY;
  #most = 0;

  constructor(dimension: number) {
    this.#dimension = dimension;
  }

  /** @param values rows, row-major. */
  add(values: Float32Array): void {
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

  /** A warning if the lengths do not match the model. */
  warning({ name, normalize }: ModelIdentity, metric: Metric): string | undefined {
    if (!normalize || metric === 'l2' || this.#most === 0) return undefined;
    if (this.#least >= 1 - TOLERANCE && this.#most <= 1 + TOLERANCE) return undefined;
    return (
      `Vectors of ${name} have length 1, but a sample of these has lengths from ${this.#least.toFixed(3)} to ` +
      `${this.#most.toFixed(3)}. They may come from another model, or are not normalised.` +
      (metric === 'inner-product' ? ' Scores will be inner products; --metric cosine divides by the lengths.' : '')
    );
  }
}
