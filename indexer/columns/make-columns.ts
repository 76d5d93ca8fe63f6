import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { columnValues } from '../../src/engine/columns/column-values.ts';
import { ColumnWriter } from '../../src/engine/columns/column-writer.ts';
import type { Column } from '../../src/engine/filter/column.ts';
import type { FileRecord } from '../../src/index/manifest/schemas.ts';
import type { ShardColumn } from '../../src/index/manifest/shard-manifest.ts';
import { parseIntegers } from '../../src/index/passages/exact-numbers.ts';
import { PassageFile } from '../../src/index/passages/passage-file.ts';
import { columnFile, fileRecord } from '../index-files.ts';

/** Rows between two pauses, in which process signals are handled. */
const BLOCK_ROWS = 1_024;

/**
 * Makes the files of columns from the stored passages of a shard. Each is written under a temporary name and renamed when it is
 * complete. The bytes depend only on the passages and the columns.
 *
 * @param inUse names of files that are not written.
 * @throws TrawlError CORPUS_BAD_LINE for a value of another type, DISK_FULL, OUTPUT_NOT_WRITABLE, CANCELLED, errors of the passage
 * file.
 */
export async function makeColumns(
  folder: string,
  passagesPath: string,
  columns: readonly Column[],
  { inUse = new Set(), signal }: { readonly inUse?: ReadonlySet<string>; readonly signal?: AbortSignal },
): Promise<{ columns: ShardColumn[]; files: FileRecord[] }> {
  if (columns.length === 0) return { columns: [], files: [] };
  const writers = columns.map((column) => ({ column, writer: new ColumnWriter(column) }));
  const passages = new PassageFile(passagesPath);
  try {
    for (let first = 0; first < passages.rows; first += BLOCK_ROWS) {
      await setImmediate();
      throwIfCancelled(signal);
      for (const [i, document] of passages.range(first, BLOCK_ROWS).entries()) {
        const row = parseIntegers(document);
        for (const { column, writer } of writers) {
          const values = columnValues(row, column);
          if ('wrong' in values) throw wrongValue(passagesPath, passages.line(first + i), values.wrong);
          writer.append(values);
        }
      }
    }
  } finally {
    passages.close();
  }
  const made: ShardColumn[] = [];
  const files: FileRecord[] = [];
  let number = 0;
  for (const { column, writer } of writers) {
    while (inUse.has(columnFile(number))) number++;
    const name = columnFile(number++);
    const path = join(folder, name);
    const temporary = `${path}.tmp`;
    try {
      const counts = await writer.finish(temporary);
      await rename(temporary, path);
      made.push({ name: column.name, type: column.type, path: name, ...counts });
    } finally {
      await rm(temporary, { force: true });
    }
    files.push(await fileRecord(path, signal));
  }
  return { columns: made, files };
}

/** A build has checked the values already; columns that are added later are checked here. */
function wrongValue(passagesPath: string, line: number, wrong: string): TrawlError {
  return new TrawlError(
    'CORPUS_BAD_LINE',
    `${passagesPath}, the passage of line ${line} of its corpus file: the column ${wrong}. Declare another type with --column, or ` +
      'correct the corpus and build the index again.',
    { details: { line } },
  );
}
