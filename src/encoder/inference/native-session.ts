import { TrawlError } from '../../base/errors.ts';
import type { EnginePrecision, NativeBert } from '../../engine/native/encoder-functions.ts';
import { type Kernel, loadKernel } from '../../engine/native/kernel.ts';
import { invalidModel } from '../model/json-file.ts';
import type { Session } from './onnx-session.ts';
import { batchFailure } from './token-batch.ts';

const INT8_WITHOUT_ENGINE =
  ' `trawl model add` on a machine without the engine writes a graph in int8 that needs none; vectors of the two differ.';

/** The products' instruction set for each one of the searches; for the others, the fastest of the machine. bfloat16 has none with AMX. */
const PRODUCTS: Readonly<Record<EnginePrecision, Readonly<Record<string, string>>>> = {
  bfloat16: { 'avx512-vnni': 'avx512', avx2: 'avx2', serial: 'portable' },
  int8: { amx: 'amx', 'avx512-vnni': 'avx512-vnni', avx2: 'avx2', serial: 'portable' },
};

/**
 * The engine's forward pass in bfloat16 or int8 on CPU threads, for texts of equal length without padding; the number of threads changes
 * no bit. Throws ENGINE_MISSING without the native engine, MODEL_INVALID if the file is not one of weights.
 */
export function openNativeSession(path: string, precision: EnginePrecision): Session {
  const loaded = loadKernel();
  if (!loaded.ok) {
    throw new TrawlError(
      'ENGINE_MISSING',
      `${path} needs the native engine, which cannot be used (${loaded.reason}). Choose another precision with --precision, or set ` +
        `Trawl up on a machine with a C++ compiler.${precision === 'int8' ? INT8_WITHOUT_ENGINE : ''}`,
    );
  }
  const { kernel } = loaded;
  const { bert, hidden } = openWeights(kernel, path, precision);
  return {
    isPooled: false,
    async run({ ids, types, rows, length, tokens }, threads = 1) {
      if (tokens.some((count) => count !== length)) {
        throw new TrawlError('ENCODER_FAILED', 'The native encoder takes texts of equal length only, without padding.');
      }
      try {
        return {
          data: kernel.runBert(bert, { ids, types, texts: rows, length, threads }),
          dims: [rows, length, hidden],
        };
      } catch (error) {
        if (error instanceof TrawlError && error.code === 'FILE_CHANGED') throw error;
        throw batchFailure(error, (error as Error).message, { rows, length });
      }
    },
    close: async () => kernel.closeBert(bert),
  };
}

function openWeights(kernel: Kernel, path: string, precision: EnginePrecision): { bert: NativeBert; hidden: number } {
  try {
    const bert = kernel.openBert(path, PRODUCTS[precision][kernel.namedIsa] ?? '');
    const facts = kernel.bertFacts(bert);
    if (facts.precision === precision) return { bert, hidden: facts.hidden };
    throw invalidModel(
      `${path} has weights in ${facts.precision}, but the description says ${precision}. Import the model again.`,
    );
  } catch (error) {
    if (!(error instanceof TrawlError) || error.code === 'OUT_OF_MEMORY') throw error;
    throw invalidModel(error.message, { cause: error });
  }
}
