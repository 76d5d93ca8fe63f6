import type { LexicalFields } from '../../engine/lexical/lexical-fields.ts';
import { RowBitmap } from '../../engine/row-bitmap.ts';
import type { PassageStore } from '../../index/passages/passage-store.ts';
import type { FindCall, SelectCall } from '../calls/lookup-calls.ts';
import { treeRows } from '../trees/tree-rows.ts';
import type { RowScopes } from './row-scopes.ts';

interface LookupParts {
  readonly passages: PassageStore;
  readonly rows: RowScopes;
  /** Rows of the index. */
  readonly indexRows: number;
}

/**
 * The first `limit` rows of each key that are live and among the rows of the scope. The passage file also has the others, so a key
 * that got too few is looked up again with four times the limit.
 */
export async function findRows(
  { by, keys, limit, signal }: FindCall,
  among: RowBitmap | undefined,
  { passages, rows, indexRows }: LookupParts,
): Promise<number[][]> {
  if (by === 'row') {
    const inIndex = keys.map((key) => rowsOfNumber(key, indexRows));
    return inIndex.map((numbers) => numbers.filter((row) => rows.isFound(row, among)));
  }
  if (rows.live === undefined && among === undefined) return passages.find(by, keys, limit, signal);
  const found: number[][] = keys.map(() => []);
  let open = keys.map((_, i) => i);
  for (let wanted = limit; open.length > 0; wanted *= 4) {
    const looked = open.map((i) => keys[i]!);
    const candidates = await passages.find(by, looked, wanted, signal);
    open = open.filter((i, at) => {
      found[i] = candidates[at]!.filter((row) => rows.isFound(row, among)).slice(0, limit);
      return found[i].length < limit && candidates[at]!.length === wanted;
    });
  }
  return found;
}

/** The row that `key` is the number of, unless the index has no such row. */
function rowsOfNumber(key: string, indexRows: number): number[] {
  const row = /^\d{1,15}$/.test(key) ? Number(key) : Number.POSITIVE_INFINITY;
  return row < indexRows ? [row] : [];
}

/** The live rows that a call asks for, among the rows of its scope. `fields` throws if the index has no inverted index. */
export async function selectRows(
  { ids, query, signal }: SelectCall,
  among: RowBitmap | undefined,
  { passages, rows, indexRows, fields }: LookupParts & { readonly fields: () => LexicalFields },
): Promise<RowBitmap> {
  const selected = new RowBitmap(indexRows);
  if (ids === undefined) {
    const found = query === undefined ? selected.complement() : await treeRows(query, fields(), signal);
    return [among, rows.live].reduce<RowBitmap>(
      (kept, set) => (set === undefined ? kept : kept.intersection(set)),
      found,
    );
  }
  const found = await passages.find('id', ids, indexRows, signal);
  for (const row of found.flat()) if (rows.isFound(row, among)) selected.add(row);
  return selected;
}
