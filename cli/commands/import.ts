import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { parseTemplate } from '../../corpus/passage-template.ts';
import type { BuildOptions } from '../../indexer/building/build.ts';
import { usageError } from '../../src/base/errors.ts';
import { PRECISIONS } from '../../src/encoder/identity/model-identity.ts';
import type { ModelOverrides } from '../../src/encoder/model/model-overrides.ts';
import { parseColumns } from '../../src/engine/filter/column.ts';
import { BM25_OPTIONS, givenBm25 } from '../building/bm25-options.ts';
import { BUILD_OPTIONS } from '../building/build-options.ts';
import { COLUMN_OPTIONS, CORPUS_OPTIONS, corpusOptions } from '../building/corpus-options.ts';
import { openForBuild, runBuild, shardOf, sharedBuildOptions, withBuildProgress } from '../building/run-build.ts';
import { givenVectors, newWorkingFile, VECTOR_FILE_OPTIONS } from '../building/vector-options.ts';
import { checkEndpointOptions, ENDPOINT_OPTIONS, endpointOptions } from '../model/endpoint-options.ts';
import { modelOverrides, OVERRIDE_OPTIONS, recordedFolder } from '../model/model-options.ts';
import { requiredOption } from '../options/checks.ts';
import * as option from '../options/option.ts';
import { defineCommand } from '../program/command.ts';

export const importCommand = defineCommand({
  name: 'import',
  summary: 'make an index from existing vector files, without copying them',
  description:
    'Makes an index from existing vectors: a FAISS flat index (IxFI, IxF2, float16 IxSQ, also in an IDMap) or its pieces (part_aa, ' +
    'part_ab, …, in order, or their folder), .npy, .npz, safetensors, a raw memmap of FlashRAG or Search-R1, or pickled arrays. ' +
    'Row n must be the vector of passage n. Only search codes, passages and manifests are written. The vectors are read once and ' +
    'then searched in their own files, which must not change. Vectors in JSON lines, Parquet, .fvecs and pickles of rows (DPR) are ' +
    'copied into the index.\n\n' +
    'The import checks headers, metric, sizes and the number of rows, that all values are finite, and with --check-model that ' +
    'the model gives these vectors. It can be stopped, resumed and split into shards like `trawl index`.\n\n' +
    'With --json: as `trawl index`.',
  resumable: true,
  positionals: {
    usage: '<vectors...>',
    help: { 'vectors...': 'Files in the order of their rows, folders, or quoted patterns.' },
    max: 1000,
  },
  options: {
    out: option.text('DIR', 'The index directory to write. Required.'),
    corpus: option.list('FILE', 'The corpus of the vectors, in the same order. Required. Repeat it for several files.'),
    model: option.text(
      'NAME|DIR|URL',
      'The model that the vectors were made with: a name in models/, the path of a model folder, or the URL of an embedding server (docs/endpoints.md). It embeds the queries. Required.',
    ),
    copy: option.flag('Copy the vectors into the index (as float32) instead of using the files in place.'),
    'relative-paths': option.flag(
      'Record paths relative to the index, so that index and vectors can be moved together.',
    ),
    ...VECTOR_FILE_OPTIONS,
    overwrite: option.flag('Replace the index at OUT. The old index stays usable until the new one is complete.'),
    ...CORPUS_OPTIONS,
    ...OVERRIDE_OPTIONS,
    ...ENDPOINT_OPTIONS,
    precision: option.choice(PRECISIONS, "Precision of the model for queries. Default: the model's own."),
    workers: option.integer(
      { min: 1, max: 1024 },
      'Encoder threads of --check-model. Default: the cores available to this process.',
    ),
    ...BM25_OPTIONS,
    ...COLUMN_OPTIONS,
    ...BUILD_OPTIONS,
  },
  examples: [
    'trawl import part_aa part_ab --corpus wiki-18.jsonl.gz --model e5-base-v2 --out indexes/wiki18',
    'trawl import emb_e5.memmap --corpus wiki-18.jsonl --model models/e5-base-v2 --out indexes/wiki18 --check-model 100',
  ],
  async run(context) {
    const { options, positionals, given } = context;
    const folder = requiredOption('out DIR', options.out, 'the index directory to write');
    const model = requiredOption('model NAME|DIR|URL', options.model, 'the model that the vectors were made with');
    requiredOption('corpus FILE', options.corpus[0], 'the corpus of the vectors');
    if (options.copy && options['relative-paths']) {
      throw usageError('--relative-paths has no effect with --copy, which records no paths. Omit one of them.');
    }
    parseTemplate(options['passage-template']);
    const shard = shardOf(options.shard, given);
    const bm25 = givenBm25(options, given);
    const columns = parseColumns(options.column);
    const overrides = modelOverrides(options);
    checkEndpointOptions(model, given);
    const endpoint = endpointOptions(options, { forBuild: true });
    const open = (changed: ModelOverrides) =>
      openForBuild(model, options, context, { endpoint, overrides: { ...overrides, ...changed } });
    const encoder = await open({});
    const workingFile = newWorkingFile(folder);
    try {
      return await withBuildProgress(context, async (progress) => {
        const build: BuildOptions = {
          ...sharedBuildOptions(progress, context),
          corpus: options.corpus,
          corpusOptions: corpusOptions(options),
          encoder,
          vectors: await givenVectors(positionals, options, {
            use: options.copy ? 'copy' : 'adopt',
            relativePaths: options['relative-paths'],
            workingFile,
            signal: context.signal,
            encoder,
            reopen: open,
          }),
          bm25,
          columns,
          modelFolder: recordedFolder(model),
          out: folder,
          overwrite: options.overwrite,
          passageTemplate: options['passage-template'],
        };
        return runBuild(build, shard, progress, context);
      });
    } finally {
      await encoder.close();
      if (existsSync(workingFile)) await rm(workingFile);
    }
  },
});
