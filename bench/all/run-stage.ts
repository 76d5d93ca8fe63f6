import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { availableMemory } from '../../src/base/system/memory.ts';
import { type Kernel, loadKernel } from '../../src/engine/native/kernel.ts';
import { APPROXIMATE_BASELINES } from '../approximate/approximate-engine.ts';
import { benchApproximate } from '../approximate/bench-approximate.ts';
import { benchEmbed } from '../embed/bench-embed.ts';
import { EMBED_BASELINES } from '../embed/embed-engine.ts';
import { environment, loadNow } from '../environment.ts';
import { benchFlat } from '../flat/bench-flat.ts';
import { BASELINES } from '../flat/flat-engine.ts';
import { benchQuestions } from '../questions/bench-questions.ts';
import { benchServe } from '../serve/bench-serve.ts';
import { SERVE_BASELINES } from '../serve/serve-engine.ts';
import { runTrawl } from '../serve/serve-index.ts';
import type { AllStage, MachinePeaks, StageResults } from './all-result.ts';
import { type BenchInputs, builtIndex } from './bench-inputs.ts';
import type { BenchSize } from './bench-sizes.ts';

export interface StageContext {
  readonly size: BenchSize;
  readonly inputs: BenchInputs;
  readonly threads: number;
  readonly seed: number;
  readonly cache: string;
  readonly scratch: string;
  readonly python: string | undefined;
  readonly signal: AbortSignal;
  note(text: string): void;
}

const DIMENSION = 768;
const K = 10;
const EMBED_BATCH = 32;
/** Memory that is read for the bandwidth: larger than every cache, but not most of a small machine. */
const MAX_READ_BYTES = 2 ** 30;
const LEAST_READ_BYTES = 2 ** 26;

export const RUN_STAGE: {
  readonly [Stage in AllStage]: (context: StageContext) => Promise<StageResults[Stage]>;
} = {
  async machine({ threads, signal }) {
    const loadBefore = loadNow();
    const loaded = loadKernel();
    const kernel = loaded.ok ? loaded.kernel : undefined;
    kernel?.setThreads(threads);
    const peaks = kernel === undefined ? null : await measuredPeaks(kernel, signal);
    return {
      environment: environment({ kernel, engines: [], loadBefore, bandwidthGbPerS: gigabytes(peaks) }),
      peaks,
    };
  },

  flat: ({ size: { flat }, ...context }) =>
    benchFlat({
      ...context,
      vectors: { source: 'synthetic', rows: flat.rows, dimension: DIMENSION, dtype: flat.dtype, like: undefined },
      queryVectors: undefined,
      queryCounts: flat.queryCounts,
      k: K,
      against: BASELINES,
      mostQueries: flat.mostQueries,
      prefilter: true,
      runs: flat.runs,
      bandwidthGbPerS: null,
    }),

  embed: ({ size: { embed }, inputs, ...context }) =>
    benchEmbed({
      ...context,
      model: inputs.model,
      precisions: embed.int8 && inputs.checkpoint !== undefined ? ['float32', 'int8'] : undefined,
      texts: inputs.corpus,
      sample: embed.sample,
      queryTexts: undefined,
      against: EMBED_BASELINES,
      baselineModel: inputs.checkpoint,
      batch: EMBED_BATCH,
      runs: embed.runs,
    }),

  // In a process of its own: the peak memory of this one is that of the stages before.
  async index({ size: { index }, threads, seed, scratch, signal }) {
    const file = join(scratch, 'index.json');
    const sizes = ['--rows', String(index.rows), '--dimension', String(DIMENSION)];
    const common = ['--threads', String(threads), '--seed', String(seed), '--cache', scratch, '--out', file];
    await runTrawl(['bench', 'index', ...sizes, ...common], signal);
    return JSON.parse(await readFile(file, 'utf8')) as StageResults['index'];
  },

  async serve({ size: { serve }, inputs, ...context }) {
    const index = await builtIndex(inputs, context);
    return benchServe({
      ...context,
      index,
      corpus: inputs.corpus,
      model: inputs.model,
      baselineModel: inputs.checkpoint,
      calls: inputs.calls,
      against: SERVE_BASELINES,
      loads: serve.loads,
      runs: serve.runs,
      seconds: serve.seconds,
      precision: undefined,
    });
  },

  approximate: ({ size: { approximate }, ...context }) =>
    benchApproximate({ ...context, ...approximate, dimension: DIMENSION, k: K, against: APPROXIMATE_BASELINES }),

  async questions({ size: { questions }, inputs, ...context }) {
    const index = await builtIndex(inputs, context);
    return benchQuestions({
      ...context,
      ...questions,
      index,
      corpus: inputs.corpus,
      model: inputs.model,
      baselineModel: inputs.checkpoint,
      queryTexts: inputs.questions,
      against: SERVE_BASELINES,
      words: ['lucene', 'bm25s'],
    });
  },
};

async function measuredPeaks(kernel: Kernel, signal: AbortSignal): Promise<MachinePeaks> {
  const bytes = Math.max(LEAST_READ_BYTES, Math.min(MAX_READ_BYTES, Math.floor(availableMemory() / 4)));
  const threads = kernel.threads();
  const { readBytesPerS, int8ProductsPerS, float32ProductsPerS, int8Isa } = await kernel.measurePeaks(bytes, signal);
  const speedupOfThreads =
    threads === 1 ? undefined : float32ProductsPerS / (await productsOfOneThread(kernel, signal));
  return {
    threads,
    readBytesPerS,
    int8ProductsPerS: int8ProductsPerS || null,
    float32ProductsPerS: float32ProductsPerS || null,
    ...(int8Isa === '' ? {} : { int8Isa }),
    ...(Number.isFinite(speedupOfThreads) ? { speedupOfThreads: speedupOfThreads! } : {}),
  };
}

async function productsOfOneThread(kernel: Kernel, signal: AbortSignal): Promise<number> {
  const threads = kernel.threads();
  kernel.setThreads(1);
  try {
    return (await kernel.measurePeaks(LEAST_READ_BYTES, signal)).float32ProductsPerS;
  } finally {
    kernel.setThreads(threads);
  }
}

function gigabytes(peaks: MachinePeaks | null): number | null {
  return peaks === null ? null : Math.round(peaks.readBytesPerS / 1e8) / 10;
}
