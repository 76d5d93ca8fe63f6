import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { BASELINE_CASES, installBaselines } from '../../bench/baselines.ts';
import { benchEmbed } from '../../bench/bench-embed.ts';
import { BASELINES } from '../../bench/bench-engine.ts';
import { benchFlat } from '../../bench/bench-flat.ts';
import { benchIndex } from '../../bench/bench-index.ts';
import { EMBED_BASELINES } from '../../bench/embed-engine.ts';
import { indexReport } from '../../bench/index-record.ts';
import { embedReport, flatReport } from '../../bench/report.ts';
import { availableCores } from '../../src/embedding/available-cores.ts';
import { TrawlError } from '../../src/errors.ts';
import { PRECISIONS } from '../../src/manifest/model-identity.ts';
import { VECTOR_DTYPES, type VectorDtype } from '../../src/vector-index/vector-segments.ts';
import { parseBandwidth, parseCounts, parseNames } from '../bench-options.ts';
import { defineCommand, EXIT } from '../command.ts';

/** Options that describe synthetic vectors; a file says these things itself. */
const SYNTHETIC_OPTIONS = ['rows', 'dimension', 'dtype', 'like'] as const;

/** Options that mean nothing to the other case. */
const OPTIONS_OF = {
  flat: [...SYNTHETIC_OPTIONS, 'queries', 'k', 'vectors', 'query-vectors', 'screen', 'bandwidth-gb'],
  embed: ['model', 'texts', 'sample', 'query-texts', 'precision', 'baseline-model', 'batch'],
} as const;

export const benchCommand = defineCommand({
  name: 'bench',
  summary: 'measure the search beside faiss, numpy and usearch, the encoder beside sentence-transformers, and building',
  description:
    '`trawl bench flat` times exact top-k over synthetic vectors with the distribution of real ones, or over a FAISS file, ' +
    'in turns with the baselines: the same rows, queries and threads, a median of several runs after a warm-up, the answers ' +
    'compared. `trawl bench embed` times a model over passages of a corpus, and over single queries, in turns with ' +
    'sentence-transformers over the checkpoint that the model was made of. `trawl bench index` builds an index of --rows ' +
    'passages of 100 words, or of --corpus, with vectors that cost nothing, or with --model beside the encoder alone.\n\n' +
    '`trawl bench baselines` makes the Python environment of flat, `trawl bench baselines embed` that of embed (torch: up to ' +
    '6 GB), once. A baseline that is not there, or does not fit into memory, is left out with a word. bench/README.md ' +
    'defines the figures.',
  positionals: {
    usage: '<case> [of]',
    help: {
      case: 'flat: the search. embed: the encoder. index: the building. baselines: install what they are compared with.',
      of: 'With baselines: flat (faiss, numpy, usearch; the default) or embed (sentence-transformers).',
    },
    min: 1,
    max: 2,
  },
  options: {
    rows: { kind: 'integer', default: 100_000, min: 1, help: 'Vectors to search, passages to index.' },
    dimension: { kind: 'integer', default: 768, min: 1, max: 131_072, help: 'Values of a vector.' },
    dtype: {
      kind: 'choice',
      choices: VECTOR_DTYPES,
      default: 'float32',
      help: 'How the rows are stored. float16 takes half the disk; the baselines hold them as float32.',
    },
    queries: { kind: 'string', value: 'N,N,…', default: '1,16,64,256,512', help: 'Queries searched at once, in turn.' },
    k: { kind: 'integer', default: 10, min: 1, help: 'Results per query.' },
    against: {
      kind: 'string',
      value: 'NAME,…',
      help: `Baselines, or none. Default: all there are, for flat ${BASELINES.join(', ')}, for embed ${EMBED_BASELINES.join(', ')}.`,
    },
    threads: { kind: 'integer', min: 1, help: 'Threads of every engine. Default: the cores of this process.' },
    runs: {
      kind: 'integer',
      default: 5,
      min: 1,
      help: 'Timed searches, or encodings of all passages, of each. Fewer than 5 are for a look only.',
    },
    vectors: {
      kind: 'string',
      value: 'FILE',
      help: 'Search this FAISS file (IxFI, or IxSQ of float16) in place of synthetic vectors. Queries are rows with noise.',
    },
    screen: {
      kind: 'choice',
      choices: ['auto', 'none'],
      default: 'auto',
      help: 'auto: the screen before the codes where one pays, as `trawl index` makes it. none: the codes alone.',
    },
    'query-vectors': { kind: 'string', value: 'FILE', help: 'Queries to take: .npy, float32, queries × dimension.' },
    like: {
      kind: 'string',
      value: 'FILE',
      help:
        'FAISS file whose mean and covariance synthetic vectors have. Default: 1,000 vectors of E5 beside the checkout ' +
        '(../shared/data) where they are and --dimension is 768, else a built-in spectrum.',
    },
    model: {
      kind: 'string',
      value: 'NAME|DIR',
      help: 'embed: the encoder, as for `trawl index`; required there. index: in place of one that costs nothing.',
    },
    texts: { kind: 'string', value: 'FILE', help: 'embed: a corpus to take passages of. Required there.' },
    sample: { kind: 'integer', default: 2000, min: 1, help: 'embed: passages, drawn at random.' },
    precision: {
      kind: 'string',
      value: 'NAME,…',
      help: 'embed: graphs of the model, float32 and int8 say, in turns. Default: the one that it is used with.',
    },
    'query-texts': {
      kind: 'string',
      value: 'FILE',
      help: 'embed: questions (as for `trawl eval`) that are encoded one by one. Default: those of the sample corpus.',
    },
    'baseline-model': {
      kind: 'string',
      value: 'DIR',
      help: 'embed: the checkpoint that the model was made of, for the baseline. Default: the model folder, where it holds one.',
    },
    batch: { kind: 'integer', default: 32, min: 1, help: "embed: texts in a batch of the baseline's." },
    seed: { kind: 'integer', default: 1, min: 0, max: 2 ** 32 - 1, help: 'Of rows and queries, or of the sample.' },
    cache: {
      kind: 'string',
      value: 'DIR',
      help: 'Keeps vectors, codes and the Python environment for the next run. Default: .cache/trawl of your home folder.',
    },
    python: {
      kind: 'string',
      value: 'FILE',
      help: 'Python to use, in place of the environment that `baselines` makes.',
    },
    'bandwidth-gb': {
      kind: 'string',
      value: 'GB/S',
      help: 'Reading speed of the memory, 10^9 bytes a second, measured elsewhere; for the record and the roofline.',
    },
    corpus: { kind: 'list', value: 'FILE', help: 'index: passages to take.' },
    out: { kind: 'string', value: 'FILE', help: 'Also write environment, records and what was left out, as JSON.' },
  },
  examples: [
    'trawl bench baselines',
    'trawl bench flat --rows 1000000 --queries 1,16,64,256,512 --against faiss,numpy,usearch --json',
    'trawl bench index --rows 300000 --json',
    'trawl bench flat --vectors indexes/wiki18/vectors.faiss --against none',
    'trawl bench embed --model models/e5-base-v2 --texts wiki-18.jsonl --sample 500 --precision float32,int8',
  ],
  async run({ options, positionals, given, signal, out, note }) {
    const cache = options.cache ?? join(homedir(), '.cache', 'trawl');
    const [name, of = 'flat'] = positionals;
    if (name === 'baselines') {
      const which = parseNames('the second word', of, BASELINE_CASES)[0]!;
      const python = await installBaselines(cache, which, { python: options.python ?? 'python3', signal, note });
      out(options.json ? JSON.stringify({ python }) : python);
      return EXIT.ok;
    }
    if (name === 'index' && positionals.length === 1) {
      const scratch = await mkdtemp(join(options.cache ?? tmpdir(), 'trawl-bench-'));
      try {
        const { rows, dimension, model, corpus, seed } = options;
        const threads = options.threads ?? availableCores();
        const result = await benchIndex({ corpus, rows, dimension, model, threads, seed, scratch, signal, note });
        if (options.out !== undefined) await writeFile(options.out, `${JSON.stringify(result, null, 2)}\n`);
        out(options.json ? JSON.stringify(result.records) : indexReport(result.records, result.environment));
        return EXIT.ok;
      } finally {
        await rm(scratch, { recursive: true, force: true });
      }
    }
    if (name !== 'flat' && name !== 'embed') {
      throw new TrawlError(
        'USAGE',
        `There is no case ${JSON.stringify(name)}; there are flat, embed, index and baselines.`,
      );
    }
    const other = name === 'flat' ? 'embed' : 'flat';
    const foreign = OPTIONS_OF[other].find((option) => given.has(option) && option !== 'model');
    if (positionals.length > 1 || foreign !== undefined) {
      const what = foreign === undefined ? `A second word, ${JSON.stringify(of)},` : `--${foreign}`;
      const place = foreign === undefined ? 'baselines' : other;
      throw new TrawlError('USAGE', `${what} belongs to \`trawl bench ${place}\`. Leave it out.`);
    }
    const clash = SYNTHETIC_OPTIONS.find((option) => given.has(option));
    if (options.vectors !== undefined && clash !== undefined) {
      throw new TrawlError(
        'USAGE',
        `--${clash} describes synthetic vectors; --vectors takes them from a file. Leave one out.`,
      );
    }
    const scratch = await mkdtemp(join(tmpdir(), 'trawl-bench-'));
    const common = {
      threads: options.threads ?? availableCores(),
      runs: options.runs,
      seed: options.seed,
      cache,
      scratch,
      python: options.python,
      signal,
      note,
    };
    const report = async (result: object, records: readonly object[], text: () => string): Promise<number> => {
      if (options.out !== undefined) await writeFile(options.out, `${JSON.stringify(result, null, 2)}\n`);
      out(options.json ? JSON.stringify(records) : text());
      return EXIT.ok;
    };
    try {
      if (name === 'embed') {
        const result = await benchEmbed({
          ...common,
          model: required('model', options.model),
          texts: required('texts', options.texts),
          sample: options.sample,
          queryTexts: options['query-texts'],
          precisions:
            options.precision === undefined ? undefined : parseNames('--precision', options.precision, PRECISIONS),
          against: parseNames('--against', options.against, EMBED_BASELINES, { none: true }),
          baselineModel: options['baseline-model'],
          batch: options.batch,
        });
        return await report(result, result.records, () =>
          embedReport(result.records, result.environment, result.model),
        );
      }
      const result = await benchFlat({
        ...common,
        vectors:
          options.vectors === undefined
            ? {
                kind: 'synthetic',
                rows: options.rows,
                dimension: options.dimension,
                dtype: options.dtype as VectorDtype,
                like: options.like,
              }
            : { kind: 'file', path: options.vectors },
        queryVectors: options['query-vectors'],
        queryCounts: parseCounts(options.queries),
        k: options.k,
        against: parseNames('--against', options.against, BASELINES, { none: true }),
        screen: options.screen === 'auto',
        bandwidthGbPerS: parseBandwidth(options['bandwidth-gb']),
      });
      return await report(result, result.records, () => flatReport(result.records, result.environment));
    } finally {
      await rm(scratch, { recursive: true, force: true });
    }
  },
});

function required(option: 'model' | 'texts', value: string | undefined): string {
  if (value !== undefined && value !== '') return value;
  throw new TrawlError(
    'USAGE',
    `\`trawl bench embed\` needs --${option}: ${option === 'model' ? 'a model folder' : 'a corpus file'}.`,
  );
}
