import { environmentVariable } from '../../base/options/resolve-options.ts';
import { loadKernel } from '../native/kernel.ts';
import { ReferenceRowFilters } from '../reference/reference-row-filters.ts';
import { NativeRowFilters } from './native-row-filters.ts';
import type { ColumnSource, RowFilters } from './row-filters.ts';

/**
 * Opens the columns of an index with the fastest engine of this machine; both find the same rows. `TRAWL_ISA=reference` chooses
 * TypeScript.
 *
 * @throws TrawlError INDEX_FILE_MISSING or INDEX_FILE_FOREIGN, naming the file.
 */
export async function openRowFilters(sources: readonly ColumnSource[], rows: number): Promise<RowFilters> {
  const loaded = environmentVariable('TRAWL_ISA') === 'reference' ? undefined : loadKernel();
  return loaded?.ok === true
    ? await NativeRowFilters.open(sources, rows, loaded.kernel)
    : new ReferenceRowFilters(sources, rows);
}
