import { join } from 'node:path';
import type { BuildOptions } from '../build/build-options.ts';
import type { ShardPlace } from '../build/store-passages.ts';
import { PASSAGES_FILE } from '../index-files.ts';
import { checkIds } from './check-ids.ts';
import { checkModel } from './check-model.ts';
import type { GivenVectors } from './given-vectors.ts';

/**
 * What can be known of given vectors once all passages are stored, before the long work: whose ids they have, and whether
 * the model gives them.
 *
 * @throws TrawlError VECTORS_MISMATCH, VECTORS_OF_ANOTHER_MODEL, NON_FINITE_VECTOR.
 */
export async function checkVectors(
  vectors: GivenVectors,
  places: readonly ShardPlace[],
  firstRows: ReadonlyMap<number, number>,
  { encoder, passageTemplate, onNote, signal }: BuildOptions,
): Promise<void> {
  const { set, check } = vectors;
  const files = places.map(({ index, folder }) => ({
    path: join(folder, PASSAGES_FILE),
    firstRow: firstRows.get(index)!,
  }));
  if (set.ids !== undefined) {
    checkIds(
      set.ids,
      files.map(({ path }) => path),
    );
  }
  if (check === undefined || check.rows === 0) return;
  const { median, least, rows } = await checkModel(check, set, files, { encoder, template: passageTemplate, signal });
  onNote?.(
    `${rows} passages embedded again with ${encoder.identity.name}: similarity to their vectors ${median.toFixed(5)} in the ` +
      `median, ${least.toFixed(5)} at least.`,
  );
}
