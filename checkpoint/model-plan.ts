import type { ModelKind, ScoreActivation } from '../src/embedding/trawl-model-file.ts';
import type { ModelIdentity, Precision } from '../src/manifest/model-identity.ts';
import type { WriteTokenizer } from './source-tokenizer.ts';

export interface WriteGraphOptions {
  readonly signal?: AbortSignal | undefined;
  /** Bytes written and bytes in all. */
  readonly onProgress?: ((done: number, total: number) => void) | undefined;
}

/** A graph that can be written. */
export interface PlannedGraph {
  readonly precision: Precision;
  /** Name of the output; null: chosen by the pooling. */
  readonly output: string | null;
  /** Writes it into a folder. Names of the graph's file and of those that hold its weights. */
  write(folder: string, options: WriteGraphOptions): Promise<{ path: string; externalData: readonly string[] }>;
}

/** A model folder before it is written: all that can be told of the source was checked. */
export interface ModelPlan {
  readonly kind: ModelKind;
  /** `name` is the folder's, `precision` not meant. */
  readonly facts: Omit<ModelIdentity, 'sha256'>;
  readonly maxPositions: number | null;
  /** Of a cross-encoder. */
  readonly labels: number | null;
  readonly activation: ScoreActivation | null;
  readonly graphs: readonly PlannedGraph[];
  readonly writeTokenizer: WriteTokenizer;
  /** Absolute paths of the source's files that hold weights. */
  readonly weightFiles: readonly string[];
  close(): Promise<void>;
}
