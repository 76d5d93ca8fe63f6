import type { QueryTemplate } from '../../encoder/identity/model-identity.ts';
import type { RerankList, RerankOutcome } from '../../encoder/rerank/reranker.ts';
import type { EncodeOutcome, EncoderInput, InputType, TruncateSide } from '../../encoder/text-encoder.ts';
import type { StageTimings } from '../timings.ts';
import type { CallOptions } from './retrieve-call.ts';

export interface EmbedCall extends CallOptions {
  readonly inputs: readonly EncoderInput[];
  readonly inputType: InputType;
  /** As in `RetrieveCall`. */
  readonly template?: QueryTemplate;
  /** Default: `tail`. */
  readonly truncate?: TruncateSide;
}

export interface EmbedResult {
  /** Row-major, inputs × dimension; zeros for an input that failed. */
  readonly vectors: Float32Array;
  readonly outcomes: readonly EncodeOutcome[];
  /** As in `EncodeResult`. */
  readonly tokens?: number;
  readonly timings: StageTimings;
}

/** Asks for the scores of texts that need not be passages of the index. */
export interface RerankCall extends CallOptions {
  readonly lists: readonly RerankList[];
  /** Whether scores are the model's output before its activation. Default: false. */
  readonly raw?: boolean;
}

export interface RerankResult {
  /** One per list, in their order. */
  readonly outcomes: readonly RerankOutcome[];
  readonly timings: StageTimings;
}

/** Asks for the beginnings of texts, by the tokens of the index's tokenizer or of the one that the operator named. */
export interface CutCall extends CallOptions {
  readonly texts: readonly string[];
  /** Most tokens of each text, ≥ 1, special tokens not counted. */
  readonly tokens: number;
}

/** The beginning of a text. */
export interface CutText {
  readonly text: string;
  /** Whether the text goes on. */
  readonly isCut: boolean;
}

export interface CutResult {
  /** One per text. Each ends with a whole word, unless the text has no white space for 100 characters there. */
  readonly texts: readonly CutText[];
  readonly timings: StageTimings;
}
