import type { MachineFacts } from '../environment.ts';

/** What runs an encoder on a CPU. */
export const PASSES = ['float32 graph', 'int8 graph', 'bfloat16', 'int8'] as const;
export type Pass = (typeof PASSES)[number];

/** What `npm run reproduce -- encoder-pass` writes: BERT encoders in onnxruntime's graphs and in the engine. */
export interface EncoderPassResult {
  readonly environment: MachineFacts;
  readonly runs: number;
  /** A text on one thread, in processor time: the median of the runs. */
  readonly passes: readonly {
    readonly shape: string;
    readonly tokens: number;
    readonly pass: Pass;
    readonly processorMs: number;
    readonly gflopPerS: number;
    /** Times as fast as the int8 graph. */
    readonly ratioToInt8Graph: number;
  }[];
  /** Cosines of all-MiniLM-L6-v2's vectors of passages to those of its float32 graph. */
  readonly cosines: readonly { readonly pass: Pass; readonly mean: number; readonly least: number }[];
  /** A query of 12 tokens on one thread and divided among two, by the clock: medians. */
  readonly divided: readonly {
    readonly shape: string;
    readonly pass: Pass;
    readonly oneMs: number;
    readonly twoMs: number;
    readonly ratio: number;
  }[];
}
