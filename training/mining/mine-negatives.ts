import { existsSync, rmSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { asTrawlError, TrawlError, usageError } from '../../src/base/errors.ts';
import { inOrder } from '../../src/base/in-order.ts';
import { CheckpointedFile, publishPartial } from '../../src/base/system/checkpointed-file.ts';
import { syncFolder } from '../../src/base/system/durable-file.ts';
import { sha256OfFile } from '../../src/base/system/file-checksum.ts';
import { reportPath } from '../../src/base/system/output-report.ts';
import { differences, type OutputSettings } from '../../src/base/system/output-settings.ts';
import { partialOf } from '../../src/base/system/partial-file.ts';
import { failedAt, SearchFailure } from '../../src/search/calls/query-errors.ts';
import type { SearchSource } from '../../src/search/retriever.ts';
import { ROW_FORMATS, type RowFormatName } from './formats/formats.ts';
import { type LoadCounts, loadQueries, type QuerySource } from './load-queries.ts';
import { type BatchSettings, mineBatch } from './mine-batch.ts';
import type { MiningOrigin } from './mined-query.ts';
import { MiningReport, type ReportBody, type ReportState } from './mining-report.ts';
import type { QueryOutcome } from './query-outcome.ts';
import type { RecordSource } from './record-source.ts';
import { checkRowFile, type RowBytes, type RowCheckpoint, RowFiles } from './row-files.ts';
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
  readonly onProgress?: (progress: MiningProgress) => void;
  readonly onWarning?: (message: string) => void;
  readonly signal?: AbortSignal;
}

export interface MiningProgress {
  readonly queries: number;
  readonly totalQueries: number;
  readonly rows: number;
}

/** The report file, `OUT.report.json`. */
export interface MiningSummary extends ReportBody {
  readonly out: string;
  /** The file with the origin of each row, for trainers that take every column as an input; null if rows have it. */
  readonly origins: string | null;
  readonly origin: MiningOrigin;
  /** The server that was asked at the end; absent for an index directory. */
  readonly server?: string;
  readonly settings: Readonly<Record<string, unknown>>;
  readonly inputs: readonly { readonly path: string; readonly sha256: string }[];
  readonly read: LoadCounts;
}

/** How far a run is. */
interface Progress {
  /** The place of the first query that is not done. */
  readonly next: number;
  readonly bytes: RowCheckpoint;
  readonly report?: ReportState;
}

/** Passages of one batch of searches. */
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
    if (isBegun && !hasFiles(work, out, options.format)) {
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
    for (const written of [out, RowFiles.originsOf(out), reportPath(out)]) {
      const found = statSync(written, { throwIfNoEntry: false, bigint: true });
      if (read === undefined || found === undefined || read.dev !== found.dev || read.ino !== found.ino) continue;
      throw usageError(
        `--out ${out} would replace ${resolve(written)}, which is ${path} and is read. Choose another path.`,
      );
    }
  }
}

/** Whether the files of an unfinished run are there with all that the work file says was written. */
function hasFiles(work: WorkFile, out: string, format: RowFormatName): boolean {
  const finished = work.load<RowBytes>('finished');
  if (finished === undefined) return RowFiles.fit(out, ROW_FORMATS[format], work.load<Progress>('progress')!.bytes);
  return existsSync(reportPath(out)) && RowFiles.areWhole(out, ROW_FORMATS[format], finished);
}

/** All that decides what is in the files. */
function settingsOf(options: MineOptions, inputs: MiningSummary['inputs']): OutputSettings {
  return { ...options.settings, origin: originOf(options), inputs: inputs.map(({ sha256 }) => sha256) };
}

/** Whether the work file has a run with these settings. @throws TrawlError OUTPUT_DIFFERS if it has one with others. */
function isBegunWith(work: WorkFile, wanted: OutputSettings): boolean {
  const begun = work.load<OutputSettings>('settings');
  if (begun === undefined) return false;
  const different = differences(begun, wanted);
  if (different.length > 0) throw differs(work.path, different);
  return true;
}

/** Reads the input. */
async function begin(work: WorkFile, options: MineOptions, inputs: MiningSummary['inputs']): Promise<void> {
  for (const path of [options.out, RowFiles.originsOf(options.out), reportPath(options.out)])
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

async function checksums(paths: readonly string[], signal?: AbortSignal): Promise<MiningSummary['inputs']> {
  const inputs = [];
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

async function mineAll(work: WorkFile, out: string, options: MineOptions): Promise<void> {
  const { batch, format, outputScores, records, signal, onProgress } = options;
  const progress = work.load<Progress>('progress')!;
  const report = new MiningReport(progress.report);
  const origin = originOf(options);
  const row = { numNegatives: batch.sampling.count, outputScores };
  const files = await RowFiles.open(out, ROW_FORMATS[format], row, progress.bytes, records?.mode);
  let finished: RowBytes;
  const totalQueries = work.queryCount;
  try {
    for await (const outcomes of minedBatches(work, progress.next, options)) {
      throwIfCancelled(signal);
      for (const outcome of outcomes) {
        const mined = 'mined' in outcome.result ? outcome.result.mined : undefined;
        const rows = mined === undefined ? [] : ROW_FORMATS[format].rows(mined, origin, row);
        if (mined !== undefined) await files.write(rows, mined, origin);
        report.add(outcome, row.numNegatives, rows.length);
      }
      const next = outcomes.at(-1)!.stored.place + 1;
      work.save('progress', { next, bytes: await files.checkpoint(), report: report.state() } satisfies Progress);
      onProgress?.({ queries: next, totalQueries, rows: report.counts.rows });
    }
    finished = await files.end();
  } finally {
    await files.close();
  }
  const summary: MiningSummary = {
    out: options.out,
    origins: ROW_FORMATS[format].onlyInputs ? RowFiles.originsOf(options.out) : null,
    origin,
    server: options.server,
    settings: options.settings,
    inputs: work.load('inputs')!,
    read: work.load('read')!,
    ...report.body(),
  };
  await writeReport(reportPath(out), summary, records?.mode);
  work.save('finished', finished);
}

async function writeReport(path: string, summary: MiningSummary, mode?: number): Promise<void> {
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
    const siblings = queries.map((query) => work.siblingIds(query));
    try {
      return await mineBatch(retriever, queries, siblings, batch, stop);
    } catch (error) {
      if (stop.aborted) throw error;
      const failure = error instanceof SearchFailure ? error : new SearchFailure(error);
      const ids = queries.map(({ query }) => query.id);
      const at = { before: queries[0]!.place, of: work.queryCount, ids };
      throw failedAt(failure, at, 'The same command resumes there.');
    }
  };
  return inOrder(storedBatches(work, from, size), mine, { atOnce: 2, signal });
}

function* storedBatches(work: WorkFile, from: number, size: number): Generator<readonly StoredQuery[], void> {
  for (let place = from; place < work.queryCount; place += size) yield work.queries(place, size);
}

/** Gives the finished files their names, and removes the work file. Can be repeated after a kill. */
async function publish(out: string, work: WorkFile): Promise<MiningSummary> {
  const summary = JSON.parse(await readFile(reportPath(out), 'utf8')) as MiningSummary;
  const bytes = work.load<RowBytes>('finished')!;
  if (summary.origins !== null) await publishPartial(RowFiles.originsOf(out), bytes.origins);
  await publishPartial(out, bytes.rows);
  await syncFolder(dirname(out));
  work.remove();
  return summary;
}

function differs(path: string, different: readonly string[]): TrawlError {
  return new TrawlError(
    'OUTPUT_DIFFERS',
    `${path} has an unfinished run with other settings: ${different.join('; ')}. Repeat the command as it was, choose another path, or ` +
      'begin again with --restart.',
    { details: { path, differences: different } },
  );
}

function resumable(error: unknown): unknown {
  const known = asTrawlError(error);
  if (known.code !== 'CANCELLED') return error;
  return new TrawlError('CANCELLED', 'Stopped. The same command resumes.', {
    details: { resumable: true },
    cause: error,
  });
}
