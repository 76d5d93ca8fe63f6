import type { BenchBulkResult } from '../../bulk/bench-bulk.ts';
import type { BenchFilterResult } from '../../filter/bench-filter.ts';
import type { BenchFlatResult } from '../../flat/bench-flat.ts';
import type { BenchBm25Result } from '../../lexical/bench-bm25.ts';
import type { Bm25SizeResult } from '../../tables/bm25-size-result.ts';
import type { GpuSearchResult } from '../../tables/gpu-search-result.ts';
import type { RealVectorsResult } from '../../tables/real-vectors-result.ts';
import type { SizeResult } from '../../tables/size-figures.ts';
import { measureBm25Size } from '../bm25-size.ts';
import {
  bm25Expectations,
  bm25SizeExpectations,
  bulkExpectations,
  filterExpectations,
  filteredExpectations,
  flatExpectations,
  gpuSearchExpectations,
  rescoredExpectations,
  sizeExpectations,
} from '../expectations/search.ts';
import { measureGpuSearch } from '../gpu-search.ts';
import { countRescored } from '../real-vectors.ts';
import { benchCase, type Reproduction, script } from '../reproduction.ts';

/** Trawl, FAISS and the library that multiplies FAISS's matrices use no instructions beyond AVX2. */
const AVX2_ONLY = { TRAWL_ISA: 'avx2', FAISS_OPT_LEVEL: 'avx2', OPENBLAS_CORETYPE: 'Haswell' };

export const SEARCH: readonly Reproduction[] = [
  {
    name: 'flat-codes',
    file: 'bench/results/flat-codes.json',
    about: 'exact search of 1,000,000 × 768 vectors by codes alone, without the prefilter',
    time: 'a minute',
    ...benchCase([
      ...['flat', '--rows', '1000000', '--queries', '1,16,64,256,512', '--runs', '5'],
      ...['--threads', '2', '--prefilter', 'none', '--against', 'none'],
    ]),
    expectations: (result) => flatExpectations(result as BenchFlatResult),
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
    name: 'real-vectors',
    file: 'bench/results/real-vectors.json',
    about: 'rows that exact searches score over vectors of real passages',
    time: 'two minutes',
    run: countRescored,
    expectations: (result) => rescoredExpectations(result as RealVectorsResult),
  },
  {
    name: 'bulk',
    file: 'bench/results/bulk.json',
    about: 'bulk searches of 1,000,000 × 768 vectors for 50,000 queries beside the engine alone',
    time: '6 minutes',
    ...benchCase(['bulk', '--rows', '1000000', '--queries', '50000', '--k', '100', '--runs', '5']),
    expectations: (result) => bulkExpectations(result as BenchBulkResult),
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
    name: 'filtered-searches',
    file: 'bench/results/filtered-searches.json',
    about: 'searches of 200,000 vectors and passages that a filter limits to shares of them',
    time: 'a minute',
    ...benchCase([
      ...['filter', '--rows', '200000', '--searches', 'dense,bm25'],
      ...['--queries', '1,64', '--threads', '2', '--runs', '5'],
    ]),
    expectations: (result) => filteredExpectations(result as BenchFilterResult),
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
    name: 'bm25-5m',
    file: 'bench/results/bm25-5m.json',
    about: 'BM25 searches of 5,000,000 generated passages beside Lucene, with the same rows and score bits',
    time: 'a quarter of an hour',
    ...benchCase([
      ...['bm25', '--rows', '5000000', '--against', 'lucene'],
      ...['--threads', '2', '--runs', '3', '--seconds', '3'],
    ]),
    expectations: (result) => bm25Expectations(result as BenchBm25Result),
  },
  {
    name: 'bm25-size',
    file: 'bench/results/bm25-size.json',
    about: 'an index of words of 21,015,324 generated passages: build, sizes and searches; 35 GB of disk',
    time: 'three quarters of an hour',
    run: measureBm25Size,
    expectations: (result) => bm25SizeExpectations(result as Bm25SizeResult),
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
    name: 'size',
    file: 'bench/results/size.json',
    about: 'times, memory and checked results over 21,000,000 × 768 rows; 71 GB of disk',
    time: 'an hour',
    ...script('checks/size.mjs'),
    expectations: (result) => sizeExpectations(result as SizeResult),
  },
];
