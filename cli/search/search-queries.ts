import { resolve } from 'node:path';
import { checkFilesApart, type NamedFile } from '../../evaluation/bulk-search/check-files-apart.ts';
import { NoEncoder } from '../../evaluation/bulk-search/no-encoder.ts';
import {
  checkOutputFormat,
  type OutputFormat,
  outputFormatOf,
} from '../../evaluation/bulk-search/outputs/output-format.ts';
import type { NamedIndex } from '../../evaluation/bulk-search/passage-ids.ts';
import { openQueryFile } from '../../evaluation/bulk-search/query-file.ts';
import type { QuerySource } from '../../evaluation/bulk-search/query-source.ts';
import { openQueryVectors } from '../../evaluation/bulk-search/query-vectors.ts';
import type { BulkProgress, BulkResult } from '../../evaluation/bulk-search/run-bulk-search.ts';
import { BATCH_QUERIES, type FileSearch, searchToFiles } from '../../evaluation/bulk-search/search-to-files.ts';
import { queryOf } from '../../evaluation/query-form.ts';
import { checkTrecField } from '../../evaluation/trec-run.ts';
import { usageError } from '../../src/base/errors.ts';
import { formatCount } from '../../src/base/format.ts';
import type { OptionValues } from '../../src/base/options/option-spec.ts';
import { packageVersion } from '../../src/base/package-root.ts';
import { closeAll } from '../../src/base/system/close-all.ts';
import type { OutputSettings } from '../../src/base/system/output-settings.ts';
import { requireVectors } from '../../src/index/manifest/vector-space.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import type { OpenRetrieverOptions } from '../../src/search/opening/open-retriever.ts';
import type { SearchSourceInfo } from '../../src/search/retriever.ts';
import type { ServerFacts } from '../../src/stores/trawl-server/server-info.ts';
import { parseShard } from '../building/build-options.ts';
import { type OpenSource, openSource, type SERVER_OPTIONS } from '../open/search-source.ts';
import type { QUERY_FORM_OPTION, QUERY_TEMPLATE_OPTION } from '../options/query-form.ts';
import { RANKING_OPTIONS, rankingOf } from '../options/ranking-options.ts';
import type { RERANK_OPTIONS } from '../options/rerank-options.ts';
import type { RETRIEVER_OPTIONS } from '../options/retriever-options.ts';
import { type VIEW_OPTIONS, viewFiles, viewHash, viewOption } from '../options/view-options.ts';
import { stepProgress } from '../output/progress/step-progress.ts';
import { type CommandContext, EXIT } from '../program/command.ts';
import { parseServedIndexes } from '../serve/served-indexes.ts';
import type { BULK_OPTIONS } from './bulk-options.ts';

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

/** `trawl search INDEX --queries FILE --out OUT`: returns the exit code. `folder` is undefined with --url; `settings` are those of `searchSettings`. */
export async function searchQueries(
  folder: string | undefined,
  settings: OpenRetrieverOptions,
  context: CommandContext<Table>,
): Promise<number> {
  const { options, given, note } = context;
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
    const retrieving: OpenRetrieverOptions = {
      ...settings,
      ...(folder === undefined ? {} : vectorOptions(folder, options)),
      batchQueries: BATCH_QUERIES,
      // The batches in flight are few, and none is refused.
      maxWaitingBytes: Number.POSITIVE_INFINITY,
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
  throw usageError(
    '--queries and --query-vectors do not take an address in Milvus or OpenSearch. Name the folder of the index.',
  );
}

/** What is written. */
interface OutputPlan {
  readonly format: OutputFormat;
  /** The hits and, with --scores-out, the scores. */
  readonly files: readonly string[];
}

/** @throws TrawlError USAGE for options that do not fit each other, or a file that would be read and written. */
function outputPlan(folder: string | undefined, options: Options): OutputPlan {
  const format = outputFormatOf(options.out!, options['out-format']);
  const isGroup = folder !== undefined && options.index.length > 0;
  const files = [options.out!, ...(options['scores-out'] === undefined ? [] : [options['scores-out']])];
  checkOutputFormat(format, { isGroup, hasScoreFile: files.length === 2 });
  checkFilesApart(namedOutputs(options), namedInputs(options), indexFolders(folder, options));
  if (format === 'trec') checkTrecField('tag', options.tag);
  return { format, files };
}

interface Opened {
  readonly folder: string | undefined;
  readonly source: QuerySource;
  readonly range: FileSearch['range'];
  readonly opened: OpenSource;
}

/** Returns the exit code. */
async function searchInto(
  { format, files }: OutputPlan,
  { folder, source, range, opened: { source: searched, server } }: Opened,
  { options, signal, note, out }: CommandContext<Table>,
): Promise<number> {
  const { info } = searched;
  const progress = stepProgress({ silent: options.quiet || options.json });
  try {
    const { wasComplete, ...result } = await searchToFiles({
      source,
      range,
      searched,
      indexes: folder === undefined ? undefined : indexesOf(folder, options, info),
      k: options.k,
      ranking: { ...rankingOf(options, info, options.k), template: options['query-template'] },
      format,
      files,
      tag: options.tag,
      settings: await settingsOf(source, info, options, { format, server }),
      server: server?.url,
      restart: options.restart,
      saveMs: 1000 * options['checkpoint-seconds'],
      onResumed: (queries) => note(`resuming after ${formatCount(queries)} queries`),
      onProgress: shownOn(progress.update),
      signal,
    });
    progress.stop();
    if (wasComplete)
      note(`${options.out} is complete, with the same queries, index and options. Search again with --restart.`);
    report(result, options, { out, note });
    return result.failed > 0 ? EXIT.failed : EXIT.ok;
  } finally {
    progress.stop();
  }
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
    throw usageError('With --url, --index names one served index. Search each index alone.');
  }
  if (vectors !== undefined) {
    throw usageError(
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
  if (mode === 'bm25') throw usageError('--query-vectors has no effect with --mode bm25, which ranks by words.');
  if (options.index.length > 0) {
    throw usageError('--query-vectors cannot be combined with --index. Search each index alone.');
  }
  if (texts === undefined && (mode === 'hybrid' || options.rerank !== undefined)) {
    const reading = mode === 'hybrid' ? '--mode hybrid' : '--rerank';
    throw usageError(`${reading} reads the words of the queries: give them with --queries beside --query-vectors.`);
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
