import { call, type InstructionSet } from './native-function.ts';

declare const handleBrand: unique symbol;
/** A handle of the addon; only passed back to it. */
export interface NativeBert {
  readonly [handleBrand]: 'bert';
}

export interface BertFacts {
  readonly hidden: number;
  readonly isa: string;
  readonly precision: EnginePrecision;
}

/** A type of the weights of encoders that the engine runs. */
export type EnginePrecision = 'bfloat16' | 'int8';

export interface BertBatch {
  /** `texts` × `length`, texts of equal length. */
  readonly ids: Int32Array;
  /** As `ids`; absent: all 0. */
  readonly types?: Int32Array | undefined;
  readonly texts: number;
  readonly length: number;
  /** Threads that share the work, the calling one included; at most 8 take part. They change no bit. */
  readonly threads: number;
}

/** The addon's functions for encoders in bfloat16 and int8. */
export const ENCODER_FUNCTIONS = {
  /** Instruction sets of the matrix products, fastest first. All give the same bits. */
  encoderIsas: call<(precision: EnginePrecision) => InstructionSet[]>(),
  /**
   * Maps the file of weights, which all encoders of the machine share. `isa`: an instruction set of its precision; '': the fastest
   * available. Throws INDEX_FILE_MISSING, INDEX_FILE_FOREIGN, or CONFIG_INVALID for an instruction set that this machine lacks.
   */
  openBert: call<(path: string, isa: string) => NativeBert>(),
  bertFacts: call<(bert: NativeBert) => BertFacts>(),
  /**
   * Blocks the calling thread. Returns the vectors of the last hidden state, texts × length × hidden. Throws a TypeError for ids, types
   * or a length that the model does not have.
   */
  runBert: call<(bert: NativeBert, batch: BertBatch) => Float32Array<ArrayBuffer>>(),
  closeBert: call<(bert: NativeBert) => void>(),
};
