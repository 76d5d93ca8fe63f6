import { createHash } from 'node:crypto';

const MODULUS = 2n ** 256n;

/** What of a row is compared. */
interface RowContent {
  readonly row: number;
  readonly vector: ArrayLike<number>;
  readonly id: string | null;
  readonly document: string;
  readonly keys: readonly string[];
}

/**
 * A checksum of rows: the sum of their SHA-256 modulo 2^256. It does not depend on their order, so that a resumed publication goes on
 * with the sum of the rows before it, and rows can be read back in any order.
 */
export class ContentSum {
  #sum: bigint;

  /** @param hex an earlier sum. */
  constructor(hex = '0') {
    this.#sum = BigInt(`0x${hex}`);
  }

  add({ row, vector, id, document, keys }: RowContent): void {
    const hash = createHash('sha256')
      .update(JSON.stringify([row, id, ...keys]))
      .update(Float32Array.from(vector))
      .update(document)
      .digest('hex');
    this.#sum = (this.#sum + BigInt(`0x${hash}`)) % MODULUS;
  }

  get hex(): string {
    return this.#sum.toString(16).padStart(64, '0');
  }
}
