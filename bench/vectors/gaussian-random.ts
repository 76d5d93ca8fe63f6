import { Random } from '../../src/base/random.ts';

/** `Random` with normally distributed numbers. */
export class GaussianRandom extends Random {
  #spare: number | undefined;

  /** Standard normal, by Box and Muller. */
  gaussian(): number {
    if (this.#spare !== undefined) {
      const value = this.#spare;
      this.#spare = undefined;
      return value;
    }
    const radius = Math.sqrt(-2 * Math.log(this.uniform()));
    const angle = 2 * Math.PI * this.uniform();
    this.#spare = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  }
}
