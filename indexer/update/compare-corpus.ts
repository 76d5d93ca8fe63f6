import { rm } from 'node:fs/promises';
import { setImmediate } from 'node:timers/promises';
import { MAX_EXAMPLES } from '../../corpus/corpus-report.ts';
import { type CorpusOptions, openCorpus } from '../../corpus/open-corpus.ts';
import type { CorpusScan } from '../../corpus/scan-corpus.ts';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { RowBitmap } from '../../src/engine/row-bitmap.ts';
import type { UpdateType } from '../../src/index/manifest/build-records.ts';
import { PassageFile } from '../../src/index/passages/passage-file.ts';
import type { IndexDirectory } from '../../src/search/opening/index-directory.ts';
import type { OnProgress } from '../build-events.ts';
import { makeFolder } from '../building/output-folder.ts';
import { checkCorpusUnchanged, firstPositions } from '../building/store-passages.ts';
import { type BucketRecords, bucketCount, ContentBuckets, RECORD_BYTES } from './content-buckets.ts';

/** Passages between two progress reports. Each report also checks the signal. */
const REPORT_EVERY = 5_000;

export interface CompareOptions {
  readonly type: UpdateType;
  readonly corpus: readonly string[];
  readonly corpusOptions: CorpusOptions;
  /** A folder for up to `comparisonBytes` of temporary files. Created, and removed at the end. */
  readonly scratch: string;
  readonly onProgress: OnProgress;
  readonly signal?: AbortSignal;
}

/** The changes that bring an index up to a corpus. */
export interface Comparison {
  /** Passages of the corpus that the index has. */
  readonly kept: number;
  /** Kept passages whose rows were deleted and become live again. */
  readonly restored: number;
  /** Live rows to be deleted. */
  readonly deleted: number;
  readonly passagesByFile: readonly number[];
  readonly skippedLines: number;
  readonly skippedExamples: readonly string[];
  /** Input positions of the passages that the index lacks. */
  readonly addedPositions: RowBitmap;
  /** All deleted rows after the update. */
  readonly deletedRows: RowBitmap;
}

/** Size of the temporary files of `compareCorpus`. */
export function comparisonBytes(rows: number, positions: number): number {
  return (rows + positions) * RECORD_BYTES;
}

/**
 * Finds which passages of a corpus an index has. Passages are equal if their documents are equal byte for byte, because the
 * documents determine the embedded text. Repeated passages are counted: with three in the corpus and two in the index, one is
 * added. Prefers live rows to deleted ones and lower rows to higher ones, so the result depends only on index and corpus.
 *
 * @throws TrawlError CORPUS_BAD_LINE, CORPUS_CHANGED, CANCELLED; errors of reading the passage files.
 */
export async function compareCorpus(
  directory: IndexDirectory,
  scan: CorpusScan,
  options: CompareOptions,
): Promise<Comparison> {
  const { type, scratch, onProgress } = options;
  const { rows } = directory.manifest;
  const total = rows + scan.positions;
  const report = (done: number): void => {
    throwIfCancelled(options.signal);
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
    const read = await addCorpus(fresh, scan, options, (done) => report(rows + done));
    const deletedRows = directory.liveRows?.complement() ?? new RowBitmap(rows);
    const addedPositions = new RowBitmap(scan.positions);
    let [kept, restored, deleted] = [0, 0, 0];
    for (let bucket = 0; bucket < buckets; bucket++) {
      await setImmediate();
      throwIfCancelled(options.signal);
      const found = match(old.read(bucket), fresh.read(bucket), { type, deletedRows, addedPositions });
      kept += found.kept;
      restored += found.restored;
      deleted += found.deleted;
    }
    return { kept, restored, deleted, ...read, addedPositions, deletedRows };
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
    const file = new PassageFile(path, { mapped: false });
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
  { corpus, corpusOptions, signal }: CompareOptions,
  report: (done: number) => void,
): Promise<Pick<Comparison, 'passagesByFile' | 'skippedLines' | 'skippedExamples'>> {
  const bases = firstPositions(scan);
  const passagesByFile = scan.files.map(() => 0);
  const skippedExamples: string[] = [];
  let [read, skippedLines] = [0, 0];
  const passages = openCorpus(corpus, {
    ...corpusOptions,
    signal,
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
  checkCorpusUnchanged(scan);
  buckets.finish();
  return { passagesByFile, skippedLines, skippedExamples };
}

/** Compares the records of a bucket and updates the two bitmaps. */
function match(
  old: BucketRecords,
  fresh: BucketRecords,
  { type, deletedRows, addedPositions }: { type: UpdateType; deletedRows: RowBitmap; addedPositions: RowBitmap },
): { kept: number; restored: number; deleted: number } {
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
  let [kept, restored, deleted] = [0, 0, 0];
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
  if (type === 'append') return { kept, restored, deleted };
  for (const head of first.values()) {
    for (let record = head; record >= 0; record = next[record]!) {
      const row = old.number(record);
      if (deletedRows.has(row)) continue;
      deletedRows.add(row);
      deleted++;
    }
  }
  return { kept, restored, deleted };
}
