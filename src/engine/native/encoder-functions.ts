import type { InstructionSet } from './instruction-set.ts';

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

/** The addon's functions for encoders in bfloat16 and int8 (native/addon/entries.hpp). */
export interface EncoderFunctions {
  /** Instruction sets of the matrix products, fastest first. */
  encoderIsas(precision: EnginePrecision): InstructionSet[];
  /** Maps the file of weights. `isa`: an instruction set of its precision; '': the fastest available. */
  openBert(path: string, isa: string): NativeBert;
  bertFacts(bert: NativeBert): BertFacts;
  /**
   * Blocks the calling thread, which is one of `threads`. `ids` and `types`: texts × length. The vectors of the last hidden state,
   * texts × length × hidden.
   */
  runBert(
    bert: NativeBert,
    ids: Int32Array,
    types: Int32Array | undefined,
    texts: number,
    length: number,
    threads: number,
  ): Float32Array<ArrayBuffer>;
  closeBert(bert: NativeBert): void;
}
