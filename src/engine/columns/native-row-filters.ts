import { RunningCalls } from '../../base/running-calls.ts';
import type { RowTest, StoredValue } from '../filter/bind-filter.ts';
import type { Column } from '../filter/column.ts';
import type { NativeColumn } from '../native/column-functions.ts';
import type { Kernel } from '../native/kernel.ts';
import { RowBitmap } from '../row-bitmap.ts';
import { columnExtremes, type ExtremesRequest } from './column-extremes.ts';
import type { ColumnSource, RowFilters } from './row-filters.ts';

/** Filters by the native engine, on its threads over mapped files. */
export class NativeRowFilters implements RowFilters {
  readonly columns: readonly Column[];
  readonly #sources: readonly ColumnSource[];
  readonly #kernel: Kernel;
  readonly #handles: readonly NativeColumn[];
  readonly #rows: number;
  readonly #calls = new RunningCalls('The index is closed.');

  private constructor(
    sources: readonly ColumnSource[],
    rows: number,
    kernel: Kernel,
    handles: readonly NativeColumn[],
  ) {
    this.columns = sources.map(({ name, type }) => ({ name, type }));
    this.#sources = sources;
    this.#kernel = kernel;
    this.#handles = handles;
    this.#rows = rows;
  }

  /**
   * @param rows of the index.
   * @throws TrawlError INDEX_FILE_MISSING or INDEX_FILE_FOREIGN, naming the file.
   */
  static async open(sources: readonly ColumnSource[], rows: number, kernel: Kernel): Promise<NativeRowFilters> {
    const handles: NativeColumn[] = [];
    try {
      for (const { paths, type } of sources) handles.push(await kernel.openColumn(paths, type));
    } catch (error) {
      for (const handle of handles) kernel.closeColumn(handle);
      throw error;
    }
    return new NativeRowFilters(sources, rows, kernel, handles);
  }

  rows(test: RowTest, signal?: AbortSignal): Promise<RowBitmap> {
    return this.#calls.run(async () => {
      const bytes = await this.#kernel.filterRows(this.#handles, test, this.#rows, signal);
      return new RowBitmap(this.#rows, bytes);
    });
  }

  extremes(column: number, request: ExtremesRequest): Promise<readonly (StoredValue | undefined)[]> {
    return this.#calls.run(() => columnExtremes(this.#sources[column]!.paths, request));
  }

  close(): Promise<void> {
    return this.#calls.close(() => {
      for (const handle of this.#handles) this.#kernel.closeColumn(handle);
    });
  }
}
