import { createHash } from 'node:crypto';
import { Random } from '../../src/base/random.ts';
import { RowBitmap } from '../../src/engine/row-bitmap.ts';

/** Passages of the index that one origin contributes to the pool. */
export interface PoolSource {
  /** Such as `wiki18, dense` or `records`. */
  readonly name: string;
  /** Whether they were found by the encoder of the index itself. */
  readonly ofPresentEncoder: boolean;
  readonly rows: RowBitmap;
}

/** The passages on which a model is tried. */
export type Pool = ReturnType<typeof poolOf>;

/**
 * The pool of the sources: all their rows within `scope`, and `sample` random ones of the rest. The same seed gives the same sample of
 * the same rest.
 */
export function poolOf(
  sources: readonly PoolSource[],
  scope: RowBitmap,
  { sample, seed }: { readonly sample: number; readonly seed: number },
) {
  const contributed = sources.reduce((all, { rows }) => all.union(rows), new RowBitmap(scope.rows));
  const chosen = contributed.intersection(scope);
  const sampled = randomRows(scope, chosen, sample, new Random(seed, sample, 1));
  /** `whole`: passages that may be found, in the scope of the trial. */
  return { chosen, sampled, whole: scope.count() };
}

/** Rows of the pool, ascending, with the place of each in it. */
export class PoolRows {
  /** Ascending. Float64 because row numbers exceed 32 bits. */
  readonly rows: Float64Array;

  constructor({ chosen, sampled }: Pool) {
    this.rows = new Float64Array(chosen.count() + sampled.count());
    let place = 0;
    for (const row of chosen.union(sampled)) this.rows[place++] = row;
  }

  get sha256(): string {
    const { buffer, byteOffset, byteLength } = this.rows;
    return createHash('sha256')
      .update(new Uint8Array(buffer, byteOffset, byteLength))
      .digest('hex');
  }

  /** The place of a row, from 0; undefined for a row outside of the pool. */
  placeOf(row: number): number | undefined {
    let low = 0;
    let high = this.rows.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.rows[middle]! < row) low = middle + 1;
      else high = middle;
    }
    return this.rows[low] === row ? low : undefined;
  }

  placesOf(set: RowBitmap): RowBitmap {
    const places = new RowBitmap(this.rows.length);
    for (const [place, row] of this.rows.entries()) if (set.has(row)) places.add(place);
    return places;
  }
}

/**
 * `count` rows of `rows` that are not in `except`, each set of that size with the same probability; all of them if there are fewer.
 * One pass over the rows (selection sampling: Knuth, The Art of Computer Programming 2, 3.4.2, algorithm S), so memory is one bit a
 * row whatever the count is.
 *
 * @internal Exported for tests.
 */
export function randomRows(rows: RowBitmap, except: RowBitmap, count: number, random: Random): RowBitmap {
  const rest = rows.intersection(except.complement());
  const chosen = new RowBitmap(rows.rows);
  let left = rest.count();
  let needed = Math.min(count, left);
  for (const row of rest) {
    if (needed === 0) break;
    if (random.below(left) < needed) {
      chosen.add(row);
      needed -= 1;
    }
    left -= 1;
  }
  return chosen;
}
