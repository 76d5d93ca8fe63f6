import type { MachineFacts } from '../environment.ts';

/** Throughput of one model and length on a GPU, in float16. */
export interface GpuSpeed {
  readonly model: string;
  /** Of each text. */
  readonly tokens: number;
  /** Texts a second by the tokens of a batch. */
  readonly trawl: Readonly<Record<number, number>>;
  /** The same of sentence-transformers; null: not measured. */
  readonly torch: Readonly<Record<number, number>> | null;
  /** Trawl with the batches of `--device cuda` beside the best of torch. */
  readonly ratio: number | null;
}

/** What `npm run check -- gpu` writes as gpu-report.json. */
export interface GpuResult {
  readonly machine: Omit<MachineFacts, 'engines'> & { readonly gpus: readonly string[] };
  readonly steps: readonly {
    readonly name: string;
    readonly outcome: string;
    /** A `GpuSpeed[]` for the step `throughput`. */
    readonly figures?: unknown;
  }[];
}

export function gpuSpeeds({ steps }: GpuResult): readonly GpuSpeed[] {
  return (steps.find(({ name }) => name === 'throughput')?.figures ?? []) as readonly GpuSpeed[];
}
