import type { MostQueries } from '../flat/flat-case.ts';
import type { ServeLoad } from '../serve/serve-loads.ts';

/** What `trawl bench all` measures. The sizes differ in rows and repetitions only. */
export interface BenchSize {
  /** Whether the texts are those of the sample corpus, which every checkout has, even if there are larger ones. */
  readonly sampleTexts: boolean;
  readonly flat: {
    readonly rows: number;
    readonly dtype: 'float32' | 'float16';
    readonly queryCounts: readonly number[];
    readonly mostQueries: MostQueries;
    readonly runs: number;
  };
  /** Passages that are embedded. `int8`: whether that precision is measured too, if the model has it. */
  readonly embed: { readonly sample: number; readonly runs: number; readonly int8: boolean };
  readonly index: { readonly rows: number };
  readonly serve: {
    readonly loads: readonly ServeLoad[];
    readonly runs: number;
    readonly seconds: number;
  };
  readonly approximate: {
    readonly rows: number;
    readonly queries: number;
    readonly efforts: readonly number[];
    readonly runs: number;
  };
  readonly questions: { readonly questions: number; readonly efforts: readonly number[]; readonly runs: number };
}

export const BENCH_SIZES = ['small', 'medium', 'large'] as const;
export type BenchSizeName = (typeof BENCH_SIZES)[number];

const STEADY = ['clients-1', 'clients-8', 'clients-32', 'clients-128'] as const;

/**
 * usearch needs 8 GB for the scores of 512 queries, beside the 9 GB of the baselines' rows. On a machine with 24 GB that pushes Trawl's
 * files out of the page cache.
 */
const MANY_QUERIES = { queryCounts: [1, 16, 64, 256, 512], mostQueries: { numpy: 64, usearch: 64 }, runs: 5 };

export const SIZES: Readonly<Record<BenchSizeName, BenchSize>> = {
  small: {
    sampleTexts: true,
    flat: { rows: 50_000, dtype: 'float32', queryCounts: [1, 16, 64, 256], mostQueries: {}, runs: 3 },
    embed: { sample: 100, runs: 2, int8: false },
    index: { rows: 20_000 },
    serve: { loads: ['lone', 'batch', 'verl', ...STEADY], runs: 1, seconds: 3 },
    approximate: { rows: 20_000, queries: 100, efforts: [16, 64, 256], runs: 2 },
    questions: { questions: 150, efforts: [16, 64], runs: 2 },
  },
  // About half an hour on two idle cores.
  medium: {
    sampleTexts: false,
    flat: { rows: 1_000_000, dtype: 'float32', ...MANY_QUERIES },
    embed: { sample: 300, runs: 3, int8: true },
    index: { rows: 300_000 },
    serve: { loads: ['lone', 'batch', 'verl', 'skyrl', 'rollouts', ...STEADY], runs: 2, seconds: 6 },
    approximate: { rows: 100_000, queries: 200, efforts: [16, 32, 64, 128, 256, 512], runs: 3 },
    questions: { questions: 500, efforts: [16, 64, 256], runs: 1 },
  },
  // As large as 24 GB of memory allow: each of three baselines of the exact search holds 6 GB of rows. About an hour and a half.
  large: {
    sampleTexts: false,
    flat: { rows: 2_000_000, dtype: 'float16', ...MANY_QUERIES },
    embed: { sample: 1_000, runs: 3, int8: true },
    index: { rows: 1_000_000 },
    serve: {
      loads: ['lone', 'batch', 'verl', 'verl-keep-alive', 'skyrl', 'rollouts', 'lone-beside-batch', ...STEADY],
      runs: 3,
      seconds: 10,
    },
    approximate: { rows: 300_000, queries: 500, efforts: [16, 32, 64, 128, 256, 512], runs: 3 },
    questions: { questions: 10_000, efforts: [16, 64, 256], runs: 3 },
  },
};
