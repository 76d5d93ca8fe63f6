import { createHash } from 'node:crypto';
import type { Lookup } from '../../index/passages/schema.ts';

/** A value as SQLite has it: look-ups compare texts with texts and numbers with numbers. */
type LookupValue = string | bigint | number | null;

export interface PublishedRow {
  readonly row: number;
  readonly vector: Float32Array;
  readonly document: string;
  readonly id: string | null;
  readonly lookups: Readonly<Record<Lookup, LookupValue>>;
  /** Of each column that is a field, in the order of `keyColumns`. */
  readonly keys: readonly string[];
}

/**
 * 63 bits of the SHA-256 of a key, as decimal text; '0' where there is none. Among a billion keys, a look-up finds a passage of another
 * key with a probability of 1e-10.
 */
export function lookupHash(by: Lookup, value: LookupValue): string {
  if (value === null) return '0';
  const typed = typeof value === 'number' ? (Number.isInteger(value) ? BigInt(value) : null) : value;
  if (typed === null) return '0';
  const text = `${by}\n${typeof typed === 'bigint' ? 'integer' : 'text'}\n${typed}`;
  const hash = createHash('sha256').update(text).digest().readBigUInt64BE() >> 1n;
  return String(hash === 0n ? 1n : hash);
}
