import { createHash } from 'node:crypto';

/**
 * A name for content: the first 32 hex digits of the SHA-256 over the JSON text of the facts that identify it. Equal
 * builds have equal generations.
 */
export function generationOf(facts: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(facts)).digest('hex').slice(0, 32);
}
