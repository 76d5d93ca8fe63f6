import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { checkFilesApart, type NamedFile } from '../../evaluation/bulk-search/check-files-apart.ts';
import { type HitIds, RepliedIds } from '../../evaluation/bulk-search/hit-ids.ts';
import { NoEncoder } from '../../evaluation/bulk-search/no-encoder.ts';
import { OutputStream } from '../../evaluation/bulk-search/output-stream.ts';
import {
  checkOutputFormat,
  makeEncoder,
  type OutputFormat,
  outputFormatOf,
} from '../../evaluation/bulk-search/outputs/output-format.ts';
import { type NamedIndex, PassageIds } from '../../evaluation/bulk-search/passage-ids.ts';
import { openQueryFile } from '../../evaluation/bulk-search/query-file.ts';
import type { QuerySource } from '../../evaluation/bulk-search/query-source.ts';
import { openQueryVectors } from '../../evaluation/bulk-search/query-vectors.ts';
import {
  type BulkProgress,
  type BulkResult,
  type BulkSearch,
  type Progress,
  runBulkSearch,
} from '../../evaluation/bulk-search/run-bulk-search.ts';
import { checkTrecField } from '../../evaluation/trec-run.ts';
import { TrawlError } from '../../src/base/errors.ts';
import type { OptionValues } from '../../src/base/options/option-spec.ts';
import { packageVersion } from '../../src/base/package-root.ts';
import { closeAll } from '../../src/base/system/close-all.ts';
import { reportIfComplete } from '../../src/base/system/output-report.ts';
import type { OutputSettings } from '../../src/base/system/output-settings.ts';
import { ResumableOutput } from '../../src/base/system/resumable-output.ts';
import { requireVectors } from '../../src/index/manifest/vector-space.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import type { OpenRetrieverOptions } from '../../src/search/opening/open-retriever.ts';
import type { SearchSourceInfo } from '../../src/search/retriever.ts';
import type { ServerFacts } from '../../src/stores/trawl-server/server-info.ts';
import { parseShard } from '../building/build-options.ts';
import { type OpenSource, openSource, type SERVER_OPTIONS } from '../open/search-source.ts';
import { type QUERY_FORM_OPTION, type QUERY_TEMPLATE_OPTION, queryOf, templateOf } from '../options/query-form.ts';
import { modesOption, RANKING_OPTIONS, rankingOf } from '../options/ranking-options.ts';
import type { RERANK_OPTIONS } from '../options/rerank-options.ts';
import { type RETRIEVER_OPTIONS, retrieverOptions } from '../options/retriever-options.ts';
import { type VIEW_OPTIONS, viewOption } from '../options/view-options.ts';
import { formatCount } from '../output/format.ts';
import { stepProgress } from '../output/progress/step-progress.ts';
import { viewFiles, viewHash } from '../output/view-hash.ts';
import { type CommandContext, EXIT } from '../program/command.ts';
import { parseServedIndexes } from '../serve/served-indexes.ts';
import type { BULK_OPTIONS } from './bulk-options.ts';

/** Queries of a batch: larger ones do not make the engine faster (bench/search.md). */
const BATCH_QUERIES = 256;
/** Bounds the memory of the hits of a batch. */
const BATCH_HITS = 2 ** 18;
/** Bounds the time of a batch that is reranked, and so what a killed run loses. */
const BATCH_PAIRS = 4_096;

type Table = typeof BULK_OPTIONS &
  typeof RANKING_OPTIONS &
  typeof RERANK_OPTIONS &
  typeof RETRIEVER_OPTIONS &
  typeof SERVER_OPTIONS &
  typeof VIEW_OPTIONS & {
    readonly k: { readonly type: 'integer'; readonly default: number; readonly help: string };
    readonly index: { readonly type: 'list'; readonly help: string };
    readonly 'query-form': typeof QUERY_FORM_OPTION;
    readonly 'query-template': typeof QUERY_TEMPLATE_OPTION;
  };
type Options = OptionValues<Table>;

/** `trawl search INDEX --queries FILE --out OUT`: returns the exit code. `folder` is undefined with --url. */
export async function searchQueries(folder: string | undefined, context: CommandContext<Table>): Promise<number> {
  const { options, given, signal, note } = context;
  refuseAddresses([folder, ...options.index]);
  const shard = parseShard(options.shard) ?? { index: 0, of: 1 };
  const plan = outputPlan(folder, options);
  checkServed(options);
  const source = await openQueries(folder, context);
  let opened: OpenSource | undefined;
  try {
    const range = {
      first: Math.floor((source.count * shard.index) / shard.of),
      end: Math.floor((source.count * (shard.index + 1)) / shard.of),
    };
    const modes = modesOption(options, given);
    const retrieving: OpenRetrieverOptions = {
      ...retrieverOptions(options),
      signal,
      modes,
      ...(folder === undefined ? {} : vectorOptions(folder, options)),
      batchQueries: BATCH_QUERIES,
      // The batches in flight are few, and none is refused.
      maxWaitingBytes: Number.POSITIVE_INFINITY,
      onWarning: note,
    };
    opened = await openSource({
      options,
      given,
      folder,
      further: options.index,
      served: options.index[0],
      retrieving,
      note,
    });
    return await searchInto(plan, { folder, source, range, opened }, context);
  } finally {
    await closeAll(source, opened);
  }
}

/** @throws TrawlError USAGE for an address in Milvus or OpenSearch. */
function refuseAddresses(places: readonly (string | undefined)[]): void {
  if (!places.some((each) => each !== undefined && /(^|=)(milvus|opensearch)(\+\w+)?:/i.test(each))) return;
  throw new TrawlError(
    'USAGE',
    '--queries and --query-vectors do not take an address in Milvus or OpenSearch. Name the folder of the index.',
  );
}

/** What is written. */
interface OutputPlan {
  readonly format: OutputFormat;
  /** The hits and, with --scores-out, the scores. */
  readonly files: readonly string[];
  readonly isGroup: boolean;
}

/** @throws TrawlError USAGE for options that do not fit each other, or a file that would be read and written. */
function outputPlan(folder: string | undefined, options: Options): OutputPlan {
  const format = outputFormatOf(options.out!, options['out-format']);
  const isGroup = folder !== undefined && options.index.length > 0;
  const files = [options.out!, ...(options['scores-out'] === undefined ? [] : [options['scores-out']])];
  checkOutputFormat(format, { isGroup, hasScoreFile: files.length === 2 });
  checkFilesApart(namedOutputs(options), namedInputs(options), indexFolders(folder, options));
  if (format === 'trec') checkTrecField('tag', options.tag);
  return { format, files, isGroup };
}

interface Opened {
  readonly folder: string | undefined;
  readonly source: QuerySource;
  readonly range: BulkSearch['range'];
  readonly opened: OpenSource;
}

/** Searches, unless an earlier run has completed the output. Returns the exit code. */
async function searchInto(
  { format, files, isGroup }: OutputPlan,
  { folder, source, range, opened: { source: retriever, server } }: Opened,
  { options, signal, note, out }: CommandContext<Table>,
): Promise<number> {
  const { info } = retriever;
  const k = Math.min(options.k, Math.max(1, info.rows));
  const ranking = { ...rankingOf(options, info, options.k), ...templateOf(options['query-template']) };
  const shape = {
    queries: range.end - range.first,
    k: options.k,
    hasRounds: source.hasRounds,
    isGroup,
    hasScoreFile: files.length === 2,
    tag: options.tag,
  };
  makeEncoder(format, shape, undefined);
  const progress = stepProgress({ silent: options.quiet || options.json });
  let ids: HitIds | undefined;
  let output: ResumableOutput<Progress> | OutputStream | undefined;
  try {
    if (format !== 'npy')
      ids = folder === undefined ? new RepliedIds() : await PassageIds.open(indexesOf(folder, options, info));
    const settings = await settingsOf(source, info, options, { format, server });
    output = isRegular(files)
      ? await openFiles(files, settings, options, server?.url)
      : await OutputStream.open(files[0]!);
    const complete = completeRun(output, files, settings, options);
    if (complete !== undefined) {
      note(`${options.out} is complete, with the same queries, index and options. Search again with --restart.`);
      report(complete, options, { out, note });
      return complete.failed > 0 ? EXIT.failed : EXIT.ok;
    }
    await ids?.readAll((range.end - range.first - (output.resumed?.queries ?? 0)) * k, signal);
    if (output.resumed !== undefined) note(`resuming after ${formatCount(output.resumed.queries)} queries`);
    const result = await runBulkSearch({
      source,
      range,
      batchQueries: batchLength(format, k, options),
      search: async (queries, stop) => {
        const call = { queries, k: options.k, ...ranking, documents: false, signal: stop };
        return (await retriever.retrieve(call)).outcomes;
      },
      ids,
      output,
      encoder: (state) => makeEncoder(format, shape, state),
      saveMs: 1000 * options['checkpoint-seconds'],
      onProgress: shownOn(progress.update),
      signal,
    });
    progress.stop();
    report(result, options, { out, note });
    return result.failed > 0 ? EXIT.failed : EXIT.ok;
  } finally {
    progress.stop();
    await closeAll(output, ids);
  }
}

/** Queries of a batch. `k`: hits of a query. */
function batchLength(format: OutputFormat, k: number, { k: columns, rerank, 'rerank-depth': depth }: Options): number {
  // A .npy file has all columns, also where fewer rows are found.
  const hits = Math.floor(BATCH_HITS / (format === 'npy' ? columns : k));
  const pairs = rerank === undefined ? BATCH_QUERIES : Math.floor(BATCH_PAIRS / Math.max(k, depth));
  return Math.max(1, Math.min(BATCH_QUERIES, hits, pairs));
}

function namedOutputs({ out, 'scores-out': scores }: Options): NamedFile[] {
  return named([
    ['--out', out],
    ['--scores-out', scores],
  ]);
}

/** The files that the options name and that are read. */
function namedInputs(options: Options): NamedFile[] {
  const view = options.url === undefined ? viewOption(options) : undefined;
  return named([
    ['--key-file', options['key-file']],
    ['--queries', options.queries],
    ['--query-vectors', options['query-vectors']],
    ['--rerank-key-file', options['rerank-key-file']],
    ['--views', options.views],
    ...viewFiles(view).map((file) => ['the file of the view', file] as const),
  ]);
}

function named(files: readonly (readonly [name: string, path: string | undefined])[]): NamedFile[] {
  return files.flatMap(([name, path]) => (path === undefined ? [] : [{ name, path }]));
}

function indexFolders(folder: string | undefined, { index }: Options): string[] {
  if (folder === undefined) return [];
  return index.length === 0 ? [folder] : parseServedIndexes([folder, ...index]).map((each) => each.folder);
}

/** @throws TrawlError USAGE for what a server cannot be asked. */
function checkServed({ url, index, 'query-vectors': vectors }: Options): void {
  if (url === undefined) return;
  if (index.length > 1) {
    throw new TrawlError('USAGE', 'With --url, --index names one served index. Search each index alone.');
  }
  if (vectors !== undefined) {
    throw new TrawlError(
      'USAGE',
      '--query-vectors cannot be combined with --url: servers take texts. Give the index directory, or --queries.',
    );
  }
}

/** @throws TrawlError USAGE, and as `openQueryFile` and `openQueryVectors`. */
async function openQueries(
  folder: string | undefined,
  { options, signal }: CommandContext<Table>,
): Promise<QuerySource> {
  const { queries, mode, 'query-vectors': vectors } = options;
  const texts =
    queries === undefined
      ? undefined
      : await openQueryFile(queries, {
          format: options['queries-format'],
          queryOf: (question) => queryOf(question, options['query-form']),
          signal,
        });
  if (vectors === undefined) return texts!;
  if (mode === 'bm25')
    throw new TrawlError('USAGE', '--query-vectors has no effect with --mode bm25, which ranks by words.');
  if (options.index.length > 0) {
    throw new TrawlError('USAGE', '--query-vectors cannot be combined with --index. Search each index alone.');
  }
  if (texts === undefined && (mode === 'hybrid' || options.rerank !== undefined)) {
    const reading = mode === 'hybrid' ? '--mode hybrid' : '--rerank';
    throw new TrawlError(
      'USAGE',
      `${reading} reads the words of the queries: give them with --queries beside --query-vectors.`,
    );
  }
  const { dimension } = requireVectors(folder!, openIndexDirectory(folder!).manifest);
  return openQueryVectors(vectors, { dimension, texts, signal });
}

/** Queries with vectors need no encoder, and equal texts may have different vectors. */
function vectorOptions(folder: string, options: Options): OpenRetrieverOptions {
  if (options['query-vectors'] === undefined) return {};
  const { model } = requireVectors(folder, openIndexDirectory(folder).manifest);
  return { encoder: new NoEncoder(model), singleFlight: false };
}

function indexesOf(folder: string, options: Options, info: SearchSourceInfo): NamedIndex[] {
  if (info.members === undefined) return [{ name: undefined, folder, generation: info.generation }];
  const folders = parseServedIndexes([folder, ...options.index]);
  return info.members.map(({ index, generation }, i) => ({ name: index, folder: folders[i]!.folder, generation }));
}

/** The options that decide the bytes of an output; those of threads, memory and progress do not. */
const DECISIVE = [
  'k',
  'queries-format',
  'query-form',
  'query-template',
  ...(Object.keys(RANKING_OPTIONS) as (keyof typeof RANKING_OPTIONS)[]),
  'rerank',
  'rerank-depth',
  'rerank-api',
  'rerank-model',
  'precision',
  'device',
  'shard',
  'tag',
] as const satisfies readonly (keyof Options)[];

async function settingsOf(
  source: QuerySource,
  info: SearchSourceInfo,
  options: Options,
  { format, server }: { readonly format: string; readonly server: ServerFacts | undefined },
): Promise<OutputSettings> {
  return {
    ...source.hashes,
    index: info.generation,
    view: server === undefined ? await viewHash(options) : server.view,
    ...(server === undefined
      ? {}
      : { 'the version of the server': server.version, 'the passages of the view': server.viewSha256 }),
    'the version of trawl': packageVersion,
    ...Object.fromEntries(DECISIVE.map((name) => [`--${name}`, options[name] ?? null])),
    '--out-format': format,
    '--scores-out': options['scores-out'] === undefined ? null : resolve(options['scores-out']),
    ...(info.reranker === null || options.rerank === undefined ? {} : { reranker: JSON.stringify(info.reranker) }),
  };
}

function openFiles(
  files: readonly string[],
  settings: OutputSettings,
  { restart }: Options,
  server: string | undefined,
): Promise<ResumableOutput<Progress>> {
  return ResumableOutput.open(files, {
    settings,
    server,
    restart,
    replaces: true,
  });
}

/** The result of an earlier run that completed the output with the same settings; undefined if there is none. */
function completeRun(
  output: ResumableOutput<Progress> | OutputStream,
  files: readonly string[],
  settings: OutputSettings,
  { restart }: Options,
): BulkResult | undefined {
  if (restart || output instanceof OutputStream || output.resumed !== undefined) return undefined;
  const found = reportIfComplete<Pick<BulkResult, 'queries' | 'failed'>>(files, settings);
  if (found === undefined) return undefined;
  const { queries, failed } = found;
  return { queries, resumed: queries, failed, firstError: undefined };
}

/** False for a pipe or a device, which cannot be renamed. @throws TrawlError USAGE if one of several files is a pipe or a device. */
function isRegular(files: readonly string[]): boolean {
  const special = files.filter((path) => {
    const stats = statSync(path, { throwIfNoEntry: false });
    return stats !== undefined && !stats.isFile() && !stats.isDirectory();
  });
  if (special.length === 0) return true;
  if (files.length === 1) return false;
  throw new TrawlError('USAGE', `${special[0]} is a pipe or a device. With --scores-out, both outputs must be files.`);
}

function shownOn(update: ReturnType<typeof stepProgress>['update']): (progress: BulkProgress) => void {
  const begun = performance.now();
  return ({ done, queries, resumed }) => {
    const seconds = (performance.now() - begun) / 1000;
    const rate = done > resumed ? `, ${formatCount(Math.round((done - resumed) / seconds))} queries/s` : '';
    const facts = `${formatCount(done)} of ${formatCount(queries)} queries${rate}`;
    update({ step: 'searching', share: queries === 0 ? 1 : done / queries, facts });
  };
}

function report(
  { queries, resumed, failed, firstError }: BulkResult,
  options: Options & { readonly json: boolean },
  { out, note }: Pick<CommandContext<Table>, 'out' | 'note'>,
): void {
  if (options.json) out(JSON.stringify({ out: options.out, queries, k: options.k, resumed, failed }));
  else note(`${options.out}: hits of ${queries} queries`);
  if (failed === 0) return;
  const first = firstError === undefined ? '' : ` The first error: ${firstError.message}`;
  process.stderr.write(`${formatCount(failed)} of ${formatCount(queries)} queries failed and have no hits.${first}\n`);
}
