import { statSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { type Corpus, MAX_EXAMPLES } from '../../corpus/open-corpus.ts';
import { formatLocation, type Passage, type PassageLocation, type PassageRow } from '../../corpus/passage.ts';
import { likelyIdColumn } from '../../corpus/row-columns.ts';
import type { CorpusScan } from '../../corpus/scan-corpus.ts';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { formatNumberOf, quoteForShell } from '../../src/base/format.ts';
import { syncFolder, writeJsonDurably } from '../../src/base/system/durable-file.ts';
import { fileState, sha256OfFile } from '../../src/base/system/file-checksum.ts';
import { columnValues } from '../../src/engine/columns/column-values.ts';
import type { Column } from '../../src/engine/filter/column.ts';
import { PASSAGES_RECORD_FILE, type PassagesRecord } from '../../src/index/manifest/build-records.ts';
import { readShardManifest } from '../../src/index/manifest/read-manifest.ts';
import type { CorpusRecord } from '../../src/index/manifest/schemas.ts';
import { parseIntegers } from '../../src/index/passages/exact-numbers.ts';
import { SqlitePassageWriter } from '../../src/index/passages/sqlite-passage-writer.ts';
import { PASSAGES_FILE } from '../index-files.ts';
import type { Build } from './build.ts';
import { type ShardPlan, type StoredShard, storedPassages } from './planned-shard.ts';

/** Passages between two progress reports. Each report also checks the signal. */
const REPORT_EVERY = 2_000;

/** Record of a corpus file in a manifest, without its number of passages. */
export type CorpusFileRecord = Readonly<Omit<CorpusRecord['files'][number], 'passages'>>;

/**
 * Writes the passages of all shards to their passage files, in one pass over the corpus. Runs before embedding, so that a bad
 * line at the end of the corpus is reported in minutes, not after hours, and the number of rows is known. Skips shards with
 * stored passages; starts over with a shard that an earlier run filled only in part.
 *
 * @returns the corpus files for the manifests.
 * @throws TrawlError CORPUS_BAD_LINE, CORPUS_CHANGED, TEMPLATE_INVALID or CANCELLED.
 */
export async function storePassages(
  { corpus: whole, template, columns, onProgress, onNote, signal }: Build,
  { scan, places, only }: ShardPlan,
): Promise<readonly CorpusFileRecord[]> {
  onProgress({ stage: 'read', passages: 0, readShare: 0 });
  const missing = places.filter(({ folder }) => storedPassages(folder) === undefined);
  const [start, end] = [missing[0]?.first ?? 0, missing.at(-1)?.end ?? 0];
  const bases = firstPositions(scan);
  const positionOf = (fileIndex: number, line: number): number => (bases[fileIndex] ?? 0) + line - 1;
  const skips = missing.map(() => ({ skippedLines: 0, skippedExamples: [] as string[] }));
  const corpus = whole.with({
    part: scan && { scan, first: start, end },
    onSkipped: (fileIndex, line, message) => {
      const position = positionOf(fileIndex, line);
      const skip = skips[missing.findIndex((shard) => position >= shard.first && position < shard.end)];
      if (skip === undefined) return;
      skip.skippedLines++;
      if (skip.skippedExamples.length < MAX_EXAMPLES) skip.skippedExamples.push(message);
    },
  });
  const passages = corpus[Symbol.asyncIterator]();
  let next: IteratorResult<Passage> | undefined;
  let writer: SqlitePassageWriter | undefined;
  let read = 0;
  let isWarned = false;
  const unseen = new Set(columns);
  try {
    for (const [i, shard] of missing.entries()) {
      writer = await openWriter(shard.folder);
      const passagesByFile: number[] = [];
      next ??= await passages.next();
      for (; next.done !== true; next = await passages.next()) {
        const { id, document, row, location, fileIndex } = next.value;
        const position = positionOf(fileIndex, location.line);
        if (position >= shard.end) break;
        if (only?.has(position) === false) continue;
        if (id === null && !isWarned) {
          isWarned = true;
          noteMissingId(row, location, onNote);
        }
        // Report a missing column now: the texts are embedded much later.
        template(row, location);
        checkColumns(document, location, columns, unseen);
        // Earlier positions belong to a shard between the missing ones, which has its passages already.
        if (position >= shard.first) {
          writer.append({ id, line: location.line, document });
          passagesByFile[fileIndex] = (passagesByFile[fileIndex] ?? 0) + 1;
        }
        if (++read % REPORT_EVERY !== 0) continue;
        throwIfCancelled(signal);
        const share = scan === undefined ? bytesShare(corpus) : (position + 1 - start) / (end - start);
        onProgress({ stage: 'read', passages: read, readShare: share });
      }
      if (next.done === true && scan !== undefined) await checkCorpusUnchanged(scan);
      const sha256 = writer.finishRows();
      writer.finish();
      await syncFolder(shard.folder);
      const { rows, rowsWithoutId } = writer;
      const counts = { passagesByFile: Array.from(passagesByFile, (count) => count ?? 0), ...skips[i]! };
      const record: PassagesRecord = { rows, rowsWithoutId, sha256, ...counts };
      await writeJsonDurably(join(shard.folder, PASSAGES_RECORD_FILE), record);
    }
  } finally {
    writer?.abandon();
    await passages.return?.();
  }
  if (read > 0 && unseen.size > 0) {
    const names = Array.from(unseen, ({ name }) => JSON.stringify(name)).join(', ');
    onNote(
      `Warning: none of ${formatNumberOf(read, 'passage')} has a value in the column ${names}. A column with the text or the title of a ` +
        'passage is stored as text, contents or title.',
    );
  }
  if (missing.length > 0) {
    const rows = places.reduce((sum, { folder }) => sum + storedPassages(folder)!.rows, 0);
    onProgress({ stage: 'read', passages: rows, totalPassages: rows, readShare: 1 });
  }
  if (scan !== undefined) return fileRecords(scan);
  // A pipe was hashed while it was read.
  return corpus.report.files.map(({ path, readBytes, sha256 }) => ({
    name: basename(path),
    bytes: readBytes,
    sha256: sha256!,
  }));
}

/** Judgements, clients and removals name passages by their ids, so a column that was not recognised must not go unnoticed. */
function noteMissingId(row: PassageRow, location: PassageLocation, onNote: (text: string) => void): void {
  const likely = likelyIdColumn(row);
  if (likely === undefined) return;
  onNote(
    `Warning: ${formatLocation(location)} has no id, but the column ${JSON.stringify(likely)} looks like one. If it is, stop this build, and ` +
      `begin again with --id-column ${quoteForShell(likely)}.`,
  );
}

async function openWriter(folder: string): Promise<SqlitePassageWriter> {
  await mkdir(folder, { recursive: true });
  const path = join(folder, PASSAGES_FILE);
  await rm(path, { force: true });
  return new SqlitePassageWriter(path);
}

/** The planned shards with their rows. Each has stored passages or is complete. */
export function storedShards({ places, firstRow = 0 }: ShardPlan): StoredShard[] {
  let next = firstRow;
  return places.map((place) => {
    const { rows } = storedPassages(place.folder) ?? readShardManifest(place.folder);
    next += rows;
    return { ...place, rows, firstRow: next - rows };
  });
}

export function fileRecords(scan: CorpusScan): readonly CorpusFileRecord[] {
  return scan.files.map(({ path, sizeBytes, sha256 }) => ({ name: basename(path), bytes: sizeBytes, sha256 }));
}

/** Removes the columns with a value from `unseen`. @throws TrawlError CORPUS_BAD_LINE for a value of another type than its column's. */
function checkColumns(
  document: string,
  location: PassageLocation,
  columns: readonly Column[],
  unseen: Set<Column>,
): void {
  if (columns.length === 0) return;
  const row = parseIntegers(document);
  for (const column of columns) {
    const values = columnValues(row, column);
    if (!('wrong' in values)) {
      if (values.length > 0) unseen.delete(column);
      continue;
    }
    throw new TrawlError(
      'CORPUS_BAD_LINE',
      `${formatLocation(location)}: the column ${values.wrong}. Correct the value, or declare another type with --column.`,
      { details: { ...location, column: column.name } },
    );
  }
}

/** The input position of the first line of each file. */
export function firstPositions(scan: CorpusScan | undefined): number[] {
  if (scan === undefined) return [];
  const bases = [0];
  for (const { positions } of scan.files) bases.push(bases.at(-1)! + positions);
  return bases;
}

function bytesShare({ report: { readBytes, sizeBytes } }: Corpus): number {
  return sizeBytes === 0 ? 1 : readBytes / sizeBytes;
}

/** @throws TrawlError CORPUS_CHANGED if a file changed since the scan: the checksums would not match the passages. */
export async function checkCorpusUnchanged(scan: CorpusScan): Promise<void> {
  for (const { path, sizeBytes, sha256, state } of scan.files) {
    if (fileState(path) === state) continue;
    const { size } = statSync(path);
    if (size === sizeBytes && (await sha256OfFile(path)) === sha256) continue;
    throw new TrawlError(
      'CORPUS_CHANGED',
      `${path} changed while it was read (${sizeBytes} bytes, now ${size}). Run the command again when no other program ` +
        'writes the file.',
      { details: { path } },
    );
  }
}
