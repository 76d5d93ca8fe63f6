import { createHash } from 'node:crypto';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { MAX_EXAMPLES } from '../../corpus/open-corpus.ts';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { syncFolder } from '../../src/base/system/durable-file.ts';
import type { PassagesRecord } from '../../src/index/manifest/build-records.ts';
import { PassageFile } from '../../src/index/passages/passage-file.ts';
import { SqlitePassageWriter } from '../../src/index/passages/sqlite-passage-writer.ts';
import { PASSAGES_FILE } from '../index-files.ts';
import type { Refused } from './row-sources.ts';

/** Rows between two checks of the signal. */
const BLOCK_ROWS = 1_024;

interface PassageSource extends Pick<PassagesRecord, 'sha256' | 'passagesByFile'> {
  readonly path: string;
}

interface Copying {
  readonly isLive: (row: number) => boolean;
  readonly signal?: AbortSignal;
}

/**
 * Copies the live passages of a passage file. The rows are in corpus order.
 *
 * @returns the content hash and the number of live passages of each corpus file.
 */
export function copyPassages(
  { path, sha256: expected, passagesByFile }: PassageSource,
  to: string,
  { isLive, signal }: Copying,
): Pick<PassagesRecord, 'sha256' | 'passagesByFile'> {
  const live = passagesByFile.map(() => 0);
  const file = new PassageFile(path);
  const writer = new SqlitePassageWriter(to);
  const read = createHash('sha256');
  try {
    let fileIndex = 0;
    let end = passagesByFile[0] ?? 0;
    for (const { row, id, line, document } of file.passages()) {
      if (row % BLOCK_ROWS === 0) throwIfCancelled(signal);
      read.update(`${document}\n`);
      while (fileIndex < live.length - 1 && row >= end) end += passagesByFile[++fileIndex]!;
      if (!isLive(row)) continue;
      writer.append({ id, line, document });
      if (fileIndex < live.length) live[fileIndex]!++;
    }
    // Compare before the copy gets its own content hash, or a damaged passage could never be detected again.
    if (read.digest('hex') !== expected) {
      throw new TrawlError(
        'INDEX_FILE_FOREIGN',
        `${path}: the passages changed since they were written (content hash) and are not copied. Restore the file, or build ` +
          'the index again.',
      );
    }
    const sha256 = writer.finishRows();
    writer.finish();
    return { sha256, passagesByFile: live };
  } finally {
    writer.abandon();
    file.close();
  }
}

/**
 * Removes the refused passages from the passage file of a shard, unless an earlier run of the build has.
 *
 * @param stored the record of the passages before. It stays on the disk: by its number of rows, a resumed build sees what is done.
 * @returns the record of the passages that remain.
 */
export async function removeRefused(
  folder: string,
  stored: PassagesRecord,
  { rows: refused, examples }: Refused,
  signal: AbortSignal | undefined,
): Promise<PassagesRecord> {
  if (refused.length === 0) return stored;
  const path = join(folder, PASSAGES_FILE);
  if (readPassages(path).rows === stored.rows) {
    const copy = `${path}.tmp`;
    await rm(copy, { force: true });
    const leftOut = new Set(refused);
    copyPassages({ ...stored, path }, copy, { isLive: (row) => !leftOut.has(row), signal });
    await rename(copy, path);
    await syncFolder(folder);
  }
  let end = 0;
  const passagesByFile = stored.passagesByFile.map((count) => {
    const first = end;
    end += count;
    return count - refused.filter((row) => row >= first && row < end).length;
  });
  return {
    ...readPassages(path),
    passagesByFile,
    skippedLines: stored.skippedLines + refused.length,
    skippedExamples: [...stored.skippedExamples, ...examples].slice(0, MAX_EXAMPLES),
  };
}

function readPassages(path: string): Pick<PassagesRecord, 'rows' | 'rowsWithoutId' | 'sha256'> {
  const file = new PassageFile(path);
  try {
    return { rows: file.rows, rowsWithoutId: file.rows - file.rowsWithId(), sha256: file.sha256! };
  } finally {
    file.close();
  }
}
