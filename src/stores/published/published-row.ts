import { createHash } from 'node:crypto';
import type { Lookup } from '../../index/passages/schema.ts';

/** Fields of a row in every store. */
export const ROW_FIELD = 'row';
export const VECTOR_FIELD = 'vector';
export const ID_FIELD = 'passage_id';

/** Bytes of a piece of a document: Milvus's limit of a text. */
export const PIECE_BYTES = 65_535;

/** A value as SQLite has it: look-ups compare texts with texts and numbers with numbers. */
type LookupValue = string | bigint | number | null;

export interface PublishedRow {
  readonly row: number;
  readonly vector: Float32Array;
  readonly document: string;
  readonly id: string | null;
  readonly lookups: Readonly<Record<Lookup, LookupValue>>;
  /** The key of each column that is a field, in the order of `keyColumns`. */
  readonly keys: readonly string[];
}

/**
 * The field by which passages are looked up. It has a hash of the key, because keys may be longer than a term of OpenSearch (32,766
 * bytes), and texts in Milvus's expressions would need its own escaping.
 */
export function lookupField(by: Lookup): string {
  return `${by}_hash`;
}

/**
 * 63 bits of the SHA-256 of a key, as decimal text; '0' for null. Among a billion keys, the probability that a look-up finds a passage of
 * another key is 1e-10.
 */
export function lookupHash(by: Lookup, value: LookupValue): string {
  if (value === null || (typeof value === 'number' && !Number.isInteger(value))) return '0';
  const text = `${by}\n${typeof value === 'string' ? 'text' : 'integer'}\n${typeof value === 'number' ? BigInt(value) : value}`;
  const hash = createHash('sha256').update(text).digest().readBigUInt64BE() >> 1n;
  return String(hash === 0n ? 1n : hash);
}

/** The norm of `values[start, start + dimension)`, a little too large rather than too small. */
export function upperNorm(values: Float32Array, start = 0, dimension = values.length): number {
  let sum = 0;
  for (let j = start; j < start + dimension; j++) sum += values[j]! * values[j]!;
  return Math.sqrt(sum) * (1 + (dimension + 4) * 2 ** -52);
}

/**
 * A checksum of rows: the sum of their SHA-256 modulo 2^256. It does not depend on their order, so that a resumed publication goes on
 * with the sum of the rows before it, and rows can be read back in any order.
 */
export class ContentSum {
  #sum: bigint;

  constructor(hex = '0') {
    this.#sum = BigInt(`0x${hex}`);
  }

  add({ row, vector, id, document, keys }: Omit<PublishedRow, 'lookups'>): void {
    const hash = createHash('sha256')
      .update(JSON.stringify([row, id, ...keys]))
      .update(vector)
      .update(document)
      .digest('hex');
    this.#sum = (this.#sum + BigInt(`0x${hash}`)) % 2n ** 256n;
  }

  get hex(): string {
    return this.#sum.toString(16).padStart(64, '0');
  }
}
