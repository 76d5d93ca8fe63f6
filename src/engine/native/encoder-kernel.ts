import type { BertFacts, EncoderFunctions, EnginePrecision, NativeBert } from './encoder-functions.ts';
import type { InstructionSet } from './instruction-set.ts';
import { translate } from './native-calls.ts';

/** The products' instruction set for each one of the searches; for the others, the fastest of the machine. bfloat16 has none with AMX. */
const PRODUCTS: Readonly<Record<EnginePrecision, Readonly<Record<string, string>>>> = {
  bfloat16: { 'avx512-vnni': 'avx512', avx2: 'avx2', serial: 'portable' },
  int8: { amx: 'amx', 'avx512-vnni': 'avx512-vnni', avx2: 'avx2', serial: 'portable' },
};

/** The engine's forward pass of BERT encoders in bfloat16 and int8. Wraps the addon and translates its errors to `TrawlError`s. */
export class EncoderKernel {
  readonly #addon: EncoderFunctions;

  readonly #isa: string;

  /** `isa`: the instruction set of the searches that TRAWL_ISA names, or ''. */
  constructor(addon: EncoderFunctions, isa = '') {
    this.#addon = addon;
    this.#isa = isa;
  }

  /** The instruction sets of the matrix products, fastest first. All give the same bits. */
  instructionSets(precision: EnginePrecision): readonly InstructionSet[] {
    return this.#addon.encoderIsas(precision);
  }

  /**
   * Maps the weights of that precision; all encoders of the machine share them. `isa`: default the one that TRAWL_ISA names, else the
   * fastest of the machine.
   *
   * @throws TrawlError INDEX_FILE_MISSING, INDEX_FILE_FOREIGN, or CONFIG_INVALID for an instruction set that this machine lacks.
   */
  open(path: string, precision: EnginePrecision, isa = PRODUCTS[precision][this.#isa] ?? ''): NativeBert {
    return translate(() => this.#addon.openBert(path, isa));
  }

  facts(bert: NativeBert): BertFacts {
    return this.#addon.bertFacts(bert);
  }

  /**
   * Runs texts of equal length; blocks the calling thread. `ids`, `types`: texts × length. `threads` (default 1, the calling one
   * included; at most 8 take part) change no bit. Returns texts × length × hidden. Throws a TypeError for ids, types or a length that
   * the model does not have.
   */
  run(
    bert: NativeBert,
    batch: { ids: Int32Array; types: Int32Array | null; texts: number; length: number; threads?: number },
  ): Float32Array<ArrayBuffer> {
    const { ids, types, texts, length, threads = 1 } = batch;
    return translate(() => this.#addon.runBert(bert, ids, types ?? undefined, texts, length, threads));
  }

  close(bert: NativeBert): void {
    this.#addon.closeBert(bert);
  }
}
