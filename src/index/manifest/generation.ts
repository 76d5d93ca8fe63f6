import { createHash } from 'node:crypto';
import type { IndexManifest } from './index-manifest.ts';

/**
 * A hash that identifies the content of an index or shard: the first 32 hex digits of the SHA-256 of the facts as JSON text.
 * Equal builds have equal generations.
 */
export function generationOf(facts: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(facts)).digest('hex').slice(0, 32);
}

/**
 * The fields of an index manifest that follow from the shards, in row order, and from the deleted rows.
 *
 * @param tombstones SHA-256 of the bitmap of the deleted rows; undefined if no row is deleted.
 */
export function shardFields(
  entries: readonly Omit<IndexManifest['shards'][number], 'firstRow'>[],
  tombstones?: string,
): Pick<IndexManifest, 'generation' | 'rows' | 'shards'> {
  let rows = 0;
  const shards = entries.map(({ path, rows: count, generation }) => {
    const firstRow = rows;
    rows += count;
    return { path, firstRow, rows: count, generation };
  });
  const deleted = tombstones === undefined ? [] : ['tombstones', tombstones];
  return {
    generation: generationOf(['index', ...shards.map(({ generation }) => generation), ...deleted]),
    rows,
    shards,
  };
}
