import type { LexicalFields } from '../../engine/lexical/lexical-fields.ts';
import { RowBitmap } from '../../engine/row-bitmap.ts';
import type { PassageStore } from '../../index/passages/passage-store.ts';
import type { SelectCall } from '../calls/select-call.ts';
import { treeRows } from '../trees/tree-rows.ts';
import type { CallRows } from './call-rows.ts';

interface Parts {
  readonly passages: PassageStore;
  readonly rows: CallRows;
  /** Rows of the index. */
  readonly indexRows: number;
  /** Throws if the index has none. */
  readonly fields: () => LexicalFields;
}

/** The live rows that a call asks for, among the rows of its scope. */
export async function selectRows(
  { ids, query, signal }: SelectCall,
  among: RowBitmap | undefined,
  { passages, rows, indexRows, fields }: Parts,
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
