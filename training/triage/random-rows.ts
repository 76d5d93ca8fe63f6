import type { Random } from '../../src/base/random.ts';
import { RowBitmap } from '../../src/engine/row-bitmap.ts';

/**
 * `count` rows of `rows` that are not in `except`, each set of that size with the same probability; all of them if there are fewer.
 * One pass over the rows (selection sampling: Knuth, The Art of Computer Programming 2, 3.4.2, algorithm S), so memory is one bit a
 * row whatever the count is.
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
