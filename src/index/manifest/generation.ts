import { createHash } from 'node:crypto';

/**
 * A hash that identifies the content of an index or shard: the first 32 hex digits of the SHA-256 of the facts as JSON text.
 * Equal builds have equal generations.
 */
export function generationOf(facts: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(facts)).digest('hex').slice(0, 32);
}
