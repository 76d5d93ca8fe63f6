import { statSync } from 'node:fs';
import { usageError } from '../../src/base/errors.ts';
import { closeAll } from '../../src/base/system/close-all.ts';
import { type OutputSettings, reportIfComplete } from '../../src/base/system/output-report.ts';
import { ResumableOutput } from '../../src/base/system/resumable-output.ts';
import type { RetrieveCall } from '../../src/search/calls/retrieve-call.ts';
import type { SearchSource } from '../../src/search/retriever.ts';
import { makeEncoder, type OutputFormat } from './outputs/output-format.ts';
import { type HitIds, type NamedIndex, PassageIds, REPLIED_IDS } from './passage-ids.ts';
import { type BulkResult, type BulkSearch, OutputStream, type Progress, runBulkSearch } from './run-bulk-search.ts';

/** Queries of a batch: larger ones do not make the engine faster (bench/search.md). */
export const BATCH_QUERIES = 256;
/** Bounds the memory of the hits of a batch. */
const BATCH_HITS = 2 ** 18;
/** Bounds the time of a batch that is reranked, and so what a killed run loses. */
const BATCH_PAIRS = 4_096;

export interface FileSearch extends Pick<BulkSearch, 'source' | 'range' | 'saveMs' | 'onProgress' | 'signal'> {
  readonly searched: SearchSource;
  /** The folders of the indexes, for the ids of their passages. Undefined: a server's replies have the ids. */
  readonly indexes: readonly NamedIndex[] | undefined;
  readonly k: number;
  readonly ranking: Omit<RetrieveCall, 'queries' | 'k' | 'documents' | 'signal'>;
  readonly format: OutputFormat;
  /** The file of the hits and, if wanted, the file of the scores. */
  readonly files: readonly string[];
  readonly tag: string;
  readonly settings: OutputSettings;
  readonly server: string | undefined;
  /** Whether to begin again, whatever an earlier run has written. */
  readonly restart: boolean;
  /** Called if an earlier run has searched some queries. */
  readonly onResumed: (queries: number) => void;
}

/**
 * Searches for the queries and writes the hits to files, unless an earlier run has completed them with the same settings.
 *
 * @returns the result, and whether the files were complete already.
 */
export async function searchToFiles(search: FileSearch): Promise<BulkResult & { readonly wasComplete: boolean }> {
  const { source, range, searched, format, files, settings, server, restart, signal } = search;
  const k = Math.min(search.k, Math.max(1, searched.info.rows));
  const shape = {
    queries: range.end - range.first,
    k: search.k,
    hasRounds: source.hasRounds,
    isGroup: (search.indexes?.length ?? 1) > 1,
    hasScoreFile: files.length === 2,
    tag: search.tag,
  };
  // A format that cannot hold the results ends the search before it begins.
  makeEncoder(format, shape, undefined);
  let ids: HitIds | undefined;
  let output: ResumableOutput<Progress> | OutputStream | undefined;
  try {
    if (format !== 'npy') ids = search.indexes === undefined ? REPLIED_IDS : await PassageIds.open(search.indexes);
    output = isRegular(files)
      ? await ResumableOutput.open<Progress>(files, { settings, server, restart, replaces: true })
      : await OutputStream.open(files[0]!);
    const complete = restart ? undefined : completeRun(output, files, settings);
    if (complete !== undefined) return { ...complete, wasComplete: true };
    const resumed = output.resumed?.queries;
    await ids?.readAll((shape.queries - (resumed ?? 0)) * k, signal);
    if (resumed !== undefined) search.onResumed(resumed);
    const result = await runBulkSearch({
      ...search,
      batchQueries: batchLength(format, k, search),
      search: async (queries, stop) => {
        const call = { ...search.ranking, queries, k: search.k, documents: false, signal: stop };
        return (await searched.retrieve(call)).outcomes;
      },
      ids,
      output,
      encoder: (state) => makeEncoder(format, shape, state),
    });
    return { ...result, wasComplete: false };
  } finally {
    await closeAll(output, ids);
  }
}

function batchLength(format: OutputFormat, k: number, { k: columns, ranking: { rerank } }: FileSearch): number {
  // A .npy file has all columns, also where fewer rows are found.
  const hits = Math.floor(BATCH_HITS / (format === 'npy' ? columns : k));
  const pairs = rerank === undefined ? BATCH_QUERIES : Math.floor(BATCH_PAIRS / Math.max(k, rerank.depth));
  return Math.max(1, Math.min(BATCH_QUERIES, hits, pairs));
}

/** The result of an earlier run that completed the output with the same settings; undefined if there is none. */
function completeRun(
  output: ResumableOutput<Progress> | OutputStream,
  files: readonly string[],
  settings: OutputSettings,
): BulkResult | undefined {
  if (output instanceof OutputStream || output.resumed !== undefined) return undefined;
  const found = reportIfComplete<Pick<BulkResult, 'queries' | 'failed'>>(files, settings);
  return found && { queries: found.queries, resumed: found.queries, failed: found.failed, firstError: undefined };
}

/** False for a pipe or a device, which cannot be renamed. @throws TrawlError USAGE if one of several files is a pipe or a device. */
function isRegular(files: readonly string[]): boolean {
  const special = files.filter((path) => {
    const stats = statSync(path, { throwIfNoEntry: false });
    return stats !== undefined && !stats.isFile() && !stats.isDirectory();
  });
  if (special.length === 0) return true;
  if (files.length === 1) return false;
  throw usageError(`${special[0]} is a pipe or a device. With --scores-out, both outputs must be files.`);
}
