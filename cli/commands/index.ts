import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseTemplate } from '../../corpus/passage-template.ts';
import { buildIndex } from '../../indexer/build/build-index.ts';
import type { BuildOptions } from '../../indexer/build/build-options.ts';
import { currentIndex } from '../../indexer/build/is-current.ts';
import type { ModelOverrides } from '../../src/embedding/model-overrides.ts';
import { openEncoder } from '../../src/embedding/open-encoder.ts';
import type { TextEncoder } from '../../src/embedding/text-encoder.ts';
import { TrawlError } from '../../src/errors.ts';
import { INDEX_MANIFEST_FILE } from '../../src/manifest/index-manifest.ts';
import { BUILD_OPTIONS, UPDATE_OPTIONS, updateKind } from '../build-options.ts';
import { jsonFacts } from '../build-summary.ts';
import { defineCommand, EXIT } from '../command.ts';
import { CORPUS_OPTIONS, corpusOptions } from '../corpus-options.ts';
import {
  asUsage,
  DEVICE_OPTION,
  folderOfPath,
  modelOverrides,
  OVERRIDE_OPTIONS,
  PRECISION_OPTION,
  SHARE_WEIGHTS_OPTION,
  shareWeights,
} from '../model-options.ts';
import { runBuild, shardOf, sharedBuildOptions, withProgress } from '../run-build.ts';
import { runUpdate } from '../update-index.ts';
import { givenVectors, refuseWithoutVectors, VECTOR_FILE_OPTIONS } from '../vector-options.ts';

export const indexCommand = defineCommand({
  name: 'index',
  summary: 'embed a corpus and write an index directory',
  description:
    'Reads passages (JSONL, TSV, Parquet; gzip, zstd), stores them, embeds them with a model and writes a directory that ' +
    '`trawl serve` and `trawl search` open: a FAISS-compatible vectors.faiss, the passages in SQLite, and manifests that ' +
    'say what it was made with. Directories are read file by file in the byte order of their paths.\n\n' +
    'Everything is written to OUT.partial and takes the place of OUT when it is complete; a build that fails or is stopped ' +
    'leaves OUT as it was. What was done stays in OUT.partial, and the same command goes on there, whether the build was ' +
    'stopped, killed or ran out of disk. SIGTERM ends it after the batch in hand with exit code 75, Ctrl-C with 130.\n\n' +
    'With --update or --append the index at OUT is changed in place of a new one made: what is new is embedded into new shards, ' +
    'and the index takes them, and the removals, in by one rename of its manifest. A server that has it open keeps what it opened.\n\n' +
    'With --json: {"built", "folder", "rows", "dimension", "metric", "generation", "model", "corpus"}, and after a build ' +
    '"shards", "tokens", "resumedRows", "skippedExamples", "passagesWithoutId", "duplicates", "stageMs"; on stderr ' +
    '{"event": "progress", "stage", "passages", "share", …} at the start of each stage and every ten seconds. ' +
    'After --update or --append: {"changed", "folder", "kept", "restored", "added", "removed", "rows", "removedRows", "generation", …}.',
  positionals: {
    usage: '<corpus...>',
    help: { 'corpus...': 'Files and directories, read in the order given.' },
    min: 1,
    max: 1000,
  },
  options: {
    out: { kind: 'string', value: 'DIR', help: 'The index directory to make. Required.' },
    model: {
      kind: 'string',
      value: 'NAME|DIR',
      default: 'token-average-256',
      help: 'The encoder: a name in models/ or the path of a model folder. The default is the small encoder that comes along; for results take E5 or BGE.',
    },
    overwrite: { kind: 'flag', help: 'Replace the index at OUT; it stays in place until the new one is complete.' },
    'if-changed': {
      kind: 'flag',
      help: 'Do nothing when the index at OUT was made from the same files with the same model and options; otherwise replace it.',
    },
    ...CORPUS_OPTIONS,
    ...OVERRIDE_OPTIONS,
    precision: {
      ...PRECISION_OPTION,
      help: "Which graph of the model: float32, int8 (faster on the CPU, nearly as good), float16 (for CUDA). Default: the model's own; float16 on CUDA.",
    },
    device: DEVICE_OPTION,
    'share-weights': SHARE_WEIGHTS_OPTION,
    workers: {
      kind: 'integer',
      min: 1,
      max: 1024,
      help: 'Encoder threads on the CPU. Default: the cores this process may use.',
    },
    'from-embeddings': {
      kind: 'list',
      value: 'FILE',
      help: 'Take the vectors from these files (FAISS flat, .npy, raw memmap, pickled arrays; in the order of the passages) instead of embedding: the index gets its own copy, float16 widened to float32. Give it several times, or a folder. `trawl import` refers to the files in place of copying.',
    },
    ...VECTOR_FILE_OPTIONS,
    ...UPDATE_OPTIONS,
    ...BUILD_OPTIONS,
  },
  examples: [
    'trawl index corpus/sample/passages.jsonl --out indexes/sample',
    'trawl index wiki-18.jsonl.gz --model models/e5-base-v2 --out indexes/wiki18',
    'trawl index wiki-18.jsonl.gz --model models/e5-base-v2 --out indexes/wiki18 --shard 3/8',
    'trawl index wiki-20.jsonl.gz --update --out indexes/wiki18',
  ],
  resumable: true,
  async run(context) {
    const { options, positionals, given, out, note } = context;
    const folder = required(options.out);
    const reading = corpusOptions(options);
    const fromFiles = options['from-embeddings'].length > 0;
    if (!fromFiles) refuseWithoutVectors(given);
    const kind = updateKind(options, given);
    if (kind !== undefined) {
      return runUpdate({ ...context, kind, folder, corpus: positionals, corpusOptions: reading });
    }
    parseTemplate(options['passage-template']);
    const shard = shardOf(options.shard, given);
    const overrides = modelOverrides(options);
    const open = (changed: ModelOverrides): Promise<TextEncoder> =>
      asUsage(
        openEncoder(options.model, {
          workers: options.workers,
          device: options.device,
          shareWeights: shareWeights(options['share-weights']),
          precision: options.precision,
          overrides: { ...overrides, ...changed },
        }),
      );
    if (fromFiles && options['if-changed']) {
      throw new TrawlError(
        'USAGE',
        '--if-changed compares corpus and model, not vectors; use --overwrite with --from-embeddings.',
      );
    }
    const encoder = await open({});
    try {
      return await withProgress(options, async (progress) => {
        const vectors = fromFiles
          ? givenVectors(options['from-embeddings'], options, { use: 'copy', encoder, reopen: open })
          : undefined;
        if (options['if-changed'] && existsSync(join(folder, INDEX_MANIFEST_FILE))) {
          const current = await currentIndex(folder, {
            corpus: positionals,
            corpusOptions: reading,
            uniqueIds: options['unique-ids'],
            model: encoder.identity,
            passageTemplate: options['passage-template'],
          });
          if (current !== undefined) {
            if (options.json) out(JSON.stringify({ built: false, folder: resolve(folder), ...jsonFacts(current) }));
            else note(`${folder} is current; nothing to do.`);
            return EXIT.ok;
          }
        }
        const build: BuildOptions = {
          ...sharedBuildOptions(options, progress, context),
          corpus: positionals,
          corpusOptions: reading,
          encoder,
          vectors,
          modelFolder: folderOfPath(options.model),
          out: folder,
          overwrite: options.overwrite || options['if-changed'],
          passageTemplate: options['passage-template'],
        };
        return runBuild(build, shard, options, progress, context, options['if-changed'] ? buildChanged : buildIndex);
      });
    } finally {
      await encoder.close();
    }
  },
});

function required(out: string | undefined): string {
  if (out !== undefined && out !== '') return out;
  throw new TrawlError('USAGE', 'Name the directory to make: --out DIR, for example --out indexes/wiki18.');
}

/** Who asks for what is current has no use for the half of something else. */
async function buildChanged(build: BuildOptions): ReturnType<typeof buildIndex> {
  try {
    return await buildIndex(build);
  } catch (error) {
    if (!(error instanceof TrawlError) || error.code !== 'BUILD_DIFFERS') throw error;
    return buildIndex({ ...build, restart: true });
  }
}
