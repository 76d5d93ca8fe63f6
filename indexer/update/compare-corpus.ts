import { rm } from 'node:fs/promises';
import { setImmediate } from 'node:timers/promises';
import { MAX_EXAMPLES } from '../../corpus/corpus-report.ts';
import { type CorpusOptions, openCorpus } from '../../corpus/open-corpus.ts';
import type { CorpusScan } from '../../corpus/scan-corpus.ts';
import { throwIfCancelled } from '../../src/abort.ts';
import type { UpdateKind } from '../../src/manifest/build-records.ts';
import { PassageFile } from '../../src/passages/passage-file.ts';
import type { IndexDirectory } from '../../src/retrieval/index-directory.ts';
import { RowBitmap } from '../../src/vector-index/row-bitmap.ts';
import { makeFolder } from '../build/output-folder.ts';
import { checkUnchanged, firstPositions } from '../build/store-passages.ts';
import type { OnProgress } from '../build-events.ts';
import { type BucketRecords, bucketCount, ContentBuckets, RECORD_BYTES } from './content-buckets.ts';

/** Passages between two progress reports and looks at the signal. */
const REPORT_EVERY = 5_000;

export interface CompareOptions {
  readonly kind: UpdateKind;
  readonly corpus: readonly string[];
  readonly corpusOptions: CorpusOptions;
  /** Made, filled with up to `comparisonBytes`, and removed. */
  readonly scratch: string;
  readonly onProgress: OnProgress;
  readonly signal?: AbortSignal | undefined;
}

/** What has to be done to an index so that it holds a corpus. */
export interface Comparison {
  /** Passages of the corpus that the index has, and of these how many it had removed. */
  readonly kept: number;
  readonly restored: number;
  /** Rows that are removed now and were not. */
  readonly removed: number;
  readonly passagesByFile: readonly number[];
  readonly skippedLines: number;
  readonly skippedExamples: readonly string[];
  /** Input positions of the passages that the index lacks. */
  readonly addedPositions: RowBitmap;
  /** All rows of the index that are removed then. */
  readonly removedRows: RowBitmap;
}

/** Bytes on the disk while an index and a corpus are compared. */
export function comparisonBytes(rows: number, positions: number): number {
  return (rows + positions) * RECORD_BYTES;
}

/**
 * Finds which passages of a corpus an index has. Passages are equal where their documents are, byte for byte: the text
 * that is embedded follows from that. Equal ones are counted: of three in the corpus and two in the index one is added, the
 * last. Rows that are there are kept before removed ones come back, lower ones before higher ones, so the outcome follows
 * from index and corpus alone.
 *
 * @throws TrawlError CORPUS_BAD_LINE, CORPUS_CHANGED, CANCELLED; errors of reading the passage files.
 */
export async function compareCorpus(
  directory: IndexDirectory,
  scan: CorpusScan,
  options: CompareOptions,
): Promise<Comparison> {
  const { kind, scratch, onProgress } = options;
  const { rows } = directory.source;
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
    const removedRows = directory.source.alive?.complement() ?? new RowBitmap(rows);
    const addedPositions = new RowBitmap(scan.positions);
    let [kept, restored, removed] = [0, 0, 0];
    for (let bucket = 0; bucket < buckets; bucket++) {
      await setImmediate();
      throwIfCancelled(options.signal);
      const found = match(old.read(bucket), fresh.read(bucket), { kind, removedRows, addedPositions });
      kept += found.kept;
      restored += found.restored;
      removed += found.removed;
    }
    return { kept, restored, removed, ...read, addedPositions, removedRows };
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
      // A file with a walk under way cannot be closed.
      documents.return?.();
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
  checkUnchanged(scan);
  buckets.finish();
  return { passagesByFile, skippedLines, skippedExamples };
}

/** Matches what one bucket holds, and notes the outcome in the two bitmaps. */
function match(
  old: BucketRecords,
  fresh: BucketRecords,
  { kind, removedRows, addedPositions }: { kind: UpdateKind; removedRows: RowBitmap; addedPositions: RowBitmap },
): { kept: number; restored: number; removed: number } {
  // For each content a list of the rows that have it, those that are there first.
  const first = new Map<string, number>();
  const next = new Int32Array(old.count).fill(-1);
  for (const isRemoved of [true, false]) {
    for (let record = old.count - 1; record >= 0; record--) {
      if (removedRows.has(old.number(record)) !== isRemoved) continue;
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
    if (!removedRows.has(row)) continue;
    removedRows.delete(row);
    restored++;
  }
  if (kind === 'append') return { kept, restored, removed };
  for (const head of first.values()) {
    for (let record = head; record >= 0; record = next[record]!) {
      const row = old.number(record);
      if (removedRows.has(row)) continue;
      removedRows.add(row);
      removed++;
    }
  }
  return { kept, restored, removed };
}
