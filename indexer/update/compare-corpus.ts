import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { MAX_EXAMPLES } from '../../corpus/open-corpus.ts';
import type { CorpusScan } from '../../corpus/scan-corpus.ts';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { writeFileDurably, writeJsonDurably } from '../../src/base/system/durable-file.ts';
import { RowBitmap } from '../../src/engine/row-bitmap.ts';
import { CHANGES_FILE, ChangesRecord, readRecord, type UpdateType } from '../../src/index/manifest/build-records.ts';
import { PassageFile } from '../../src/index/passages/passage-file.ts';
import type { IndexDirectory } from '../../src/search/opening/index-directory.ts';
import type { Build } from '../building/build.ts';
import { makeFolder } from '../building/output-folder.ts';
import { checkCorpusUnchanged, firstPositions } from '../building/store-passages.ts';
import type { UpdateBuild } from './claim-update.ts';
import { type BucketRecords, bucketCount, ContentBuckets, RECORD_BYTES } from './content-buckets.ts';

/** Passages between two progress reports. Each report also checks the signal. */
const REPORT_EVERY = 5_000;

const ADDED_FILE = 'added.bin';
/** All deleted rows after the update. The count `removed` in `CHANGES_FILE` has only those that this update deletes. */
const REMOVED_FILE = 'removed.bin';

/** The changes that bring an index up to a corpus. `ChangesRecord` documents the counts. */
export interface Comparison extends Omit<ChangesRecord, 'added' | 'addedSha256' | 'removedSha256'> {
  /** Input positions of the passages that the index lacks. */
  readonly addedPositions: RowBitmap;
  /** All deleted rows after the update. */
  readonly deletedRows: RowBitmap;
}

export function comparisonBytes(rows: number, positions: number): number {
  return (rows + positions) * RECORD_BYTES;
}

/**
 * Finds which passages of a corpus an index has. Passages are equal if their documents are equal byte for byte, because the
 * documents determine the embedded text. Repeated passages are counted: with three in the corpus and two in the index, one is
 * added. Prefers live rows to deleted ones and lower rows to higher ones, so the result depends only on index and corpus.
 *
 * @param scratch a folder for up to `comparisonBytes` of temporary files. Created, and removed at the end.
 * @throws TrawlError CORPUS_BAD_LINE, CORPUS_CHANGED, CANCELLED; errors of reading the passage files.
 */
export async function compareCorpus(
  directory: IndexDirectory,
  scan: CorpusScan,
  build: UpdateBuild,
  scratch: string,
): Promise<Comparison> {
  const { type, onProgress, signal } = build;
  const { rows } = directory.manifest;
  const total = rows + scan.positions;
  const report = (done: number): void => {
    throwIfCancelled(signal);
    onProgress({ stage: 'compare', passages: done, readShare: total === 0 ? 1 : done / total });
  };
  report(0);
  await makeFolder(scratch);
  const buckets = bucketCount(Math.max(rows, scan.positions));
  const open: ContentBuckets[] = [];
  try {
    const old = new ContentBuckets(scratch, 'rows', buckets);
    open.push(old);
    await addRows(old, directory, report);
    const fresh = new ContentBuckets(scratch, 'corpus', buckets);
    open.push(fresh);
    const read = await addCorpus(fresh, scan, build, (done) => report(rows + done));
    const deletedRows = directory.liveRows?.complement() ?? new RowBitmap(rows);
    const addedPositions = new RowBitmap(scan.positions);
    let [kept, restored, removed] = [0, 0, 0];
    for (let bucket = 0; bucket < buckets; bucket++) {
      await setImmediate();
      throwIfCancelled(signal);
      const found = match(old.read(bucket), fresh.read(bucket), { type, deletedRows, addedPositions });
      kept += found.kept;
      restored += found.restored;
      removed += found.removed;
    }
    return { kept, restored, removed, ...read, addedPositions, deletedRows };
  } finally {
    for (const buckets of open) buckets.close();
    await rm(scratch, { recursive: true, force: true });
  }
}

async function addRows(
  buckets: ContentBuckets,
  { passages }: IndexDirectory,
  report: (done: number) => void,
): Promise<void> {
  for (const { path, firstRow } of passages) {
    const file = new PassageFile(path);
    const documents = file.documents();
    try {
      let row = firstRow;
      for (const document of documents) {
        buckets.add(document, row++);
        if (row % REPORT_EVERY !== 0) continue;
        await setImmediate();
        report(row);
      }
    } finally {
      // SQLite cannot close a file while a query is running.
      documents.return();
      file.close();
    }
  }
  buckets.finish();
}

async function addCorpus(
  buckets: ContentBuckets,
  scan: CorpusScan,
  { corpus }: Build,
  report: (done: number) => void,
): Promise<Pick<Comparison, 'passagesByFile' | 'skippedLines' | 'skippedExamples'>> {
  const bases = firstPositions(scan);
  const passagesByFile = scan.files.map(() => 0);
  const skippedExamples: string[] = [];
  let [read, skippedLines] = [0, 0];
  const passages = corpus.with({
    part: { scan, first: 0, end: scan.positions },
    onSkipped: (_file, _line, message) => {
      skippedLines++;
      if (skippedExamples.length < MAX_EXAMPLES) skippedExamples.push(message);
    },
  });
  for await (const { document, location, fileIndex } of passages) {
    const position = bases[fileIndex]! + location.line - 1;
    buckets.add(document, position);
    passagesByFile[fileIndex]!++;
    if (++read % REPORT_EVERY === 0) report(position);
  }
  await checkCorpusUnchanged(scan);
  buckets.finish();
  return { passagesByFile, skippedLines, skippedExamples };
}

/** Compares the records of a bucket and updates the two bitmaps. */
function match(
  old: BucketRecords,
  fresh: BucketRecords,
  { type, deletedRows, addedPositions }: { type: UpdateType; deletedRows: RowBitmap; addedPositions: RowBitmap },
): Pick<Comparison, 'kept' | 'restored' | 'removed'> {
  // A linked list of rows for each content: live rows before deleted ones, lower rows first.
  const first = new Map<string, number>();
  const next = new Int32Array(old.count).fill(-1);
  for (const isDeleted of [true, false]) {
    for (let record = old.count - 1; record >= 0; record--) {
      if (deletedRows.has(old.number(record)) !== isDeleted) continue;
      const content = old.content(record);
      next[record] = first.get(content) ?? -1;
      first.set(content, record);
    }
  }
  let [kept, restored, removed] = [0, 0, 0];
  for (let record = 0; record < fresh.count; record++) {
    const content = fresh.content(record);
    const found = first.get(content) ?? -1;
    if (found < 0) {
      addedPositions.add(fresh.number(record));
      continue;
    }
    first.set(content, next[found]!);
    kept++;
    const row = old.number(found);
    if (!deletedRows.has(row)) continue;
    deletedRows.delete(row);
    restored++;
  }
  if (type === 'append') return { kept, restored, removed };
  for (const head of first.values()) {
    for (let record = head; record >= 0; record = next[record]!) {
      const row = old.number(record);
      if (deletedRows.has(row)) continue;
      deletedRows.add(row);
      removed++;
    }
  }
  return { kept, restored, removed };
}

export async function saveChanges(folder: string, comparison: Comparison): Promise<void> {
  const { addedPositions, deletedRows, ...counts } = comparison;
  await writeFileDurably(join(folder, ADDED_FILE), addedPositions.bytes);
  await writeFileDurably(join(folder, REMOVED_FILE), deletedRows.bytes);
  const record: ChangesRecord = {
    ...counts,
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
  const { added: _, addedSha256, removedSha256, ...counts } = record;
  const addedPositions = readBitmap(join(folder, ADDED_FILE), positions, addedSha256);
  const deletedRows = readBitmap(join(folder, REMOVED_FILE), rows, removedSha256);
  if (addedPositions === undefined || deletedRows === undefined) return undefined;
  return { ...counts, addedPositions, deletedRows };
}

function readBitmap(path: string, rows: number, sha256: string): RowBitmap | undefined {
  if (!existsSync(path)) return undefined;
  const bytes = readFileSync(path);
  return bytes.length === Math.ceil(rows / 8) && sha256Of(bytes) === sha256 ? new RowBitmap(rows, bytes) : undefined;
}

function sha256Of(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
