import { BASELINES } from '../bench/bench-engine.ts';
import { EMBED_BASELINES } from '../bench/embed-engine.ts';
import { INDEX_BASELINES } from '../bench/index-baseline.ts';
import { SERVE_BASELINES } from '../bench/serve-engine.ts';
import { SERVE_LOADS } from '../bench/serve-loads.ts';
import type { OptionTable } from '../src/options/option-spec.ts';
import { VECTOR_DTYPES } from '../src/vector-index/vector-segments.ts';

/** Options of `trawl bench`. Which of them belong to which case: bench-cases.ts. */
export const BENCH_OPTIONS = {
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
    help: `Baselines, or none. Default: all there are, for flat ${BASELINES.join(', ')}, for embed ${EMBED_BASELINES.join(', ')}, for index ${INDEX_BASELINES.join(', ')}, for serve ${SERVE_BASELINES.join(', ')}.`,
  },
  threads: { kind: 'integer', min: 1, help: 'Threads of every engine. Default: the cores of this process.' },
  runs: {
    kind: 'integer',
    default: 5,
    min: 1,
    help: 'Timed searches, encodings of all passages, or repetitions of a load, of each. Fewer than 5 are for a look only.',
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
    help: 'embed, serve: the encoder, as for `trawl index`; required there. index: in place of one that costs nothing.',
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
    help: 'embed, index, serve: the checkpoint that the model was made of, for the baseline. Default: the model folder, where it holds one.',
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
  corpus: {
    kind: 'list',
    value: 'FILE',
    help: 'index: passages to take. serve: one file of JSON lines; default: pool_wiki_dev of ../shared/data.',
  },
  index: {
    kind: 'string',
    value: 'DIR',
    help: 'serve: an index of --corpus made with --model. Default: built in the cache, once.',
  },
  calls: {
    kind: 'string',
    value: 'FILE',
    help: 'serve: recorded search calls, whose queries are asked. Default: search_calls of ../shared/data.',
  },
  loads: { kind: 'string', value: 'NAME,…', help: `serve: of ${SERVE_LOADS.join(', ')}. Default: all.` },
  seconds: {
    kind: 'integer',
    default: 10,
    min: 1,
    help: 'serve: how long a repetition of a load goes on that has no end of its own.',
  },
  out: { kind: 'string', value: 'FILE', help: 'Also write environment, records and what was left out, as JSON.' },
} as const satisfies OptionTable;
