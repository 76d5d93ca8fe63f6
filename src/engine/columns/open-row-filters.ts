import { RunningCalls } from '../../base/running-calls.ts';
import type { NativeColumn } from '../native/column-functions.ts';
import { type Kernel, searchKernel } from '../native/kernel.ts';
import { referenceRowFilters } from '../reference/reference-row-filters.ts';
import { RowBitmap } from '../row-bitmap.ts';
import { type ColumnSource, columnExtremes, type RowFilters } from './row-filters.ts';

/**
 * Opens the columns of an index with the fastest engine of this machine; both find the same rows.
 *
 * @param rows of the index.
 * @throws TrawlError INDEX_FILE_MISSING or INDEX_FILE_FOREIGN, naming the file.
 */
export async function openRowFilters(sources: readonly ColumnSource[], rows: number): Promise<RowFilters> {
  const kernel = searchKernel();
  return kernel === undefined ? referenceRowFilters(sources, rows) : openNativeRowFilters(sources, rows, kernel);
}

/** Filters by the native engine, on its threads over mapped files. @throws as `openRowFilters`. @internal Exported for tests. */
export async function openNativeRowFilters(
  sources: readonly ColumnSource[],
  rows: number,
  kernel: Kernel,
): Promise<RowFilters> {
  const handles: NativeColumn[] = [];
  const closeAll = (): void => {
    for (const handle of handles) kernel.closeColumn(handle);
  };
  try {
    for (const { paths, type } of sources) handles.push(await kernel.openColumn(paths, type));
  } catch (error) {
    closeAll();
    throw error;
  }
  const calls = new RunningCalls('The index is closed.');
  return {
    rows: (test, signal) =>
      calls.run(async () => new RowBitmap(rows, await kernel.filterRows(handles, test, rows, signal))),
    extremes: (column, request) =>
      calls.run(async () => {
        const values = await columnExtremes(sources[column]!.paths, request);
        // Fails if a file was written to since it was opened.
        await kernel.filterRows([handles[column]!], { type: 'exists', column: 0 }, rows);
        return values;
      }),
    close: () => calls.close(closeAll),
  };
}
