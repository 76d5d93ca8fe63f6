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
import * as option from '../options/option.ts';

/** Options of `trawl bench`; bench-cases.ts says which case has which. */
export const BENCH_OPTIONS = {
  rows: option.integer(
    { default: 100_000, min: 1 },
    'Number of vectors to search, of passages to index, or of passages to generate.',
  ),
  dimension: option.integer({ default: 768, min: 1, max: 131_072 }, 'Number of values per vector.'),
  dtype: option.choice(
    { choices: VECTOR_DTYPES, default: 'float32' },
    'Type of the stored rows. float16 takes half the disk; the baselines hold float32.',
  ),
  queries: option.text(
    { value: 'N,N,…', default: '1,16,64,256,512' },
    'Numbers of queries per search, measured one after the other. bulk: one number, of all queries; default 10,000.',
  ),
  k: option.integer({ default: 10, min: 1 }, 'Results per query.'),
  against: option.text(
    'NAME,…',
    `Baselines to compare with, or none. Default: all baselines of the case: flat ${BASELINES.join(', ')}; embed ${EMBED_BASELINES.join(', ')}; index ${INDEX_BASELINES.join(', ')}; serve ${SERVE_BASELINES.join(', ')}; bm25 ${BM25_BASELINES.join(', ')}.`,
  ),
  threads: option.integer({ min: 1 }, 'Threads of every engine. Default: the cores available to this process.'),
  runs: option.integer(
    { default: 5, min: 1 },
    'Repetitions of every measurement (a search, all passages, or a load). Fewer than 5 give only rough figures.',
  ),
  vectors: option.text(
    'FILE',
    'Search this FAISS file (IxFI, or float16 IxSQ) instead of synthetic vectors, with rows plus noise as queries.',
  ),
  searches: option.text(
    { value: 'MODE,…', default: 'none' },
    `filter: also time searches of ${FILTERED_MODES.join(' and ')} among shares of --rows vectors and passages.`,
  ),
  prefilter: option.choice(
    { choices: ['auto', 'none'], default: 'auto' },
    'auto: use a prefilter if `trawl index` would make one. none: search the codes only.',
  ),
  'query-vectors': option.text('FILE', 'Use these queries: .npy, float32, queries × dimension.'),
  like: option.text(
    'FILE',
    'FAISS file whose mean and covariance the synthetic vectors get. Default: 1,000 vectors of E5 in ../shared/data, if ' +
      'they exist and --dimension is 768, else a built-in spectrum.',
  ),
  model: option.text(
    'NAME|DIR',
    'The encoder, as for `trawl index`. Required for embed, serve and modes. Without it, index uses an encoder that takes no time.',
  ),
  texts: option.text('FILE', 'embed: the corpus to take passages from. Required.'),
  sample: option.integer({ default: 2000, min: 1 }, 'embed: number of random passages.'),
  precision: option.text(
    'NAME,…',
    'embed: precisions of the model to measure, such as float32,int8. Default: the default precision of the model. serve: one, in which ' +
      "Trawl embeds queries; default: the index's.",
  ),
  'query-texts': option.text(
    'FILE',
    "Questions, as for `trawl eval`. embed: to encode one by one; default: the sample's. modes, triage: with gold_ids. " +
      'bm25, filter: to search for; default: hotpot_val500_pooled and recorded search calls in ../shared/data.',
  ),
  'baseline-model': option.text(
    'DIR',
    'embed, index, serve: the checkpoint that the model was made from, for the baseline. Default: the model folder, if it has a checkpoint.',
  ),
  questions: option.integer(
    { min: 1 },
    'modes: use the first questions of the file only. triage: use this number, evenly from the file. Default: all.',
  ),
  tried: option.list(
    'DIR',
    'triage: an index of the same passages by a model that is tried. Required; repeat the option for several.',
  ),
  depths: option.text({ value: 'N,N,…', default: '10' }, 'triage: hits of each list that join the pool. 0: no lists.'),
  samples: option.text(
    { value: 'P,P,…', default: '1,5,20' },
    'triage: shares of the rest of the index that are sampled, in percent.',
  ),
  rerank: option.text('NAME|DIR', 'modes: also rerank with this cross-encoder.'),
  'rerank-depth': option.integer({ default: 50, min: 1 }, 'modes: hits that the cross-encoder scores.'),
  layers: option.integer(
    { default: 6, min: 1 },
    'products: layers of the encoder; their matrices have --dimension values.',
  ),
  tokens: option.text({ value: 'N,N,…', default: '128,12' }, 'products: tokens of a text.'),
  kinds: option.text(
    'NAME;…',
    `products: some of these, separated by semicolons: ${PRODUCT_KIND_NAMES.join('; ')}. Default: all.`,
  ),
  batch: option.integer({ default: 32, min: 1 }, 'embed: batch size of the baseline.'),
  seed: option.integer({ default: 1, min: 0, max: 2 ** 32 - 1 }, 'Seed of rows and queries, or of the sample.'),
  cache: option.text(
    'DIR',
    "Folder that keeps vectors, codes and the Python environments for later runs. Default: trawl's folder of the user's cache (~/.cache/trawl, or $XDG_CACHE_HOME/trawl).",
  ),
  python: option.text('FILE', 'Python interpreter to use instead of the environment of `trawl bench baselines`.'),
  'bandwidth-gb': option.text(
    'GB/S',
    'Memory bandwidth in 10^9 bytes per second, measured elsewhere: recorded and used for the roofline.',
  ),
  corpus: option.list(
    'FILE',
    'index, bm25, filter, modes, make-corpus: the passages. serve: one file of JSON lines. Default of all but index: pool_wiki_dev in ../shared/data.',
  ),
  index: option.text(
    'DIR',
    'serve: an index of --corpus built with --model. Default: built once, in the cache. bm25: measure the searches of this index, without baselines. triage: the index of the present encoder.',
  ),
  calls: option.text(
    'FILE',
    'serve, bm25: recorded search calls, which give the queries. Default: search_calls in ../shared/data.',
  ),
  loads: option.text(
    'NAME,…',
    `serve: some of ${SERVE_LOADS.join(', ')} (default: all of these), ${STEADY_LOADS.join(', ')}.`,
  ),
  seconds: option.integer(
    { default: 10, min: 1 },
    'serve: duration of a repetition, for loads without an end. bm25: longest pass over the queries.',
  ),
  size: option.choice(
    { choices: BENCH_SIZES, default: 'small' },
    'all: on 2 cores small takes minutes, medium about half an hour, large an hour and a half and 24 GB of memory; bench/README.md says what each measures.',
  ),
  report: option.text(
    { value: 'FILE', default: 'trawl-bench.html' },
    'all: the HTML page to write. The figures are beside it in a file of the same name that ends in .json, or in --out.',
  ),
  stages: option.text('NAME,…', `all: measure only these of ${ALL_STAGES.join(', ')}. Default: all.`),
  from: option.text('FILE', 'all: measure nothing; draw the page from this JSON file of an earlier run.'),
  restart: option.flag(
    'all: begin again, and replace the JSON file. Without it, stages that the file has a result of are kept, and the others are measured.',
  ),
  out: option.text('FILE', 'Also write environment, records and omitted baselines as JSON.'),
} as const satisfies OptionTable;
