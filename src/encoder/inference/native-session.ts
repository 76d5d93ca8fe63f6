import { TrawlError } from '../../base/errors.ts';
import type { EnginePrecision, NativeBert } from '../../engine/native/encoder-functions.ts';
import { type Kernel, loadKernel } from '../../engine/native/kernel.ts';
import type { GraphOutput } from './onnx-session.ts';
import type { TokenBatch } from './token-batch.ts';

const INT8_WITHOUT_ENGINE =
  ' `trawl model add` on a machine without the engine writes a graph in int8 that needs none; vectors of the two differ.';

/** The products' instruction set for each one of the searches; for the others, the fastest of the machine. bfloat16 has none with AMX. */
const PRODUCTS: Readonly<Record<EnginePrecision, Readonly<Record<string, string>>>> = {
  bfloat16: { 'avx512-vnni': 'avx512', avx2: 'avx2', serial: 'portable' },
  int8: { amx: 'amx', 'avx512-vnni': 'avx512-vnni', avx2: 'avx2', serial: 'portable' },
};

/** The engine's forward pass in bfloat16 or int8 on CPU threads, with the interface of `OnnxSession`. `run` blocks its thread. */
export class NativeSession {
  readonly isPooled = false;
  readonly #kernel: Kernel;
  readonly #bert: NativeBert;
  readonly #hidden: number;

  private constructor(kernel: Kernel, bert: NativeBert, hidden: number) {
    this.#kernel = kernel;
    this.#bert = bert;
    this.#hidden = hidden;
  }

  /** Throws ENGINE_MISSING without the native engine, MODEL_INVALID if the file is not one of weights. */
  static open(path: string, precision: EnginePrecision): NativeSession {
    const loaded = loadKernel();
    if (!loaded.ok) {
      throw new TrawlError(
        'ENGINE_MISSING',
        `${path} needs the native engine, which cannot be used (${loaded.reason}). Choose another precision with --precision, or set ` +
          `Trawl up on a machine with a C++ compiler.${precision === 'int8' ? INT8_WITHOUT_ENGINE : ''}`,
      );
    }
    const { kernel } = loaded;
    try {
      const bert = kernel.openBert(path, PRODUCTS[precision][kernel.namedIsa] ?? '');
      const facts = kernel.bertFacts(bert);
      if (facts.precision === precision) return new NativeSession(kernel, bert, facts.hidden);
      throw new TrawlError(
        'MODEL_INVALID',
        `${path} has weights in ${facts.precision}, but the description says ${precision}. Import the model again.`,
      );
    } catch (error) {
      if (!(error instanceof TrawlError) || error.code === 'OUT_OF_MEMORY') throw error;
      throw new TrawlError('MODEL_INVALID', error.message, { cause: error });
    }
  }

  /** Runs texts of equal length, without padding, on `threads` threads, which change no bit. Throws ENCODER_FAILED. */
  async run({ ids, types, rows, length, tokens }: TokenBatch, threads: number): Promise<GraphOutput> {
    if (tokens.some((count) => count !== length)) {
      throw new TrawlError('ENCODER_FAILED', 'The native encoder takes texts of equal length only, without padding.');
    }
    try {
      const data = this.#kernel.runBert(this.#bert, { ids, types: types ?? undefined, texts: rows, length, threads });
      return { data, dims: [rows, length, this.#hidden] };
    } catch (error) {
      throw new TrawlError(
        'ENCODER_FAILED',
        `The model failed on ${rows === 1 ? 'a text' : `${rows} texts`} of ${length} tokens: ${(error as Error).message}`,
        { details: { texts: rows, tokens: length }, cause: error },
      );
    }
  }

  async close(): Promise<void> {
    this.#kernel.closeBert(this.#bert);
  }
}
