import type { InstructionSet } from './instruction-set.ts';

declare const handleBrand: unique symbol;
/** A handle of the addon; only passed back to it. */
export interface NativeBert {
  readonly [handleBrand]: 'bert';
}

/** The addon's functions for encoders in bfloat16 (native/addon/entries.hpp). */
export interface EncoderFunctions {
  /** Instruction sets of the matrix products, fastest first. */
  encoderIsas(): InstructionSet[];
  /** Maps the file of weights. `isa` '': the fastest available. */
  openBert(path: string, isa: string): NativeBert;
  bertFacts(bert: NativeBert): { readonly hidden: number; readonly isa: string };
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
