import { existsSync, rmSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { asTrawlError, TrawlError, usageError } from '../../src/base/errors.ts';
import { inOrder } from '../../src/base/in-order.ts';
import { CheckpointedFile, publishPartial } from '../../src/base/system/checkpointed-file.ts';
import { syncFolder } from '../../src/base/system/durable-file.ts';
import { sha256OfFile } from '../../src/base/system/file-checksum.ts';
import { differences, type OutputSettings, reportPath } from '../../src/base/system/output-report.ts';
import { partialOf } from '../../src/base/system/partial-file.ts';
import { failedAt, SearchFailure } from '../../src/search/calls/query-errors.ts';
import type { SearchSource } from '../../src/search/retriever.ts';
import { type LoadCounts, loadQueries, type QuerySource } from './load-queries.ts';
import { type BatchSettings, mineBatch, type QueryOutcome } from './mine-batch.ts';
import type { MiningOrigin } from './mined-query.ts';
import { MiningReport, type ReportState } from './mining-report.ts';
import type { RecordSource } from './record-source.ts';
import {
  checkRowFile,
  haveRowFiles,
  openRowFiles,
  originsPath,
  type RowBytes,
  type RowCheckpoint,
} from './row-files.ts';
import { ROW_FORMATS, type RowFormatName } from './row-formats.ts';
import { type StoredQuery, WorkFile } from './work-file.ts';

export interface MineOptions {
  readonly retriever: SearchSource;
  readonly source: QuerySource;
  /** The files that the source reads besides `records`; their checksums must be the same when a run resumes. */
  readonly inputs: readonly string[];
  /** The records that the source reads. They may grow: a run that resumes has its queries in the work file. */
  readonly records?: RecordSource;
  readonly out: string;
  /** Whether what an unfinished run left is dropped, and existing files are replaced. */
  readonly restart: boolean;
  readonly format: RowFormatName;
  readonly outputScores: boolean;
  readonly batch: BatchSettings;
  /** The settings as JSON, as the report has them; a resumed run must have the same. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** The server that is asked, for the report; another server with the same index may resume. */
  readonly server?: string;
  readonly onProgress?: (progress: { queries: number; totalQueries: number; rows: number }) => void;
  readonly onWarning?: (message: string) => void;
  readonly signal?: AbortSignal;
}

/** The report file. */
export type MiningSummary = Awaited<ReturnType<typeof mineAll>>;
type Checksums = Awaited<ReturnType<typeof checksums>>;

interface Progress {
  readonly next: number;
  readonly bytes: RowCheckpoint;
  readonly report?: ReportState;
}

const BATCH_HITS = 12_800;

/**
 * Mines negatives for all queries and writes rows, origins and report. Memory does not grow with the number of queries. A run that was
 * stopped resumes: `OUT.work` has its queries and its progress, and the files equal the files of an undisturbed run.
 *
 * @throws TrawlError USAGE if an output is an input or a Parquet file of a format without columns, OUTPUT_EXISTS, OUTPUT_DIFFERS if the
 * unfinished run had other inputs or settings, OUTPUT_NOT_WRITABLE, DISK_FULL, the errors of the readers and of the retriever, CANCELLED.
 */
export async function mineNegatives(options: MineOptions): Promise<MiningSummary> {
  const out = resolve(options.out);
  checkRowFile(out, options.format);
  refuseInputs(options);
  const work = new WorkFile(`${out}.work`, options.records?.mode);
  let isEmpty = work.load('settings') === undefined;
  try {
    const inputs = await checksums(options.inputs, options.signal);
    let isBegun = !options.restart && isBegunWith(work, settingsOf(options, inputs));
    if (isBegun && !hasFiles(work, out)) {
      options.onWarning?.(`A file of the unfinished run in ${work.path} is missing or too short. Starting again.`);
      isBegun = false;
    }
    if (isBegun && work.load('finished') !== undefined) return await publish(out, work);
    if (existsSync(out) && !options.restart) {
      throw new TrawlError(
        'OUTPUT_EXISTS',
        `${out} already exists. Choose another path, or begin again with --restart.`,
      );
    }
    if (!isBegun) await begin(work, options, inputs);
    isEmpty = false;
    await mineAll(work, out, options);
    return await publish(out, work);
  } catch (error) {
    if (isEmpty) work.remove();
    else work.close();
    throw isEmpty ? error : resumable(error);
  }
}

/** @throws TrawlError USAGE if a file that is read would be replaced. */
function refuseInputs({ out, inputs, records }: MineOptions): void {
  for (const path of [...inputs, ...(records?.paths ?? [])]) {
    const read = statSync(path, { throwIfNoEntry: false, bigint: true });
    for (const written of [out, originsPath(out), reportPath(out)]) {
      const found = statSync(written, { throwIfNoEntry: false, bigint: true });
      if (read === undefined || found === undefined || read.dev !== found.dev || read.ino !== found.ino) continue;
      throw usageError(
        `--out ${out} would replace ${resolve(written)}, which is ${path} and is read. Choose another path.`,
      );
    }
  }
}

/** Whether the files of an unfinished run are there with all that the work file says was written. */
function hasFiles(work: WorkFile, out: string): boolean {
  const finished = work.load<RowBytes>('finished');
  return finished === undefined
    ? haveRowFiles('fits', out, work.load<Progress>('progress')!.bytes)
    : existsSync(reportPath(out)) && haveRowFiles('isWhole', out, finished);
}

function settingsOf(options: MineOptions, inputs: Checksums): OutputSettings {
  return { ...options.settings, origin: originOf(options), inputs: inputs.map(({ sha256 }) => sha256) };
}

/** Whether the work file has a run with these settings. @throws TrawlError OUTPUT_DIFFERS if it has one with others. */
function isBegunWith(work: WorkFile, wanted: OutputSettings): boolean {
  const begun = work.load<OutputSettings>('settings');
  if (begun === undefined) return false;
  const different = differences(begun, wanted);
  if (different.length === 0) return true;
  throw new TrawlError(
    'OUTPUT_DIFFERS',
    `${work.path} has an unfinished run with other settings: ${different.join('; ')}. Repeat the command as it was, choose another ` +
      'path, or begin again with --restart.',
    { details: { path: work.path, differences: different } },
  );
}

async function begin(work: WorkFile, options: MineOptions, inputs: Checksums): Promise<void> {
  for (const path of [options.out, originsPath(options.out), reportPath(options.out)])
    rmSync(partialOf(resolve(path)), { force: true });
  work.clear();
  await work.fill(async () => {
    work.save('read', await loadQueries(work, options.source, options.signal));
    work.save('inputs', [...inputs, ...(options.records?.checksums() ?? [])]);
    work.save('progress', { next: 0, bytes: { rows: 0, origins: 0 } } satisfies Progress);
    if (options.server !== undefined) work.save('server', options.server);
    work.save('settings', settingsOf(options, inputs));
  });
}

function originOf({ retriever: { info }, batch }: MineOptions): MiningOrigin {
  return {
    index: info.index,
    generation: info.generation,
    model: info.model?.sha256 ?? null,
    reranker: batch.rerank ? (info.reranker?.name ?? null) : null,
  };
}

async function checksums(paths: readonly string[], signal?: AbortSignal) {
  const inputs: { readonly path: string; readonly sha256: string }[] = [];
  for (const path of paths) {
    if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true) {
      throw new TrawlError(
        'CORPUS_NOT_FOUND',
        `${path} is not a file. A pipe cannot be read again when the run resumes.`,
      );
    }
    inputs.push({ path, sha256: await sha256OfFile(path, signal) });
  }
  return inputs;
}

/** Mines what is left and writes the report. */
async function mineAll(work: WorkFile, out: string, options: MineOptions) {
  const { batch, format, outputScores, records, signal, onProgress } = options;
  const totalQueries = work.queryCount;
  const progress = work.load<Progress>('progress')!;
  const report = new MiningReport(progress.report);
  const origin = originOf(options);
  const row = { numNegatives: batch.sampling.count, outputScores };
  const files = await openRowFiles(out, ROW_FORMATS[format], {
    row,
    checkpoint: progress.bytes,
    mode: records?.mode,
  });
  let finished: RowBytes;
  try {
    for await (const outcomes of minedBatches(work, progress.next, options)) {
      throwIfCancelled(signal);
      for (const outcome of outcomes) {
        const mined = typeof outcome.result === 'string' ? undefined : outcome.result;
        const rows = mined === undefined ? [] : ROW_FORMATS[format].rows(mined, row);
        if (mined !== undefined) await files.write(rows, mined, origin);
        report.add(outcome, row.numNegatives, rows.length);
      }
      const next = outcomes.at(-1)!.stored.place + 1;
      work.save('progress', { next, bytes: await files.checkpoint(), report: report.state } satisfies Progress);
      onProgress?.({ queries: next, totalQueries, rows: report.state.counts.rows });
    }
    finished = await files.end();
  } finally {
    await files.close();
  }
  const summary = {
    out: options.out,
    /** The file with the origin of each row. */
    origins: originsPath(options.out),
    origin,
    /** The server that was asked at the end; absent for an index directory. */
    server: options.server,
    settings: options.settings,
    inputs: work.load<Checksums>('inputs')!,
    read: work.load<LoadCounts>('read')!,
    ...report.body(),
  };
  await writeReport(reportPath(out), summary, records?.mode);
  work.save('finished', finished);
  return summary;
}

async function writeReport(path: string, summary: object, mode?: number): Promise<void> {
  const file = await CheckpointedFile.open(path, 0, mode);
  try {
    await file.write(`${JSON.stringify(summary, null, 2)}\n`);
    await file.checkpoint();
  } finally {
    await file.close();
  }
  await publishPartial(path, file.bytes);
  await syncFolder(dirname(path));
}

/** The outcomes of all queries from a place on. A batch is searched while the one before it is written. */
function minedBatches(
  work: WorkFile,
  from: number,
  { retriever, batch, signal }: MineOptions,
): AsyncGenerator<readonly QueryOutcome[], void> {
  const size = Math.max(8, Math.min(256, Math.floor(BATCH_HITS / batch.search.depth)));
  const mine = async (queries: readonly StoredQuery[], stop: AbortSignal): Promise<readonly QueryOutcome[]> => {
    try {
      return await mineBatch(retriever, queries, batch, stop);
    } catch (error) {
      if (stop.aborted) throw error;
      const failure = error instanceof SearchFailure ? error : new SearchFailure(error);
      const ids = queries.map(({ query }) => query.id);
      const at = { before: queries[0]!.place, of: work.queryCount, ids };
      throw failedAt(failure, at, 'The same command resumes there.');
    }
  };
  const batches = (function* (): Generator<readonly StoredQuery[], void> {
    for (let place = from; place < work.queryCount; place += size) yield work.queries(place, size);
  })();
  return inOrder(batches, mine, { atOnce: 2, signal });
}

/** Gives the finished files their names, and removes the work file. Can be repeated after a kill. */
async function publish(out: string, work: WorkFile): Promise<MiningSummary> {
  const summary = JSON.parse(await readFile(reportPath(out), 'utf8')) as MiningSummary;
  const bytes = work.load<RowBytes>('finished')!;
  await publishPartial(originsPath(out), bytes.origins);
  await publishPartial(out, bytes.rows);
  await syncFolder(dirname(out));
  work.remove();
  return summary;
}

function resumable(error: unknown): unknown {
  if (asTrawlError(error).code !== 'CANCELLED') return error;
  const details = { resumable: true };
  return new TrawlError('CANCELLED', 'Stopped. The same command resumes.', { details, cause: error });
}
