import { TrawlError } from '../../src/errors.ts';
import { PassageFile } from '../../src/passages/passage-file.ts';

/**
 * Compares the ids that a file of vectors has with those of the passages, row by row.
 *
 * @throws TrawlError VECTORS_MISMATCH naming the first row that differs.
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
            `Row ${row}: the vectors are of the passage with id ${JSON.stringify(ids[row] ?? null)}, the corpus has ` +
              `${JSON.stringify(String(id))} there. Bring the corpus into the order of the vectors, or name the one they were made from.`,
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
