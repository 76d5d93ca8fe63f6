import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { PassageShard } from '../../../src/index/passages/passage-protocol.ts';
import { type PassageToStore, SqlitePassageWriter } from '../../../src/index/passages/sqlite-passage-writer.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';

/** A finished passage file; returns its content hash. */
export function writePassages(path: string, passages: Iterable<PassageToStore>): string {
  const writer = new SqlitePassageWriter(path);
  try {
    for (const passage of passages) writer.append(passage);
    const sha256 = writer.finishRows();
    writer.finish();
    return sha256;
  } finally {
    writer.abandon();
  }
}

/** Damages pages of a passage file, by default from page 20 on: later than those that SQLite reads when it opens the file. */
export function damagePages(path: string, first = 20, end = Number.POSITIVE_INFINITY): void {
  const bytes = readFileSync(path);
  bytes.fill(0xee, 4096 * first, Math.min(4096 * end, bytes.length));
  writeFileSync(path, bytes);
}

export function documentOf(row: number): string {
  return `{"id":"p-${row}","contents":"passage ${row}"}`;
}

export function* numberedPassages(from: number, to: number): Generator<PassageToStore> {
  for (let row = from; row < to; row++) yield { id: `p-${row}`, line: row + 1, document: documentOf(row) };
}

/** Shards of the given sizes. Their documents are numbered consecutively. */
export async function writeShards(t: TestContext, sizes: readonly number[]): Promise<PassageShard[]> {
  const folder = await tempFolder(t);
  let firstRow = 0;
  return sizes.map((rows, i) => {
    const path = join(folder, `passages-${i}.sqlite`);
    writePassages(path, numberedPassages(firstRow, firstRow + rows));
    firstRow += rows;
    return { path, firstRow: firstRow - rows, rows };
  });
}
