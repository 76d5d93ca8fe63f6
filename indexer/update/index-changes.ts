import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CHANGES_FILE, ChangesRecord, readRecord } from '../../src/manifest/build-records.ts';
import { writeFileDurably, writeJsonDurably } from '../../src/manifest/write-json.ts';
import { RowBitmap } from '../../src/vector-index/row-bitmap.ts';
import type { Comparison } from './compare-corpus.ts';

const ADDED_FILE = 'added.bin';
const REMOVED_FILE = 'removed.bin';

/** What a comparison found, kept for a process that goes on with the update. */
export async function saveChanges(folder: string, comparison: Comparison): Promise<void> {
  const { addedPositions, removedRows, ...counts } = comparison;
  await writeFileDurably(join(folder, ADDED_FILE), addedPositions.bytes);
  await writeFileDurably(join(folder, REMOVED_FILE), removedRows.bytes);
  const record: ChangesRecord = {
    ...counts,
    passagesByFile: [...counts.passagesByFile],
    skippedExamples: [...counts.skippedExamples],
    added: addedPositions.count(),
    addedSha256: sha256Of(addedPositions.bytes),
    removedSha256: sha256Of(removedRows.bytes),
  };
  await writeJsonDurably(join(folder, CHANGES_FILE), record);
}

/** What was saved; undefined where there is nothing, or where it is not what was saved. */
export function savedChanges(folder: string, rows: number, positions: number): Comparison | undefined {
  const record = readRecord(ChangesRecord, join(folder, CHANGES_FILE)) ?? undefined;
  if (record === undefined) return undefined;
  const { added: _, addedSha256, removedSha256, ...counts } = record;
  const addedPositions = readBitmap(join(folder, ADDED_FILE), positions, addedSha256);
  const removedRows = readBitmap(join(folder, REMOVED_FILE), rows, removedSha256);
  if (addedPositions === undefined || removedRows === undefined) return undefined;
  return { ...counts, addedPositions, removedRows };
}

function readBitmap(path: string, rows: number, sha256: string): RowBitmap | undefined {
  if (!existsSync(path)) return undefined;
  const bytes = readFileSync(path);
  return bytes.length === Math.ceil(rows / 8) && sha256Of(bytes) === sha256 ? new RowBitmap(rows, bytes) : undefined;
}

function sha256Of(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
