import type { BenchApproximateResult } from '../approximate/bench-approximate.ts';
import type { BenchEmbedResult } from '../embed/bench-embed.ts';
import type { Environment, MachineFacts } from '../environment.ts';
import type { BenchFlatResult } from '../flat/bench-flat.ts';
import type { IndexRecord } from '../index/index-record.ts';
import type { BenchQuestionsResult } from '../questions/bench-questions.ts';
import type { BenchServeResult } from '../serve/bench-serve.ts';
import type { BenchInputs } from './bench-inputs.ts';
import type { BenchSizeName } from './bench-sizes.ts';

/** The stages in the order in which they run. */
export const ALL_STAGES = ['machine', 'flat', 'embed', 'index', 'serve', 'approximate', 'questions'] as const;
export type AllStage = (typeof ALL_STAGES)[number];

/** Peak rates of this machine, per second; null where the processor is not measured. */
export interface MachinePeaks {
  readonly threads: number;
  readonly readBytesPerS: number;
  readonly int8ProductsPerS: number | null;
  readonly float32ProductsPerS: number | null;
  /** The instruction set of `int8ProductsPerS`. Undefined in older files, where it is avx512-vnni. */
  readonly int8Isa?: string;
  /**
   * How many times as many products all threads compute as one. Below `threads` the processors share cores, or other programs used them at
   * that time. Undefined in older files and for one thread.
   */
  readonly speedupOfThreads?: number;
}

/** The result of each stage. */
export interface StageResults {
  readonly machine: { readonly environment: Environment; readonly peaks: MachinePeaks | null };
  readonly flat: BenchFlatResult;
  readonly embed: BenchEmbedResult;
  readonly index: { readonly environment: Environment; readonly records: readonly IndexRecord[] };
  readonly serve: BenchServeResult;
  readonly approximate: BenchApproximateResult;
  readonly questions: BenchQuestionsResult;
}

export type StageOutcome<Stage extends AllStage> =
  | { readonly seconds: number; readonly environment: MachineFacts; readonly result: StageResults[Stage] }
  | { readonly seconds: number; readonly failed: string };

/** The file of `trawl bench all`: what was measured so far. */
export interface AllResult {
  readonly format: 'trawl-bench-all';
  readonly version: 1;
  readonly size: BenchSizeName;
  readonly threads: number;
  readonly seed: number;
  readonly inputs: BenchInputs['named'];
  /** Whether every stage that was asked for or is in the file has a result. */
  readonly complete: boolean;
  readonly stages: { readonly [Stage in AllStage]?: StageOutcome<Stage> };
}

/** The result of a stage, or undefined if it has not run or has failed. */
export function resultOf<Stage extends AllStage>(all: AllResult, stage: Stage): StageResults[Stage] | undefined {
  const outcome = all.stages[stage];
  return outcome !== undefined && 'result' in outcome ? (outcome.result as StageResults[Stage]) : undefined;
}
