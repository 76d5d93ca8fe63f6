import { resolve } from 'node:path';
import { checkFilesApart, type NamedFile } from '../../evaluation/bulk-search/check-files-apart.ts';
import { noEncoder } from '../../evaluation/bulk-search/no-encoder.ts';
import { checkOutputFormat, outputFormatOf } from '../../evaluation/bulk-search/outputs/output-format.ts';
import type { NamedIndex } from '../../evaluation/bulk-search/passage-ids.ts';
import { openQueryFile, type QuerySource } from '../../evaluation/bulk-search/query-file.ts';
import { openQueryVectors } from '../../evaluation/bulk-search/query-vectors.ts';
import type { BulkProgress } from '../../evaluation/bulk-search/run-bulk-search.ts';
import { BATCH_QUERIES, searchToFiles } from '../../evaluation/bulk-search/search-to-files.ts';
import { queryOf } from '../../evaluation/query-form.ts';
import { checkTrecField } from '../../evaluation/run.ts';
import { usageError } from '../../src/base/errors.ts';
import { formatCount } from '../../src/base/format.ts';
import { packageVersion } from '../../src/base/package-root.ts';
import { closeAll } from '../../src/base/system/close-all.ts';
import type { OutputSettings } from '../../src/base/system/output-report.ts';
import { requireVectors } from '../../src/index/manifest/index-manifest.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import type { OpenRetrieverOptions } from '../../src/search/opening/open-retriever.ts';
import type { SearchSourceInfo } from '../../src/search/retriever.ts';
import type { ServerFacts } from '../../src/stores/trawl-server/native-replies.ts';
import { parseShard } from '../building/build-options.ts';
import { type OpenSource, openSource } from '../open/search-source.ts';
import { namedFiles } from '../options/checks.ts';
import { RANKING_OPTIONS, rankingOf } from '../options/ranking-options.ts';
import { viewFiles, viewHash, viewOption } from '../options/view-options.ts';
import { type ShowStep, withProgress } from '../output/progress/step-progress.ts';
import { type CommandContext, EXIT } from '../program/command.ts';
import { parseServedIndexes } from '../serve/served-indexes.ts';
import type { SEARCH_OPTIONS, SearchOptions } from './search-options.ts';

type Context = CommandContext<typeof SEARCH_OPTIONS>;

/** `trawl search INDEX --queries FILE --out OUT`: returns the exit code. `folder` is undefined with --url; `searchSettings` makes `settings`. */
export async function searchQueries(
  folder: string | undefined,
  settings: OpenRetrieverOptions,
  context: Context,
): Promise<number> {
  const { options, signal, note, out } = context;
  refuseAddresses([folder, ...options.index]);
  const shard = parseShard(options.shard) ?? { index: 0, of: 1 };
  const { format, files } = outputPlan(folder, options);
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
    const { index } = options;
    opened = await openSource({ options, folder, further: index, served: index[0], retrieving, note });
    const { source: searched, server } = opened;
    const { info } = searched;
    const decisive = await decisiveSettings(source, info, options, format, server);
    const { wasComplete, ...result } = await withProgress(options, (show) =>
      searchToFiles({
        source,
        range,
        searched,
        indexes: folder === undefined ? undefined : indexesOf(folder, options, info),
        k: options.k,
        ranking: { ...rankingOf(options, info, options.k), template: options['query-template'] },
        format,
        files,
        tag: options.tag,
        settings: decisive,
        server: server?.url,
        restart: options.restart,
        saveMs: 1000 * options['checkpoint-seconds'],
        onResumed: (queries) => note(`resuming after ${formatCount(queries)} queries`),
        onProgress: progressOf(show),
        signal,
      }),
    );
    if (wasComplete)
      note(`${options.out} is complete, with the same queries, index and options. Search again with --restart.`);
    const { queries, resumed, failed, firstError } = result;
    if (options.json) out(JSON.stringify({ out: options.out, queries, k: options.k, resumed, failed }));
    else note(`${options.out}: hits of ${queries} queries`);
    if (failed === 0) return EXIT.ok;
    const first = firstError === undefined ? '' : ` The first error: ${firstError.message}`;
    process.stderr.write(
      `${formatCount(failed)} of ${formatCount(queries)} queries failed and have no hits.${first}\n`,
    );
    return EXIT.failed;
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

/**
 * The format of the hits, and the files that are written: the hits and, with --scores-out, the scores.
 *
 * @throws TrawlError USAGE for options that do not fit each other, or a file that would be read and written.
 */
function outputPlan(folder: string | undefined, options: SearchOptions) {
  const format = outputFormatOf(options.out!, options['out-format']);
  const isGroup = folder !== undefined && options.index.length > 0;
  const files = [options.out!, options['scores-out']].filter((file) => file !== undefined);
  checkOutputFormat(format, { isGroup, hasScoreFile: files.length === 2 });
  checkFilesApart(namedFiles(options, ['out', 'scores-out']), namedInputs(options), indexFolders(folder, options));
  if (format === 'trec') checkTrecField('tag', options.tag);
  return { format, files };
}

/** The files that the options name and that are read. */
function namedInputs(options: SearchOptions): NamedFile[] {
  const view = options.url === undefined ? viewOption(options) : undefined;
  return [
    ...namedFiles(options, ['key-file', 'queries', 'query-vectors', 'rerank-key-file', 'views']),
    ...viewFiles(view).map((path) => ({ name: 'the file of the view', path })),
  ];
}

function indexFolders(folder: string | undefined, { index }: SearchOptions): string[] {
  if (folder === undefined) return [];
  return index.length === 0 ? [folder] : parseServedIndexes([folder, ...index]).map((each) => each.folder);
}

/** @throws TrawlError USAGE for what a server cannot be asked. */
function checkServed({ url, index, 'query-vectors': vectors }: SearchOptions): void {
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
async function openQueries(folder: string | undefined, { options, signal }: Context): Promise<QuerySource> {
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
function vectorOptions(folder: string, options: SearchOptions): OpenRetrieverOptions {
  if (options['query-vectors'] === undefined) return {};
  const { model } = requireVectors(folder, openIndexDirectory(folder).manifest);
  return { encoder: noEncoder(model), singleFlight: false };
}

function indexesOf(folder: string, options: SearchOptions, info: SearchSourceInfo): NamedIndex[] {
  if (info.members === undefined) return [{ name: undefined, folder, generation: info.generation }];
  const folders = parseServedIndexes([folder, ...options.index]);
  return info.members.map(({ index, generation }, i) => ({ name: index, folder: folders[i]!.folder, generation }));
}

/** The options that decide the bytes of an output; threads, memory and progress do not. */
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
] as const satisfies readonly (keyof SearchOptions)[];

async function decisiveSettings(
  source: QuerySource,
  info: SearchSourceInfo,
  options: SearchOptions,
  format: string,
  server: ServerFacts | undefined,
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

function progressOf(show: ShowStep): (progress: BulkProgress) => void {
  const begun = performance.now();
  return ({ done, queries, resumed }) => {
    const seconds = (performance.now() - begun) / 1000;
    const rate = done > resumed ? `, ${formatCount(Math.round((done - resumed) / seconds))} queries/s` : '';
    const facts = `${formatCount(done)} of ${formatCount(queries)} queries${rate}`;
    show({ step: 'searching', share: queries === 0 ? 1 : done / queries, facts });
  };
}
