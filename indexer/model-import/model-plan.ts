import type { FolderModelIdentity, Precision } from '../../src/encoder/identity/model-identity.ts';
import type { ModelKind, PoolingOrigin, ScoreActivation } from '../../src/encoder/model/trawl-model-file.ts';
import type { WriteTokenizer } from './source-tokenizer.ts';

interface WriteGraphOptions {
  readonly signal?: AbortSignal;
  readonly onProgress?: (done: number, total: number) => void;
}

export interface PlannedGraph {
  readonly precision: Precision;
  /** Name of the output. Default: chosen by the pooling. */
  readonly output?: string;
  /** Writes the graph into a folder. Returns the names of the graph file and of the files with external weights. */
  write(folder: string, options: WriteGraphOptions): Promise<{ path: string; externalData: readonly string[] }>;
}

/** A model folder to be written. Its source has been checked. */
export interface ModelPlan {
  readonly kind: ModelKind;
  /** `name` is the source folder's. `precision` is not used: each graph has its own. */
  readonly facts: Omit<FolderModelIdentity, 'sha256'>;
  readonly maxPositions?: number;
  /** Encoders only. */
  readonly poolingFrom?: PoolingOrigin;
  /** Cross-encoders only: values per pair, and the activation that turns them into scores. */
  readonly labels?: number;
  readonly activation?: ScoreActivation;
  /** Rerankers that read a chat: the text of a pair. */
  readonly pairTemplate?: string;
  readonly graphs: readonly PlannedGraph[];
  /** What the user should know about the choice of graphs. */
  readonly remarks: readonly string[];
  readonly writeTokenizer: WriteTokenizer;
  /** Absolute paths of the source files with weights. */
  readonly weightFiles: readonly string[];
  close(): Promise<void>;
}
