import type { QueryTemplate } from '../../encoder/identity/model-identity.ts';
import type { EncodeOutcome, EncoderInput, InputType, TruncateSide } from '../../encoder/text-encoder.ts';
import type { StageTimings } from '../timings.ts';

export interface EmbedCall {
  readonly inputs: readonly EncoderInput[];
  readonly inputType: InputType;
  /** As in `RetrieveCall`. */
  readonly template?: QueryTemplate;
  /** Default: `tail`. */
  readonly truncate?: TruncateSide;
  readonly signal?: AbortSignal;
}

export interface EmbedResult {
  /** Row-major, inputs × dimension; zeros for an input that failed. */
  readonly vectors: Float32Array;
  readonly outcomes: readonly EncodeOutcome[];
  /** As in `EncodeResult`. */
  readonly tokens?: number;
  readonly timings: StageTimings;
}
