import { join } from 'node:path';
import type { Build } from '../building/build.ts';
import type { StoredShard } from '../building/planned-shard.ts';
import { PASSAGES_FILE } from '../index-files.ts';
import { checkIds } from './check-ids.ts';
import { checkModel } from './check-model.ts';
import type { PrecomputedVectors } from './precomputed-vectors.ts';

/**
 * Checks that vectors belong to the stored passages and to the model: compares ids, if the files have them, and embeds some
 * passages again.
 *
 * @throws TrawlError VECTORS_MISMATCH, VECTORS_OF_ANOTHER_MODEL, NON_FINITE_VECTOR.
 */
export async function checkVectors(
  vectors: PrecomputedVectors,
  shards: readonly StoredShard[],
  { encoder, passageTemplate, onNote, signal }: Build,
): Promise<void> {
  const { set, check } = vectors;
  const files = shards.map(({ folder, firstRow }) => ({ path: join(folder, PASSAGES_FILE), firstRow }));
  if (set.ids !== undefined) {
    checkIds(
      set.ids,
      files.map(({ path }) => path),
    );
  }
  if (check === undefined || check.rows === 0 || encoder === undefined) return;
  const { median, lowest, rows } = await checkModel(check, set, files, { encoder, template: passageTemplate, signal });
  onNote(
    `${rows} passages embedded again with ${encoder.identity.name}: the median similarity to their vectors is ` +
      `${median.toFixed(5)}, the lowest ${lowest.toFixed(5)}.`,
  );
}
