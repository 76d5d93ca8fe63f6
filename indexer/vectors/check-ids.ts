import { TrawlError } from '../../src/base/errors.ts';
import { PassageFile } from '../../src/index/passages/passage-file.ts';

/**
 * Compares the ids of a vector file with those of the passages, row by row. A passage without an id matches any id.
 *
 * @throws TrawlError VECTORS_MISMATCH with the first row that differs.
 */
export function checkIds(ids: readonly string[], passageFiles: readonly string[]): void {
  let row = 0;
  for (const path of passageFiles) {
    const file = new PassageFile(path, { mapped: false });
    try {
      for (const id of file.ids()) {
        if (id !== null && String(id) !== ids[row]) {
          throw new TrawlError(
            'VECTORS_MISMATCH',
            `Row ${row}: the vector file has id ${JSON.stringify(ids[row] ?? null)}, the corpus ${JSON.stringify(String(id))}. ` +
              'Use the corpus that the vectors were made from, in the same order.',
            { details: { row } },
          );
        }
        row++;
      }
    } finally {
      file.close();
    }
  }
}
