import { parseTemplate } from '../../corpus/passage-template.ts';
import type { BuildOptions } from '../../indexer/build/build-options.ts';
import type { ModelOverrides } from '../../src/embedding/model-overrides.ts';
import { openEncoder } from '../../src/embedding/open-encoder.ts';
import type { TextEncoder } from '../../src/embedding/text-encoder.ts';
import { TrawlError } from '../../src/errors.ts';
import { BUILD_OPTIONS } from '../build-options.ts';
import { defineCommand } from '../command.ts';
import { CORPUS_OPTIONS, corpusOptions } from '../corpus-options.ts';
import { asUsage, folderOfPath, modelOverrides, OVERRIDE_OPTIONS, PRECISION_OPTION } from '../model-options.ts';
import { runBuild, shardOf, sharedBuildOptions, withProgress } from '../run-build.ts';
import { givenVectors, VECTOR_FILE_OPTIONS } from '../vector-options.ts';

export const importCommand = defineCommand({
  name: 'import',
  summary: 'make an index of vectors that are there already, where they lie',
  description:
    'Adopts published vectors: a FAISS flat index (IxFI, IxF2, float16 IxSQ) or its pieces (part_aa, part_ab, …, in order, or ' +
    'their folder), .npy, a raw memmap of FlashRAG or Search-R1, or pickled arrays. Only search codes, passages and manifests are written; the ' +
    'vectors are read once, for checksums and codes, and served from where they are, so the files have to stay as they are. ' +
    'Row n of the vectors is that of passage n of the corpus.\n\n' +
    'Checked are header, metric, sizes, the number of rows against the corpus, that all values are finite, and with ' +
    '--check-model that the model gives these vectors. It is resumed, sharded and stopped as `trawl index` is.\n\n' +
    'With --json: as `trawl index`.',
  resumable: true,
  positionals: {
    usage: '<vectors...>',
    help: { 'vectors...': 'Files in the order of their rows, folders, or quoted patterns.' },
    min: 1,
    max: 1000,
  },
  options: {
    out: { kind: 'string', value: 'DIR', help: 'The index directory to make. Required.' },
    corpus: {
      kind: 'list',
      value: 'FILE',
      help: 'The corpus that the vectors were made from, in its order. Required; several times for several files.',
    },
    model: {
      kind: 'string',
      value: 'NAME|DIR',
      help: 'The model that the vectors were made with; queries will be embedded with it. Required.',
    },
    copy: { kind: 'flag', help: 'Copy the vectors into the index (as float32) instead of referring to the files.' },
    'relative-paths': {
      kind: 'flag',
      help: 'Refer to the files by paths relative to the index, so that both can be moved together.',
    },
    ...VECTOR_FILE_OPTIONS,
    overwrite: { kind: 'flag', help: 'Replace the index at OUT; it stays in place until the new one is complete.' },
    ...CORPUS_OPTIONS,
    ...OVERRIDE_OPTIONS,
    precision: { ...PRECISION_OPTION, help: "Which graph of the model embeds queries. Default: the model's own." },
    workers: {
      kind: 'integer',
      min: 1,
      max: 1024,
      help: 'Encoder threads of --check-model. Default: the cores this process may use.',
    },
    ...BUILD_OPTIONS,
  },
  examples: [
    'trawl import part_aa part_ab --corpus wiki-18.jsonl.gz --model e5-base-v2 --out indexes/wiki18',
    'trawl import emb_e5.memmap --corpus wiki-18.jsonl --model models/e5-base-v2 --out indexes/wiki18 --check-model 100',
  ],
  async run(context) {
    const { options, positionals, given } = context;
    const folder = required(options.out, '--out DIR, the index directory to make');
    const model = required(options.model, '--model NAME|DIR, the model that the vectors were made with');
    if (options.corpus.length === 0) required(undefined, '--corpus FILE, the corpus that the vectors were made from');
    if (options.copy && options['relative-paths']) {
      throw new TrawlError('USAGE', '--copy leaves no path to the files; leave out --relative-paths.');
    }
    parseTemplate(options['passage-template']);
    const shard = shardOf(options.shard, given);
    const { precision, workers } = options;
    const overrides = modelOverrides(options);
    const open = (changed: ModelOverrides): Promise<TextEncoder> =>
      asUsage(openEncoder(model, { workers, precision, overrides: { ...overrides, ...changed } }));
    const encoder = await open({});
    try {
      return await withProgress(options, (progress) => {
        const build: BuildOptions = {
          ...sharedBuildOptions(options, progress, context),
          corpus: options.corpus,
          corpusOptions: corpusOptions(options),
          encoder,
          vectors: givenVectors(positionals, options, {
            use: options.copy ? 'copy' : 'adopt',
            relativePaths: options['relative-paths'],
            encoder,
            reopen: open,
          }),
          modelFolder: folderOfPath(model),
          out: folder,
          overwrite: options.overwrite,
          passageTemplate: options['passage-template'],
        };
        return runBuild(build, shard, options, progress, context);
      });
    } finally {
      await encoder.close();
    }
  },
});

function required(value: string | undefined, what: string): string {
  if (value !== undefined && value !== '') return value;
  throw new TrawlError('USAGE', `Give ${what}.`);
}
