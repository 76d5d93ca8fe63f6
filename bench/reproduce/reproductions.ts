import { join } from 'node:path';
import { readAllResult } from '../all/all-file.ts';
import type { AllResult } from '../all/all-result.ts';
import type { BenchEmbedResult } from '../embed/bench-embed.ts';
import type { BenchFilterResult } from '../filter/bench-filter.ts';
import type { BenchFlatResult } from '../flat/bench-flat.ts';
import type { BenchBm25Result } from '../lexical/bench-bm25.ts';
import type { BenchModesResult } from '../modes/bench-modes.ts';
import type { BenchServeResult } from '../serve/bench-serve.ts';
import { runTrawl, SHARED } from '../serve/serve-index.ts';
import type { ClusterFigures } from '../tables/cluster-figures.ts';
import type { EvalResult } from '../tables/eval-result.ts';
import type { FamiliesResult } from '../tables/families-result.ts';
import type { GpuResult } from '../tables/gpu-result.ts';
import type { GpuSearchResult } from '../tables/gpu-search-result.ts';
import type { PrecisionResult } from '../tables/precision-result.ts';
import type { SizeResult } from '../tables/size-figures.ts';
import type { SystemsResult } from '../tables/systems-result.ts';
import { testCluster } from './cluster.ts';
import { benchPrecisions } from './embed-precisions.ts';
import { measureFamilies } from './encoder-families.ts';
import {
  allExpectations,
  bm25Expectations,
  clusterExpectations,
  type Expectation,
  encoderExpectations,
  evalExpectations,
  familiesExpectations,
  filterExpectations,
  flatExpectations,
  gpuExpectations,
  gpuSearchExpectations,
  modesExpectations,
  precisionExpectations,
  type ReplicasResult,
  replicasExpectations,
  serverExpectations,
  sizeExpectations,
  systemsExpectations,
} from './expectations.ts';
import { compareFusions } from './fusion-settings.ts';
import { testGpu } from './gpu.ts';
import { measureGpuSearch } from './gpu-search.ts';
import { comparePrecisions } from './precision-quality.ts';
import { testReplicas } from './replicas.ts';
import type { ReproductionRun } from './reproduction-run.ts';
import { evaluateSample } from './sample-quality.ts';
import { benchPrecisionServer } from './server-precision.ts';
import { testSize } from './size.ts';
import { evaluateSystems } from './systems-quality.ts';

/** A recorded result whose tables can be measured again. */
export interface Reproduction {
  readonly name: string;
  /** The recorded result, relative to the repository. */
  readonly file: string;
  readonly about: string;
  /** On two cores. */
  readonly time: string;
  /** Measures again, and writes the same kind of file. */
  run(run: ReproductionRun): Promise<void>;
  expectations(result: unknown): Expectation[];
}

const benchAll = (size: string): Pick<Reproduction, 'run' | 'expectations'> => ({
  async run({ file, signal }) {
    const report = file.replace(/\.json$/, '.html');
    await runTrawl(['bench', 'all', '--size', size, '--report', report, '--out', file, '--restart'], signal);
    await readAllResult(file);
  },
  expectations: (result) => allExpectations(result as AllResult),
});

/** A case of `trawl bench` whose `--out` is the recorded file. */
const benchCase = (
  args: readonly string[],
  environment?: Readonly<Record<string, string>>,
): Pick<Reproduction, 'run'> => ({
  run: ({ file, signal }) => runTrawl(['bench', ...args, '--out', file], signal, environment),
});

/** Trawl, FAISS and the library that multiplies FAISS's matrices use no instructions beyond AVX2. */
const AVX2_ONLY = { TRAWL_ISA: 'avx2', FAISS_OPT_LEVEL: 'avx2', OPENBLAS_CORETYPE: 'Haswell' };

const HOTPOT = join(SHARED, 'hotpot_val500_pooled');

const cluster = (part: string): Pick<Reproduction, 'run' | 'expectations'> => ({
  run: async ({ file, signal }) => testCluster(part, file, signal),
  expectations: (result) => clusterExpectations(result as ClusterFigures),
});

export const REPRODUCTIONS: readonly Reproduction[] = [
  {
    name: 'sample-quality',
    file: 'bench/results/sample-quality.json',
    about: 'recall of the bundled encoder over the sample corpus, by what is embedded',
    time: 'half a minute',
    run: async ({ file, scratch, signal }) => evaluateSample(file, scratch, signal),
    expectations: (result) => evalExpectations(result as EvalResult),
  },
  {
    name: 'evaluation',
    file: 'bench/results/evaluation.json',
    about:
      'recall by encoder, precision, mode, query form, reranking and graph over HotpotQA, SQuAD, the sample corpus and SciFact',
    time: 'half an hour',
    run: async ({ file, scratch, signal }) => evaluateSystems(file, scratch, signal),
    expectations: (result) => systemsExpectations(result as SystemsResult),
  },
  {
    name: 'fusion',
    file: 'bench/results/fusion.json',
    about: 'recall of dense, BM25 and hybrid search by settings and encoder over HotpotQA and SQuAD',
    time: '20 minutes',
    run: async ({ file, scratch, signal }) => compareFusions(file, scratch, signal),
    expectations: (result) => systemsExpectations(result as SystemsResult),
  },
  {
    name: 'modes',
    file: 'bench/results/modes.json',
    about: 'recall and latency of dense, BM25, hybrid and filtered search with the bundled encoder over HotpotQA',
    time: 'a minute',
    ...benchCase([
      ...['modes', '--model', 'token-average-256', '--corpus', join(HOTPOT, 'corpus.jsonl')],
      ...['--query-texts', join(HOTPOT, 'queries.jsonl')],
    ]),
    expectations: (result) => modesExpectations(result as BenchModesResult),
  },
  {
    name: 'filters',
    file: 'bench/results/filters.json',
    about: 'time to evaluate filters over 21,000,000 rows',
    time: '11 seconds',
    ...benchCase(['filter', '--rows', '21000000', '--runs', '5']),
    expectations: (result) => filterExpectations(result as BenchFilterResult),
  },
  {
    name: 'bm25',
    file: 'bench/results/bm25.json',
    about:
      'BM25 searches of 79,482 passages beside Lucene, bm25s and SQLite, with the same rows and score bits as Lucene',
    time: 'ten minutes',
    ...benchCase(['bm25', '--rows', '1000', '--threads', '2', '--runs', '3', '--seconds', '3']),
    expectations: (result) => bm25Expectations(result as BenchBm25Result),
  },
  {
    name: 'precision',
    file: 'bench/results/precision.json',
    about: 'recall of all-MiniLM-L6-v2 in float32, bfloat16 and int8 over HotpotQA and SQuAD',
    time: '40 minutes without AVX-512 BF16',
    run: async ({ file, scratch, signal }) => comparePrecisions(file, scratch, signal),
    expectations: (result) => precisionExpectations(result as PrecisionResult),
  },
  {
    name: 'families',
    file: 'bench/results/families.json',
    about: 'speed of each encoder family in float32 and int8 beside sentence-transformers, random weights, few layers',
    time: '7 minutes',
    run: async ({ file, scratch, signal }) => measureFamilies(file, scratch, signal),
    expectations: (result) => familiesExpectations(result as FamiliesResult),
  },
  {
    name: 'families-avx512',
    file: 'bench/results/families-avx512.json',
    about: 'the same on a processor with AVX-512 VNNI',
    time: '4 minutes',
    run: async ({ file, scratch, signal }) => measureFamilies(file, scratch, signal),
    expectations: (result) => familiesExpectations(result as FamiliesResult),
  },
  {
    name: 'flat-avx2',
    file: 'bench/results/flat-avx2.json',
    about: 'exact search of 1,000,000 × 768 vectors beside FAISS, both limited to AVX2',
    time: '3 minutes',
    ...benchCase(
      [
        ...['flat', '--rows', '1000000', '--queries', '1,16,64,256,512', '--runs', '5'],
        ...['--threads', '2', '--against', 'faiss'],
      ],
      AVX2_ONLY,
    ),
    expectations: (result) => flatExpectations(result as BenchFlatResult),
  },
  {
    name: 'gpu',
    file: 'bench/results/gpu.json',
    about: 'embedding in float16 on an NVIDIA GPU beside the CPU and sentence-transformers, random weights',
    time: '4 minutes on a machine with a GPU',
    run: async ({ file, scratch, signal }) => testGpu(file, scratch, signal),
    expectations: (result) => gpuExpectations(result as GpuResult),
  },
  {
    name: 'gpu-search',
    file: 'bench/results/gpu-search.json',
    about: 'exact search of 10,000,000 rows on an NVIDIA GPU beside the CPU and torch, with the same bits as the CPU',
    time: 'two minutes on a machine with a GPU',
    run: async ({ file, scratch, signal }) => measureGpuSearch(file, scratch, signal),
    expectations: (result) => gpuSearchExpectations(result as GpuSearchResult),
  },
  {
    name: 'bench-small',
    file: 'bench/results/bench-small.json',
    about: 'exact search, graphs, servers and questions at the size small',
    time: '5 to 10 minutes',
    ...benchAll('small'),
  },
  {
    name: 'bench-medium',
    file: 'bench/results/bench-medium.json',
    about: 'the same over a million vectors and the corpora beside the checkout',
    time: '29 minutes',
    ...benchAll('medium'),
  },
  {
    name: 'bench-medium-avx2',
    file: 'bench/results/bench-medium-avx2.json',
    about: 'the same on a processor with AVX2 and without AVX-512',
    time: '31 minutes',
    ...benchAll('medium'),
  },
  {
    name: 'embed-precisions',
    file: 'bench/results/embed-precisions.json',
    about: 'speed of all-MiniLM-L6-v2 in float32, bfloat16 and int8 beside sentence-transformers',
    time: '3 minutes',
    run: benchPrecisions,
    expectations: (result) => encoderExpectations(result as BenchEmbedResult),
  },
  {
    name: 'server-bfloat16',
    file: 'bench/results/server-bfloat16.json',
    about: 'a server whose queries are embedded in bfloat16, beside a server like that of Search-R1 in float32',
    time: '6 minutes',
    run: (run) => benchPrecisionServer('bfloat16', run),
    expectations: (result) => serverExpectations(result as BenchServeResult),
  },
  {
    name: 'server-int8',
    file: 'bench/results/server-int8.json',
    about: 'the same with queries in int8',
    time: '5 minutes',
    run: (run) => benchPrecisionServer('int8', run),
    expectations: (result) => serverExpectations(result as BenchServeResult),
  },
  {
    name: 'replicas',
    file: 'bench/results/replicas.json',
    about:
      'failed, mixed and outdated answers of three servers under load; one is killed, and the index of all is swapped',
    time: 'a minute',
    run: async ({ file, signal }) => testReplicas(file, signal),
    expectations: (result) => replicasExpectations(result as ReplicasResult),
  },
  {
    name: 'milvus-cluster',
    file: 'bench/results/milvus-cluster.json',
    about:
      'answers of an index in Milvus with two query nodes, of which one is killed, frozen and restarted under load',
    time: '15 minutes',
    ...cluster('milvus'),
  },
  {
    name: 'opensearch-cluster',
    file: 'bench/results/opensearch-cluster.json',
    about:
      'answers of an index in OpenSearch with three nodes, of which one is killed, frozen and restarted under load',
    time: '15 minutes',
    ...cluster('opensearch'),
  },
  {
    name: 'size',
    file: 'bench/results/size.json',
    about: 'times, memory and checked results over 21,000,000 × 768 rows; 71 GB of disk',
    time: 'an hour',
    run: async ({ file, signal }) => testSize(file, signal),
    expectations: (result) => sizeExpectations(result as SizeResult),
  },
];
