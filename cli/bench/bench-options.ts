import { ALL_STAGES } from '../../bench/all/all-result.ts';
import { BENCH_SIZES } from '../../bench/all/bench-sizes.ts';
import { EMBED_BASELINES } from '../../bench/embed/embed-engine.ts';
import { FILTERED_MODES } from '../../bench/filter/filtered-searches.ts';
import { BASELINES } from '../../bench/flat/flat-engine.ts';
import { INDEX_BASELINES } from '../../bench/index/index-baseline.ts';
import { BM25_BASELINES } from '../../bench/lexical/lexical-engine.ts';
import { PRODUCT_KIND_NAMES } from '../../bench/products/product-kinds.ts';
import { SERVE_BASELINES } from '../../bench/serve/serve-engine.ts';
import { SERVE_LOADS, STEADY_LOADS } from '../../bench/serve/serve-loads.ts';
import type { OptionTable } from '../../src/base/options/option-spec.ts';
import { VECTOR_DTYPES } from '../../src/engine/vectors/vector-segments.ts';

/** Options of `trawl bench`; bench-cases.ts says which case has which. */
export const BENCH_OPTIONS = {
  rows: {
    type: 'integer',
    default: 100_000,
    min: 1,
    help: 'Number of vectors to search, of passages to index, or of passages to generate.',
  },
  dimension: { type: 'integer', default: 768, min: 1, max: 131_072, help: 'Number of values per vector.' },
  dtype: {
    type: 'choice',
    choices: VECTOR_DTYPES,
    default: 'float32',
    help: 'Type of the stored rows. float16 takes half the disk; the baselines hold float32.',
  },
  queries: {
    type: 'string',
    value: 'N,N,…',
    default: '1,16,64,256,512',
    help: 'Numbers of queries per search, measured one after the other. bulk: one number, of all queries; default 10,000.',
  },
  k: { type: 'integer', default: 10, min: 1, help: 'Results per query.' },
  against: {
    type: 'string',
    value: 'NAME,…',
    help: `Baselines to compare with, or none. Default: all baselines of the case: flat ${BASELINES.join(', ')}; embed ${EMBED_BASELINES.join(', ')}; index ${INDEX_BASELINES.join(', ')}; serve ${SERVE_BASELINES.join(', ')}; bm25 ${BM25_BASELINES.join(', ')}.`,
  },
  threads: { type: 'integer', min: 1, help: 'Threads of every engine. Default: the cores available to this process.' },
  runs: {
    type: 'integer',
    default: 5,
    min: 1,
    help: 'Repetitions of every measurement (a search, all passages, or a load). Fewer than 5 give only rough figures.',
  },
  vectors: {
    type: 'string',
    value: 'FILE',
    help: 'Search this FAISS file (IxFI, or float16 IxSQ) instead of synthetic vectors, with rows plus noise as queries.',
  },
  searches: {
    type: 'string',
    value: 'MODE,…',
    default: 'none',
    help: `filter: also time searches of ${FILTERED_MODES.join(' and ')} among shares of --rows vectors and passages.`,
  },
  prefilter: {
    type: 'choice',
    choices: ['auto', 'none'],
    default: 'auto',
    help: 'auto: use a prefilter if `trawl index` would make one. none: search the codes only.',
  },
  'query-vectors': { type: 'string', value: 'FILE', help: 'Use these queries: .npy, float32, queries × dimension.' },
  like: {
    type: 'string',
    value: 'FILE',
    help:
      'FAISS file whose mean and covariance the synthetic vectors get. Default: 1,000 vectors of E5 in ../shared/data, if ' +
      'they exist and --dimension is 768, else a built-in spectrum.',
  },
  model: {
    type: 'string',
    value: 'NAME|DIR',
    help: 'The encoder, as for `trawl index`. Required for embed, serve and modes. Without it, index uses an encoder that takes no time.',
  },
  texts: { type: 'string', value: 'FILE', help: 'embed: the corpus to take passages from. Required.' },
  sample: { type: 'integer', default: 2000, min: 1, help: 'embed: number of random passages.' },
  precision: {
    type: 'string',
    value: 'NAME,…',
    help:
      'embed: precisions of the model to measure, such as float32,int8. Default: the default precision of the model. serve: one, in which ' +
      'Trawl embeds queries; default: that of the index.',
  },
  'query-texts': {
    type: 'string',
    value: 'FILE',
    help:
      'Questions, as for `trawl eval`. embed: to encode one by one; default: those of the sample corpus. modes, triage: with gold_ids. ' +
      'bm25, filter: to search for; default: hotpot_val500_pooled and recorded search calls in ../shared/data.',
  },
  'baseline-model': {
    type: 'string',
    value: 'DIR',
    help: 'embed, index, serve: the checkpoint that the model was made from, for the baseline. Default: the model folder, if it has a checkpoint.',
  },
  questions: {
    type: 'integer',
    min: 1,
    help: 'modes: use the first questions of the file only. triage: use this number, evenly from the file. Default: all.',
  },
  tried: {
    type: 'list',
    value: 'DIR',
    help: 'triage: an index of the same passages by a model that is tried. Required; repeat the option for several.',
  },
  depths: {
    type: 'string',
    value: 'N,N,…',
    default: '10',
    help: 'triage: hits of each list that join the pool. 0: no lists.',
  },
  samples: {
    type: 'string',
    value: 'P,P,…',
    default: '1,5,20',
    help: 'triage: shares of the rest of the index that are sampled, in percent.',
  },
  rerank: { type: 'string', value: 'NAME|DIR', help: 'modes: also rerank with this cross-encoder.' },
  'rerank-depth': { type: 'integer', default: 50, min: 1, help: 'modes: hits that the cross-encoder scores.' },
  layers: {
    type: 'integer',
    default: 6,
    min: 1,
    help: 'products: layers of the encoder; their matrices have --dimension values.',
  },
  tokens: { type: 'string', value: 'N,N,…', default: '128,12', help: 'products: tokens of a text.' },
  kinds: {
    type: 'string',
    value: 'NAME;…',
    help: `products: some of these, separated by semicolons: ${PRODUCT_KIND_NAMES.join('; ')}. Default: all.`,
  },
  batch: { type: 'integer', default: 32, min: 1, help: 'embed: batch size of the baseline.' },
  seed: { type: 'integer', default: 1, min: 0, max: 2 ** 32 - 1, help: 'Seed of rows and queries, or of the sample.' },
  cache: {
    type: 'string',
    value: 'DIR',
    help: "Folder that keeps vectors, codes and the Python environments for later runs. Default: trawl's folder of the user's cache (~/.cache/trawl, or $XDG_CACHE_HOME/trawl).",
  },
  python: {
    type: 'string',
    value: 'FILE',
    help: 'Python interpreter to use instead of the environment of `trawl bench baselines`.',
  },
  'bandwidth-gb': {
    type: 'string',
    value: 'GB/S',
    help: 'Memory bandwidth in 10^9 bytes per second, measured elsewhere: recorded and used for the roofline.',
  },
  corpus: {
    type: 'list',
    value: 'FILE',
    help: 'index, bm25, filter, modes, make-corpus: the passages. serve: one file of JSON lines. Default of all but index: pool_wiki_dev in ../shared/data.',
  },
  index: {
    type: 'string',
    value: 'DIR',
    help: 'serve: an index of --corpus built with --model. Default: built once, in the cache. bm25: measure the searches of this index, without baselines. triage: the index of the present encoder.',
  },
  calls: {
    type: 'string',
    value: 'FILE',
    help: 'serve, bm25: recorded search calls, which give the queries. Default: search_calls in ../shared/data.',
  },
  loads: {
    type: 'string',
    value: 'NAME,…',
    help: `serve: some of ${SERVE_LOADS.join(', ')} (default: all of these), ${STEADY_LOADS.join(', ')}.`,
  },
  seconds: {
    type: 'integer',
    default: 10,
    min: 1,
    help: 'serve: duration of a repetition, for loads without an end. bm25: longest pass over the queries.',
  },
  size: {
    type: 'choice',
    choices: BENCH_SIZES,
    default: 'small',
    help: 'all: on 2 cores small takes minutes, medium about half an hour, large an hour and a half and 24 GB of memory; bench/README.md says what each measures.',
  },
  report: {
    type: 'string',
    value: 'FILE',
    default: 'trawl-bench.html',
    help: 'all: the HTML page to write. The figures are beside it in a file of the same name that ends in .json, or in --out.',
  },
  stages: {
    type: 'string',
    value: 'NAME,…',
    help: `all: measure only these of ${ALL_STAGES.join(', ')}. Default: all.`,
  },
  from: {
    type: 'string',
    value: 'FILE',
    help: 'all: measure nothing; draw the page from this JSON file of an earlier run.',
  },
  restart: {
    type: 'flag',
    help: 'all: begin again, and replace the JSON file. Without it, stages that the file has a result of are kept, and the others are measured.',
  },
  out: { type: 'string', value: 'FILE', help: 'Also write environment, records and omitted baselines as JSON.' },
} as const satisfies OptionTable;
