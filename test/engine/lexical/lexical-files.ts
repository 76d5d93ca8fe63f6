import { join } from 'node:path';
import type { EngineSource, LexicalResult } from '../../../src/engine/lexical/lexical-index.ts';
import type { EngineAnalyser } from '../../../src/engine/lexical/lexical-settings.ts';
import { openLexicalWriter } from '../../../src/engine/lexical/open-lexical.ts';
import type { Kernel } from '../../../src/engine/native/kernel.ts';
import { RowBitmap } from '../../../src/engine/row-bitmap.ts';

export interface WrittenCorpus {
  readonly analyser?: EngineAnalyser;
  /** Rows of each shard. Default: one shard. */
  readonly shardRows?: readonly number[];
  /** Deleted rows. */
  readonly deleted?: readonly number[];
}

/** Writes the inverted indexes of a corpus. Text i is row i. */
export async function writeLexical(
  folder: string,
  texts: readonly string[],
  kernel: Kernel | undefined,
  { analyser = 'standard', shardRows = [texts.length], deleted = [] }: WrittenCorpus = {},
): Promise<EngineSource> {
  const write = async (name: string, rows: readonly string[]): Promise<string> => {
    const path = join(folder, name);
    const writer = openLexicalWriter(path, analyser, kernel);
    // Calls of 50 texts: their size must not matter.
    for (let at = 0; at < rows.length; at += 50) await writer.append(rows.slice(at, at + 50));
    await writer.finish();
    return path;
  };
  const shards: { path: string; firstRow: number; rows: number }[] = [];
  let firstRow = 0;
  for (const [i, rows] of shardRows.entries()) {
    const path = await write(`shard-${i}.bm25`, texts.slice(firstRow, firstRow + rows));
    shards.push({ path, firstRow, rows });
    firstRow += rows;
  }
  if (deleted.length === 0) return { analyser, shards };
  const liveRows = new RowBitmap(texts.length).complement();
  for (const row of deleted) liveRows.delete(row);
  const path = await write(
    'deleted.bm25',
    deleted.map((row) => texts[row]!),
  );
  return { analyser, shards, deleted: path, liveRows };
}

/** Rows and bits of the scores of each query. */
export function lexicalHits({ counts, rows, scores }: LexicalResult): { row: number; bits: number }[][] {
  const k = counts.length === 0 ? 0 : rows.length / counts.length;
  const bits = new Uint32Array(scores.buffer, scores.byteOffset, scores.length);
  return [...counts].map((count, q) =>
    Array.from({ length: count }, (_, i) => ({ row: rows[q * k + i]!, bits: bits[q * k + i]! })),
  );
}
