/** Reproducible pseudo-random numbers: the generator sfc32, the same on every machine. */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  /** The seed: three 32-bit words. Every bit matters. */
  constructor(a: number, b: number, c: number) {
    this.#a = a | 0;
    this.#b = b | 0;
    this.#c = c | 0;
    for (let i = 0; i < 15; i++) this.word();
  }

  /** 32 random bits as a signed integer. */
  word(): number {
    const sum = (((this.#a + this.#b) | 0) + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum;
    this.#c |= 0;
    return sum;
  }

  /** Uniform in (0, 1]. */
  uniform(): number {
    return ((this.word() >>> 0) + 1) / 4_294_967_296;
  }

  /** Uniform integer in [0, limit), limit ≤ 2^32. */
  below(limit: number): number {
    return Math.floor(((this.word() >>> 0) / 4_294_967_296) * limit);
  }

  /** Nearly normal, variance 1, |value| ≤ 3.5: the sum of the four bytes of a word. Faster than a normal one. */
  roughGaussian(): number {
    const word = this.word();
    const sum = (word & 255) + ((word >>> 8) & 255) + ((word >>> 16) & 255) + (word >>> 24);
    return (sum - 510) * ROUGH_SCALE;
  }
}

/** The sum of four bytes has the variance 4 (256² − 1) / 12. */
const ROUGH_SCALE = 1 / Math.sqrt((256 * 256 - 1) / 3);
