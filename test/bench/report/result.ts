import type { AllResult } from '../../../bench/all/all-result.ts';
import type { Environment } from '../../../bench/environment.ts';
import type { FlatRecord } from '../../../bench/flat/flat-case.ts';
import type { ServeRecord } from '../../../bench/serve/serve-case.ts';

const ENVIRONMENT: Environment = {
  date: '2026-11-23T12:00:00.000Z',
  processor: 'A & B <test>',
  cores: 2,
  memoryBytes: 8e9,
  loadBefore: 3,
  platform: 'linux x64',
  node: 'v24.0.0',
  trawl: '0.1.0',
  engines: ['faiss-cpu 1.0'],
  isa: 'avx2',
  instructionSets: ['avx2', 'serial'],
  bandwidthGbPerS: 30,
};

const flat = (engine: string, queries: number, medianMs: number): FlatRecord => ({
  case: `flat/100000x768/float32/k10/q${queries}`,
  ...{ engine, version: engine, rows: 100_000, dimension: 768, dtype: 'float32', k: 10, queries, threads: 2, runs: 3 },
  ...{ medianMs, p95Ms: medianMs, dotsPerS: (queries * 1e8) / medianMs, ratioToTrawl: engine === 'trawl' ? 1 : 4 },
  ...{ candidatesMedian: 16, candidatesP95: 17, candidatesMax: 20, fullScans: 0 },
  residentBytes: engine === 'trawl' ? 35e6 : 307e6,
  agreement: engine === 'trawl' ? null : 1,
});

const serve = (engine: string, load: ServeRecord['load'], clients: number, queriesPerS: number): ServeRecord => ({
  ...{ case: 'serve', engine, load, clients, runs: 1, requests: 100, queriesPerS, p50Ms: 5, p99Ms: 9, maxMs: 12 },
  ...{ overheadP50Ms: 1, errors: 0, errorCounts: {}, wrong: 0, residentBytes: 2e8 },
  ratioToBaseline: engine === 'trawl' ? 4 : 1,
  stages:
    engine === 'trawl'
      ? {
          names: ['parse', 'embed', 'rest'],
          percentiles: [50, 90, 99].map((percent) => ({ percent, ms: [0.1, percent / 20, 0.4] })),
        }
      : null,
});

const questions = (engine: string, over: 'http' | 'library', mode: 'dense' | 'bm25') => ({
  ...({ case: 'questions', engine, version: engine, mode, over, passages: 100, questions: 10, runs: 1 } as const),
  ...{ recallAt10: 0.9, p50Ms: 3, p99Ms: 4, residentBytes: 1e8 },
});

const graph = (engine: string, effort: number | null, recall: number, p50Ms: number) => ({
  ...({ case: 'approximate', engine, version: engine, effort, rows: 20_000, dimension: 768, k: 10 } as const),
  ...{ queries: 100, threads: 2, recall, p50Ms, p99Ms: p50Ms, queriesPerS: 100, buildSeconds: 9, residentBytes: 1e8 },
});

const stage = <Result extends object>(result: Result) => ({ seconds: 10, environment: ENVIRONMENT, result });

/** A result with every stage; `index` failed. */
export const RESULT: AllResult = {
  ...{ format: 'trawl-bench-all', version: 1, size: 'small', threads: 2, seed: 1, complete: true },
  inputs: {
    model: 'some-model',
    corpus: 'a/b.jsonl',
    questions: 'a/q.jsonl',
    calls: 'c/d.jsonl',
  },
  stages: {
    machine: stage({
      environment: ENVIRONMENT,
      peaks: { threads: 2, readBytesPerS: 3e10, int8ProductsPerS: 9e11, float32ProductsPerS: null },
    }),
    flat: stage({
      environment: ENVIRONMENT,
      vectors: 'synthetic',
      records: [flat('trawl', 1, 2), flat('faiss', 1, 8), flat('trawl', 64, 9), flat('faiss', 64, 90)],
      skipped: [{ engine: 'usearch', reason: 'no <wheel>' }],
    }),
    index: { seconds: 1, failed: 'The disk is full. [DISK_FULL]' },
    serve: stage({
      environment: ENVIRONMENT,
      ...{ index: 'x', rows: 100, model: 'some-model', skipped: [] },
      records: [
        serve('trawl', 'lone', 1, 100),
        serve('search-r1', 'lone', 1, 20),
        serve('trawl', 'clients-1', 1, 100),
        serve('trawl', 'clients-8', 8, 300),
        serve('search-r1', 'clients-1', 1, 30),
        serve('search-r1', 'clients-8', 8, 60),
      ],
    }),
    approximate: stage({
      environment: ENVIRONMENT,
      ...{ vectors: 'synthetic', skipped: [] },
      records: [graph('trawl', null, 1, 2), graph('faiss-hnsw', 16, 0.6, 0.3), graph('faiss-hnsw', 64, 0.9, 1)],
    }),
    questions: stage({
      environment: ENVIRONMENT,
      ...{ passages: 100, skipped: [] },
      records: [questions('trawl', 'http', 'dense'), questions('lucene', 'library', 'bm25')],
    }),
  },
};
