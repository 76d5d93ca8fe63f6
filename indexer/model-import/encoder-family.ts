import type { Precision } from '../../src/encoder/identity/model-identity.ts';
import type { JsonObject } from '../../src/encoder/model/json-file.ts';
import type { EnginePrecision } from '../../src/engine/native/encoder-functions.ts';
import type { CheckpointWeights } from './checkpoint-weights.ts';
import type { DenseModule } from './dense-modules.ts';
import type { NativePart } from './native-weights.ts';
import type { OnnxGraph } from './onnx-graph.ts';

/** Encoders whose graphs one file of `families/` makes. */
export interface EncoderFamily {
  /** Values of `model_type` in config.json. */
  readonly modelTypes: readonly string[];
  /** Well-known models of the family, for error messages. */
  readonly examples: string;
  /** Reads the architecture. Throws MODEL_INVALID, with `path`, for a config that the family's graphs do not compute. */
  parse(config: JsonObject, path: string): EncoderArchitecture;
}

export interface EncoderArchitecture {
  readonly modelType: string;
  /** Rows of the embedding table. */
  readonly vocabularySize: number;
  /** Whether the same architecture also generates text. Then only a folder that states its pooling is an encoder. */
  readonly generatesText?: boolean;
  /** Whether activations of trained models exceed float16. Then no graph of this precision is made. */
  readonly overflowsFloat16?: boolean;
  /** The token that ends every text; added to a tokenizer that does not add it. Default: the tokenizer alone decides. */
  readonly endToken?: string;
  /** Finds the encoder's weights and checks their shapes. Throws MODEL_INVALID. Modules are applied to the vector of every token. */
  readonly encoder: (
    weights: CheckpointWeights,
  ) => (precision: Precision, modules: readonly DenseModule[]) => OnnxGraph;
  /** The engine's forward pass in bfloat16 and int8. Absent if the engine has none of the family. */
  readonly engine?: EnginePass;
  /** As `encoder`, for a cross-encoder; `answers` for a decoder without a score head. Absent if the family has none. */
  readonly crossEncoder?: (weights: CheckpointWeights, answers: AnswerIds | undefined) => CrossEncoderGraphs;
}

interface CrossEncoderGraphs {
  /** Values per pair. */
  readonly labels: number;
  readonly graph: (precision: Precision) => OnnxGraph;
}

export interface EnginePass {
  /** Why the engine does not compute this shape of the family, after the name of a precision; absent if it does. */
  readonly refusal?: string;
  /** Throws CONFIG_INVALID with the refusal. */
  readonly weights: (weights: CheckpointWeights, precision: EnginePrecision) => readonly NativePart[];
}

/** Ids of the tokens whose logits a reranker compares. */
export interface AnswerIds {
  readonly yes: number;
  readonly no: number;
}
