import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { packageRoot } from '../../src/base/package-root.ts';
import type { BenchProductsResult } from '../products/bench-products.ts';
import { measureBm25Size } from './bm25-size.ts';
import type { Comparison, Tolerance } from './compared-results.ts';
import { measureFamilies } from './encoder-families.ts';
import { timeEncoderPasses } from './encoder-pass.ts';
import { evaluateFields, evaluateSample } from './evaluated-queries.ts';
import { compareFusions } from './fusion-settings.ts';
import { measureGpuSearch } from './gpu-search.ts';
import { evaluateSystems } from './measure-systems.ts';
import type { Measurement } from './measurement.ts';
import { comparePrecisions } from './precision-quality.ts';
import { timePrepare } from './prepare-speed.ts';
import { countRescored } from './real-vectors.ts';
import { measureTriageErrors } from './triage-errors.ts';

/** How `bench/results/NAME.json` is measured again, and which of its figures are compared. */
export interface Reproduction {
  measure(run: Measurement): Promise<unknown>;
  readonly compare: readonly Comparison[];
}

/** The same bits everywhere, but for the last bits of float32 in other versions of a library. */
const RECALL = '± 0.002';
/** A graph depends on the order in which threads insert rows. */
const GRAPH_RECALL = '± 0.05';
/** Ratios depend on processor, cores and other work; with the same of each they vary by less than half. */
const RATIO = '× 2.5';
const BYTES = '× 1.25';

const HOTPOT = ['hotpot_val500_pooled', 'corpus.jsonl'];
/** Trawl, FAISS and the library that multiplies FAISS's matrices use no instructions beyond AVX2. */
const AVX2_ONLY = { TRAWL_ISA: 'avx2', FAISS_OPT_LEVEL: 'avx2', OPENBLAS_CORETYPE: 'Haswell' };
const MILLION = ['flat', '--rows', '1000000', '--queries', '1,16,64,256,512', '--runs', '5', '--threads', '2'];
const BM25_RUNS = ['--threads', '2', '--runs', '3', '--seconds', '3'];

/** A case of `trawl bench` over generated rows, or the data that it finds itself. */
const bench = (
  compare: readonly Comparison[],
  args: readonly string[],
  environment?: Record<string, string>,
): Reproduction => ({
  measure: (run) => run.bench(args, environment),
  compare,
});
/** A check of `npm run check`. */
const check = (compare: readonly Comparison[], ...args: readonly [string, ...string[]]): Reproduction => ({
  measure: (run) => run.check(...args),
  compare,
});
const metrics = (...names: string[]): Comparison['within'] =>
  Object.fromEntries(names.map((name) => [`metrics.${name}`, RECALL]));

// Of a result of `trawl bench`, or of a stage of `trawl bench all`.
const flat = (at = ''): Comparison[] => [
  { each: `${at}records[engine=trawl]`, name: 'exact search, {queries} queries', within: { residentBytes: BYTES } },
  {
    each: `${at}records[engine!=trawl]`,
    name: '{engine}, {queries} queries',
    within: { ratioToTrawl: RATIO, agreement: '± 0.01' },
  },
];
const embed = (at = ''): Comparison[] => [
  { each: `${at}records[engine=trawl]`, name: 'encoder, {precision}', within: { ratioToBaseline: RATIO } },
];
const serve = (at = ''): Comparison[] => [
  { each: `${at}records[engine~trawl]`, name: '{load}, {engine}', within: { wrong: '=', ratioToBaseline: RATIO } },
];
const BM25: readonly Comparison[] = [
  { each: 'records[engine!=trawl][k]', name: '{case}, {engine}', within: { ratioToTrawl: RATIO } },
  // Queries with Lucene's rows and score bits.
  { each: 'records[engine=lucene][k]', name: '{case}, Lucene', within: { agreement: '=' } },
];
const systems = (each: string, recall: Tolerance): Comparison => ({
  each,
  name: '{set}, {system}',
  within: Object.fromEntries(
    ['recall@10', 'all_gold@10', 'ndcg@10', 'mrr@10'].map((name) => [`metrics.${name}`, recall]),
  ),
});
const FAMILIES: Reproduction = {
  measure: measureFamilies,
  compare: [
    {
      each: 'rows[ratioToBaseline]',
      name: '{family}, {precision}',
      within: { ratioToBaseline: RATIO, queryRatioToBaseline: RATIO },
    },
  ],
};
const CLUSTER: readonly Comparison[] = [
  { each: 'events', name: '{name}', within: { wrong: '=', 'dialects.wrong': '=' } },
  { each: '', name: 'requests of all dialects', within: { 'dialects.requests': '=', 'dialects.answered': '=' } },
];
const all = (size: string): Reproduction => ({
  measure: (run) => run.bench(['all', '--size', size, '--report', 'report.html', '--restart']),
  compare: [
    ...flat('stages.flat.result.'),
    ...embed('stages.embed.result.'),
    ...serve('stages.serve.result.'),
    ...['approximate', 'questions'].flatMap((stage): Comparison[] => {
      const [records, figure] = [`stages.${stage}.result.records`, stage === 'questions' ? 'recallAt10' : 'recall'];
      const name = stage === 'questions' ? 'questions, {engine}, {mode}, {over}' : 'vectors, {engine}';
      return [
        { each: `${records}[effort=null|undefined]`, name, within: { [figure]: RECALL } },
        { each: `${records}[effort]`, name: `${name}, efSearch {effort}`, within: { [figure]: GRAPH_RECALL } },
      ];
    }),
  ],
});
/** A server whose queries are embedded in a precision, over vectors in float32. */
const precisionServer = (precision: string): Reproduction => ({
  measure: async (run) =>
    run.bench([
      ...['serve', '--model', await run.miniLm(`float32,${precision}`), '--baseline-model', run.checkpoint],
      ...['--precision', precision, '--corpus', run.data(...HOTPOT)],
      ...['--loads', 'lone,batch,verl,skyrl', '--runs', '3', '--seconds', '8'],
    ]),
  compare: serve(),
});

/** All results that can be measured again, by name. */
export const REPRODUCTIONS: Readonly<Record<string, Reproduction>> = {
  'sample-quality': {
    measure: evaluateSample,
    compare: [{ each: 'rows', name: '{name}', within: metrics('recall@5', 'recall@10', 'mrr@10') }],
  },
  evaluation: {
    measure: evaluateSystems,
    compare: [systems('rows[system!~HNSW]', RECALL), systems('rows[system~HNSW]', GRAPH_RECALL)],
  },
  fusion: { measure: compareFusions, compare: [systems('rows', RECALL)] },
  modes: {
    measure: (run) =>
      run.bench([
        ...['modes', '--model', 'token-average-256', '--corpus', run.data(...HOTPOT)],
        ...['--query-texts', run.data('hotpot_val500_pooled', 'queries.jsonl')],
      ]),
    compare: [{ each: 'records', name: '{case}', within: { recallAt10: RECALL, passing: '=' } }],
  },
  'bm25-fields': {
    measure: evaluateFields,
    compare: [{ each: 'rows', name: '{name}', within: metrics('recall@1', 'recall@5', 'recall@10') }],
  },
  precision: {
    measure: comparePrecisions,
    compare: [
      {
        each: 'rows',
        name: '{set}, passages in {passages}, queries in {queries}',
        within: { overlap10: RECALL, ...metrics('recall@10', 'ndcg@10', 'mrr@10') },
      },
    ],
  },
  triage: {
    measure: measureTriageErrors,
    compare: ['HotpotQA', 'SQuAD', 'SQuAD in Wikipedia'].map((set) => ({
      each: `sets[name=${set}].records[k=10]`,
      name: `${set}, {tried}, depth {depth}, sample {sampleShare}`,
      within: { whole: RECALL, 'errors.tail.mean': '± 0.01' },
    })),
  },
  'flat-codes': bench(flat(), [...MILLION, '--prefilter', 'none', '--against', 'none']),
  'flat-avx2': bench(flat(), [...MILLION, '--against', 'faiss'], AVX2_ONLY),
  'real-vectors': {
    measure: countRescored,
    compare: [
      { each: 'rows', name: '{name}', within: { 'record.candidatesMedian': RATIO, 'record.candidatesMax': RATIO } },
    ],
  },
  bulk: bench(
    [{ each: 'records', name: '{case}', within: { ratioToEngine: '× 1.3' } }],
    ['bulk', '--rows', '1000000', '--queries', '50000', '--k', '100', '--runs', '5'],
  ),
  filters: bench(
    [{ each: 'records', name: '{case}', within: { passing: '=' } }],
    ['filter', '--rows', '21000000', '--runs', '5'],
  ),
  'filtered-searches': bench(
    [{ each: 'records[mode]', name: '{case}', within: { shareOfUnfiltered: RATIO } }],
    ['filter', '--rows', '200000', '--searches', 'dense,bm25', '--queries', '1,64', '--threads', '2', '--runs', '5'],
  ),
  bm25: bench(BM25, ['bm25', '--rows', '1000', ...BM25_RUNS]),
  'bm25-5m': bench(BM25, ['bm25', '--rows', '5000000', '--against', 'lucene', ...BM25_RUNS]),
  'bm25-size': {
    measure: measureBm25Size,
    compare: [
      {
        each: '',
        name: 'wiki-18',
        within: Object.fromEntries(
          ['corpusBytes', 'build.peakBytes', 'build.passageBytes', 'records[indexBytes].indexBytes'].map((path) => [
            path,
            BYTES,
          ]),
        ),
      },
    ],
  },
  'gpu-search': {
    measure: measureGpuSearch,
    compare: [
      { each: '', name: 'small indexes', within: { 'checked.different': '=' } },
      { each: 'searches', name: '{queries} queries', within: { sameBits: '=', 'cpuMs / ms': RATIO } },
      {
        each: 'baselines',
        name: 'torch in {type}, {queries} queries',
        within: { 'ms / /searches[queries=$queries].ms': RATIO },
      },
    ],
  },
  size: check(
    [
      {
        each: '',
        name: 'size',
        within: {
          ...Object.fromEntries(['rows', 'codes', 'prefilters', 'passages'].map((what) => [`bytes.${what}`, BYTES])),
          'steps.memory.checkedQueries': '=',
          'steps.prefilter.checkedQueries': '=',
        },
      },
    ],
    'size',
  ),
  'embed-precisions': {
    measure: async (run) =>
      run.bench([
        ...['embed', '--model', await run.miniLm('float32,bfloat16,int8'), '--baseline-model', run.checkpoint],
        ...['--precision', 'float32,bfloat16,int8', '--texts', run.data(...HOTPOT), '--sample', '500', '--runs', '5'],
      ]),
    compare: embed(),
  },
  'encoder-pass': {
    measure: timeEncoderPasses,
    compare: [
      { each: 'passes', name: '{shape}, {tokens} tokens, {pass}', within: { ratioToInt8Graph: RATIO } },
      { each: 'cosines', name: 'cosine, {pass}', within: { mean: '± 0.001' } },
      { each: 'divided', name: '{shape}, {pass}, two threads', within: { ratio: '× 2' } },
    ],
  },
  products: {
    // The width and the layers of all-MiniLM-L6-v2, and of a quarter of E5-base.
    async measure(run) {
      const measured = async (dimension: string, layers: string): Promise<BenchProductsResult> =>
        run.bench([
          ...['products', '--dimension', dimension, '--layers', layers],
          ...['--tokens', '128,12', '--threads', '2', '--runs', '5'],
        ]);
      const narrow = await measured('384', '6');
      const wide = await measured('768', '3');
      return { ...narrow, records: [...narrow.records, ...wide.records] };
    },
    compare: [
      { each: 'records[use=apart]', name: '{kind}, {hidden} × {tokens} tokens', within: { ratioToFloat32: RATIO } },
    ],
  },
  families: FAMILIES,
  'families-avx512': FAMILIES,
  gpu: {
    // Ends with an error on a machine without an NVIDIA GPU.
    async measure(run) {
      await run.run(process.execPath, [
        join(packageRoot, 'scripts', 'checks', 'gpu.mjs'),
        '--no-setup',
        '--out',
        run.scratch,
      ]);
      return run.json('gpu-report.json');
    },
    compare: [{ each: 'steps[name=throughput].figures', name: '{model}, {tokens} tokens', within: { ratio: RATIO } }],
  },
  build: {
    // The first 2,000 passages of pool_wiki_dev.
    async measure(run) {
      const lines = (await readFile(run.data('pool_wiki_dev', 'corpus.jsonl'), 'utf8')).split('\n', 2000);
      const corpus = join(run.scratch, 'passages.jsonl');
      await writeFile(corpus, `${lines.join('\n')}\n`);
      const models = ['--model', await run.miniLm(), '--baseline-model', run.checkpoint];
      return run.bench(['index', ...models, '--corpus', corpus]);
    },
    compare: ['trawl', 'flashrag'].map((engine) => ({
      each: `records[engine~${engine}]`,
      name: engine,
      within: { peakMemoryBytes: RATIO, ratioToEncoding: '× 1.3' },
    })),
  },
  prepare: {
    measure: timePrepare,
    compare: [{ each: 'rows', name: '{program}, {rule}, {output}, {threads} threads', within: { passages: '=' } }],
  },
  'server-bfloat16': precisionServer('bfloat16'),
  'server-int8': precisionServer('int8'),
  'server-alone': {
    // The loads that no other result has, and a lone client beside them.
    measure: async (run) =>
      run.bench([
        ...['serve', '--model', await run.miniLm(), '--corpus', run.data(...HOTPOT), '--against', 'none'],
        ...['--loads', 'lone,overhead,free-encoder,free-encoder-batch,generator,lone-beside-batch'],
        ...['--runs', '3', '--seconds', '6'],
      ]),
    compare: serve(),
  },
  replicas: check([{ each: '', name: 'replicas', within: { failed: '=', mixed: '=', oldAfterSwap: '=' } }], 'replicas'),
  trials: check([{ each: 'results', name: '{name}', within: { outcome: '=' } }], 'trials'),
  soak: check([{ each: 'rows', name: '{0}', within: { '1': '=' } }], 'soak'),
  'milvus-cluster': check(CLUSTER, 'cluster', 'milvus'),
  'opensearch-cluster': check(CLUSTER, 'cluster', 'opensearch'),
  'milvus-size': check(
    [{ each: 'sizes', name: '{rows} rows', within: { beforeLoadingBytes: RATIO, afterSearchesBytes: RATIO } }],
    'milvus-size',
    ...['384', '20000', '100000'],
  ),
  'bench-small': all('small'),
  'bench-medium': all('medium'),
  'bench-medium-avx2': all('medium'),
};
