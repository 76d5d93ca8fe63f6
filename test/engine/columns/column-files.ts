import { join } from 'node:path';
import { columnValues } from '../../../src/engine/columns/column-values.ts';
import { ColumnWriter } from '../../../src/engine/columns/column-writer.ts';
import type { ColumnSource } from '../../../src/engine/columns/row-filters.ts';
import type { Column } from '../../../src/engine/filter/column.ts';

let written = 0;

/** Writes the columns of some rows in shards of these sizes, which add up to the number of rows. */
export async function writeColumns(
  folder: string,
  rows: readonly object[],
  columns: readonly Column[],
  shardRows: readonly number[] = [rows.length],
): Promise<ColumnSource[]> {
  const sources: ColumnSource[] = [];
  for (const column of columns) {
    const paths: string[] = [];
    let first = 0;
    for (const count of shardRows) {
      const writer = new ColumnWriter(column);
      for (const row of rows.slice(first, first + count)) {
        const values = columnValues(row, column);
        if ('wrong' in values) throw new Error(values.wrong);
        writer.append(values);
      }
      const path = join(folder, `column-${written++}.bin`);
      await writer.finish(path);
      paths.push(path);
      first += count;
    }
    sources.push({ ...column, paths });
  }
  return sources;
}
