import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeFileDurably, writeJsonDurably } from '../../src/base/system/durable-file.ts';
import { RowBitmap } from '../../src/engine/row-bitmap.ts';
import { CHANGES_FILE, ChangesRecord, readRecord } from '../../src/index/manifest/build-records.ts';
import type { Comparison } from './compare-corpus.ts';

const ADDED_FILE = 'added.bin';
/** All deleted rows after the update. The count `removed` in `CHANGES_FILE` has only those that this update deletes. */
const REMOVED_FILE = 'removed.bin';

/** Saves the result of a comparison for a resumed update. */
export async function saveChanges(folder: string, comparison: Comparison): Promise<void> {
  const { addedPositions, deletedRows, deleted, ...counts } = comparison;
  await writeFileDurably(join(folder, ADDED_FILE), addedPositions.bytes);
  await writeFileDurably(join(folder, REMOVED_FILE), deletedRows.bytes);
  const record: ChangesRecord = {
    ...counts,
    removed: deleted,
    passagesByFile: [...counts.passagesByFile],
    skippedExamples: [...counts.skippedExamples],
    added: addedPositions.count(),
    addedSha256: sha256Of(addedPositions.bytes),
    removedSha256: sha256Of(deletedRows.bytes),
  };
  await writeJsonDurably(join(folder, CHANGES_FILE), record);
}

/** The saved comparison. Undefined if there is none, or if its files changed. */
export function savedChanges(folder: string, rows: number, positions: number): Comparison | undefined {
  const record = readRecord(ChangesRecord, join(folder, CHANGES_FILE)) ?? undefined;
  if (record === undefined) return undefined;
  const { added: _, removed: deleted, addedSha256, removedSha256, ...counts } = record;
  const addedPositions = readBitmap(join(folder, ADDED_FILE), positions, addedSha256);
  const deletedRows = readBitmap(join(folder, REMOVED_FILE), rows, removedSha256);
  if (addedPositions === undefined || deletedRows === undefined) return undefined;
  return { ...counts, deleted, addedPositions, deletedRows };
}

function readBitmap(path: string, rows: number, sha256: string): RowBitmap | undefined {
  if (!existsSync(path)) return undefined;
  const bytes = readFileSync(path);
  return bytes.length === Math.ceil(rows / 8) && sha256Of(bytes) === sha256 ? new RowBitmap(rows, bytes) : undefined;
}

function sha256Of(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
