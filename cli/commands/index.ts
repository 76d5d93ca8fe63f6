import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { CorpusOptions } from '../../corpus/open-corpus.ts';
import { parseTemplate } from '../../corpus/passage-template.ts';
import { buildForecast } from '../../evaluation/speed/search-forecast.ts';
import type { BuildOptions } from '../../indexer/building/build.ts';
import { buildIndex } from '../../indexer/building/build-index.ts';
import { currentIndex } from '../../indexer/building/is-current.ts';
import { recordedReading } from '../../indexer/update/last-reading.ts';
import { planUpdate } from '../../indexer/update/plan-update.ts';
import { type UpdateOptions, updateIndex } from '../../indexer/update/update-index.ts';
import { TrawlError, usageError } from '../../src/base/errors.ts';
import { PRECISIONS } from '../../src/encoder/identity/model-identity.ts';
import type { ModelOverrides } from '../../src/encoder/model/model-overrides.ts';
import { isServerUrl } from '../../src/encoder/model-server/server-url.ts';
import type { TextEncoder } from '../../src/encoder/text-encoder.ts';
import { parseColumns } from '../../src/engine/filter/column.ts';
import type { UpdateType } from '../../src/index/manifest/build-records.ts';
import { INDEX_MANIFEST_FILE, type IndexManifest } from '../../src/index/manifest/index-manifest.ts';
import { readIndexManifest } from '../../src/index/manifest/read-manifest.ts';
import { recordedModel, recordedOverrides } from '../../src/search/opening/open-index-encoder.ts';
import { isOpenSearchAddress } from '../../src/stores/opensearch/opensearch-address.ts';
import { MILVUS_DEFAULTS } from '../../src/stores/publish/publish-milvus.ts';
import { OPENSEARCH_DEFAULTS } from '../../src/stores/publish/publish-opensearch.ts';
import { isPublishedAddress } from '../../src/stores/published/published-address.ts';
import { BM25_OPTIONS, givenBm25 } from '../building/bm25-options.ts';
import { BUILD_OPTIONS, requestedUpdate, UPDATE_OPTIONS } from '../building/build-options.ts';
import { jsonFacts, jsonUpdateSummary, textUpdateSummary } from '../building/build-summary.ts';
import { COLUMN_OPTIONS, CORPUS_OPTIONS, corpusOptions } from '../building/corpus-options.ts';
import {
  openForBuild,
  printPlan,
  runBuild,
  shardOf,
  sharedBuildOptions,
  withBuildProgress,
} from '../building/run-build.ts';
import {
  givenVectors,
  newWorkingFile,
  refuseVectorFileOptions,
  VECTOR_FILE_OPTIONS,
} from '../building/vector-options.ts';
import { checkEndpointOptions, ENDPOINT_OPTIONS, endpointOptions } from '../model/endpoint-options.ts';
import {
  DEVICE_OPTION,
  givenOverrides,
  modelOverrides,
  OVERRIDE_OPTIONS,
  recordedFolder,
  SHARE_WEIGHTS_OPTION,
} from '../model/model-options.ts';
import { refuseOptions, requiredOption } from '../options/checks.ts';
import * as option from '../options/option.ts';
import { type CommandContext, defineCommand, EXIT } from '../program/command.ts';
import { publishFolder } from '../stores/publish-folder.ts';
import { workFolder } from '../stores/work-folder.ts';

const options = {
  out: option.text(
    'DIR|ADDRESS',
    'The index directory to write, or the address of a collection in Milvus (milvus://…) or of an index in OpenSearch (opensearch://…, docs/cluster.md) with --work. Required.',
  ),
  work: option.text(
    'DIR',
    'With an address as --out: the index directory that is built, then published, and kept for updates. If it is complete and of the same corpus, model and options, it is published without being built again.',
  ),
  model: option.text(
    { value: 'NAME|DIR|URL', default: 'token-average-256' },
    'The encoder: a name in models/, the path of a model folder, or the URL of an embedding server, several separated by commas (docs/endpoints.md). The default is a small encoder for first tries; for good results use E5 or BGE (`trawl model add`).',
  ),
  overwrite: option.flag('Replace the index at OUT. The old index stays usable until the new one is complete.'),
  'if-changed': option.flag(
    'Do nothing if the index at OUT was built from the same files with the same model and options; otherwise replace it.',
  ),
  ...CORPUS_OPTIONS,
  ...OVERRIDE_OPTIONS,
  ...ENDPOINT_OPTIONS,
  precision: option.choice(
    PRECISIONS,
    "Precision of the model: float32, bfloat16 (on CPUs with AVX-512 BF16 about twice as fast, nearly as accurate), int8 (faster on the CPU, slightly less accurate) or float16 (for CUDA). Default: the model's own; float16 on CUDA.",
  ),
  device: DEVICE_OPTION,
  'share-weights': SHARE_WEIGHTS_OPTION,
  workers: option.integer(
    { min: 1, max: 1024 },
    'Encoder threads; on GPUs, of each device. Default: the cores available to this process; on GPUs 1 to 8, by the size of the model.',
  ),
  'from-embeddings': option.list(
    'FILE',
    'Copy the vectors from this file (FAISS flat, .npy, raw memmap, pickled arrays; in the order of the passages) instead of embedding; float16 is converted to float32. A folder means all its files. `trawl import` uses the files in place.',
  ),
  ...BM25_OPTIONS,
  bm25: {
    ...BM25_OPTIONS.bm25,
    help: `${BM25_OPTIONS.bm25.help} Without --model and --from-embeddings the index has no vectors, and no encoder is needed.`,
  },
  ...COLUMN_OPTIONS,
  ...VECTOR_FILE_OPTIONS,
  ...UPDATE_OPTIONS,
  ...BUILD_OPTIONS,
} as const;

type Context = CommandContext<typeof options>;

export const indexCommand = defineCommand({
  name: 'index',
  summary: 'embed a corpus and write an index directory',
  description:
    'Embeds the passages of a corpus (JSONL, TSV, Parquet; gzip, zstd) and writes an index directory for `trawl serve` and ' +
    '`trawl search`: the vectors as a FAISS file, the passages in SQLite, and manifests that record model, corpus and ' +
    'options. The files of a directory are read in the byte order of their paths.\n\n' +
    'A build writes to OUT.partial and renames it to OUT when it is complete, so that a build that fails or is stopped does ' +
    'not change OUT. The same command resumes a build that was stopped, was killed or ran out of disk space. SIGTERM stops a ' +
    'build after the current batch with exit code 75, Ctrl-C with 130.\n\n' +
    'With an address in Milvus or OpenSearch as --out, the index is built in the folder --work, published as by `trawl publish`, and compared; the same command resumes either part.\n\n' +
    '--update and --append change the index at OUT: new passages are embedded into new shards, and one rename of the ' +
    'manifest publishes all changes. A server that has the index open keeps the old version until it reloads.\n\n' +
    'With --json: {"built", "folder", "rows", "dimension", "metric", "generation", "model", "corpus"}, and after a build ' +
    '"shards", "tokens", "resumedRows", "skippedExamples", "passagesWithoutId", "duplicates", "stageMs"; on stderr ' +
    '{"event": "progress", "stage", "passages", "share", …} at the start of each stage and every ten seconds. ' +
    'With an address as --out, a second line as of `trawl publish`. After --update or --append: {"changed", "folder", "kept", "restored", "added", "removed", "rows", "deletedRows", "generation", …}.',
  positionals: {
    usage: '<corpus...>',
    help: { 'corpus...': 'Files and directories, read in the order given.' },
    max: 1000,
  },
  options,
  examples: [
    'trawl index corpus/sample/passages.jsonl --out indexes/sample',
    'trawl index wiki-18.jsonl.gz --model models/e5-base-v2 --out indexes/wiki18',
    'trawl index wiki-18.jsonl.gz --model models/e5-base-v2 --out indexes/wiki18 --shard 3/8',
    'trawl index wiki-18.jsonl.gz --bm25 --out indexes/wiki18-words',
    'trawl index wiki-18.jsonl.gz --model models/e5-base-v2 --bm25 --out indexes/wiki18',
    'trawl index news.jsonl --column source:string --column meta.date:date --out indexes/news',
    'trawl index wiki-18.jsonl.gz --model models/e5-base-v2 --out milvus://localhost:19530/default/wiki18 --work indexes/wiki18',
    'trawl index wiki-18.jsonl.gz --model models/e5-base-v2 --bm25 --out opensearch://localhost:9200/wiki18 --work indexes/wiki18',
    'trawl index wiki-20.jsonl.gz --update --out indexes/wiki18',
    'trawl index wiki-18.jsonl.gz --model http://gpu-1:8000,http://gpu-2:8000 --out indexes/wiki18',
  ],
  resumable: true,
  async run(context) {
    const { options, positionals, given, out, note } = context;
    const place = requiredOption('out', options.out, 'the index directory to write, such as --out indexes/wiki18');
    const isRemote = isPublishedAddress(place);
    if (!isRemote && options.work !== undefined) {
      throw usageError(
        '--work has no effect: --out is a folder. Omit it, or name an address in Milvus or OpenSearch as --out.',
      );
    }
    const folder = isRemote ? await workFolder(place, options.work, given) : place;
    const fromFiles = options['from-embeddings'].length > 0;
    if (!fromFiles) refuseVectorFileOptions(given);
    checkEndpointOptions(options.model, given);
    const update = requestedUpdate(options, given);
    if (update !== undefined) return runUpdate(update, folder, context);
    parseTemplate(options['passage-template']);
    const shard = shardOf(options.shard, given);
    const bm25 = givenBm25(options, given);
    const columns = parseColumns(options.column);
    const overrides = modelOverrides(options);
    const endpoint = endpointOptions(options, { forBuild: true });
    const open = (changed: ModelOverrides) =>
      openForBuild(options.model, options, context, { endpoint, overrides: { ...overrides, ...changed } });
    if (fromFiles && options['if-changed']) {
      throw usageError('--if-changed does not compare vectors from files. Use --overwrite with --from-embeddings.');
    }
    // An index for BM25 alone needs no encoder.
    const bm25Only = bm25 !== undefined && !given.has('model') && !fromFiles;
    if (bm25Only) {
      refuseOptions(
        given,
        [...Object.keys(OVERRIDE_OPTIONS), 'precision', 'device', 'share-weights', 'workers'],
        ': --bm25 without --model builds an index without vectors. Add --model to also embed the passages',
      );
    }
    const encoder = bm25Only ? undefined : await open({});
    const workingFile = newWorkingFile(folder);
    // A complete index of an earlier run is not built again, but only published.
    const keepsCurrent = options['if-changed'] || (isRemote && !options.overwrite);
    let code: number;
    try {
      code = await withBuildProgress(context, async (progress) => {
        // With --from-embeddings, `bm25Only` is false, so an encoder is open.
        const vectors = fromFiles
          ? await givenVectors(options['from-embeddings'], options, {
              use: 'copy',
              workingFile,
              signal: context.signal,
              encoder: encoder!,
              reopen: open,
            })
          : undefined;
        const build: BuildOptions = {
          ...sharedBuildOptions(progress, context),
          corpus: positionals,
          corpusOptions: corpusOptions(options),
          encoder,
          vectors,
          bm25,
          columns,
          modelFolder: bm25Only ? undefined : recordedFolder(options.model),
          out: folder,
          overwrite: options.overwrite || options['if-changed'],
          passageTemplate: options['passage-template'],
        };
        if (keepsCurrent && existsSync(join(folder, INDEX_MANIFEST_FILE))) {
          const current = await currentIndex(folder, build);
          if (current !== undefined) {
            if (options.json) out(JSON.stringify({ built: false, folder: resolve(folder), ...jsonFacts(current) }));
            else note(`${folder} is up to date; nothing to do.`);
            return EXIT.ok;
          }
        }
        return runBuild(build, shard, progress, context, options['if-changed'] ? buildChanged : buildIndex);
      });
    } finally {
      await encoder?.close();
      if (existsSync(workingFile)) await rm(workingFile);
    }
    if (!isRemote || options.plan || code !== EXIT.ok) return code;
    const settings = isOpenSearchAddress(place)
      ? ({ store: 'OpenSearch', ...OPENSEARCH_DEFAULTS, alias: undefined } as const)
      : ({ store: 'Milvus', ...MILVUS_DEFAULTS, alias: undefined } as const);
    return publishFolder(folder, place, settings, context);
  },
});

/** Builds for --if-changed. Discards an unfinished build of another corpus or model. */
async function buildChanged(build: BuildOptions): ReturnType<typeof buildIndex> {
  try {
    return await buildIndex(build);
  } catch (error) {
    if (!(error instanceof TrawlError) || error.code !== 'BUILD_DIFFERS') throw error;
    return buildIndex({ ...build, restart: true });
  }
}

/** Runs `trawl index --update` or `--append`. Options that are not given have the values of the index. */
async function runUpdate(type: UpdateType, folder: string, context: Context): Promise<number> {
  const { options, positionals, given, out, note } = context;
  const manifest = readIndexManifest(folder);
  checkTemplate(manifest, options['passage-template'], given);
  const encoder = await encoderFor(folder, manifest, context);
  try {
    return await withBuildProgress(context, async (progress) => {
      const update: UpdateOptions = {
        ...sharedBuildOptions(progress, context),
        type,
        corpus: positionals,
        corpusOptions: { ...corpusOptions(options), ...recordedColumns(folder, manifest, given) },
        encoder,
        out: folder,
      };
      if (options.plan) {
        const plan = await planUpdate(update);
        return printPlan(plan, await buildForecast(plan, update), progress, context);
      }
      const summary = await updateIndex(update);
      progress.stop();
      if (options.json) out(JSON.stringify(jsonUpdateSummary(summary)));
      else for (const line of textUpdateSummary(summary)) note(line);
      return EXIT.ok;
    });
  } finally {
    await encoder?.close();
  }
}

/** Opens the encoder of an update; undefined for an index without vectors. */
async function encoderFor(folder: string, manifest: IndexManifest, context: Context): Promise<TextEncoder | undefined> {
  const { options, given } = context;
  const override = Object.keys(OVERRIDE_OPTIONS).find((name) => given.has(name));
  if (override !== undefined && given.has('model') && isServerUrl(options.model)) {
    throw usageError(`--${override} has no effect: an update takes the settings of the index. Omit it.`);
  }
  const { model } = manifest;
  if (model === null) return undefined;
  const name = given.has('model') ? options.model : recordedModel([folder], { ...manifest, model });
  return openForBuild(name, options, context, {
    precision: options.precision ?? model.precision ?? undefined,
    endpoint: endpointOptions(options, { forBuild: true }),
    recorded: model,
    overrides: { ...recordedOverrides(model), ...givenOverrides(options) },
  });
}

function checkTemplate({ corpus }: IndexManifest, template: string, given: ReadonlySet<string>): void {
  if (!given.has('passage-template') || template === corpus.passageTemplate) return;
  throw usageError(
    `--passage-template is ${JSON.stringify(template)}, but the index was built with ` +
      `${JSON.stringify(corpus.passageTemplate)}. Omit the option, or build the index again.`,
  );
}

/** The options with which the corpus was read last, unless they are given. The stored documents depend on them. */
function recordedColumns(folder: string, manifest: IndexManifest, given: ReadonlySet<string>): CorpusOptions {
  const { tsvLayout, tsvIdType, columns } = recordedReading(folder, manifest);
  const namesColumn = ['id-column', 'text-column', 'title-column'].some((name) => given.has(name));
  return {
    ...(columns === undefined || namesColumn ? {} : { columns }),
    ...(tsvLayout === undefined || given.has('tsv-layout') ? {} : { tsvLayout }),
    ...(tsvIdType === undefined || given.has('tsv-id-type') ? {} : { tsvIdType }),
  };
}
