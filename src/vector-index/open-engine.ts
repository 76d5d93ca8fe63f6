import { loadKernel } from '../native/kernel.ts';
import { environmentVariable } from '../options/resolve-options.ts';
import { FlatIndex } from './flat-index.ts';
import type { IndexSource } from './index-source.ts';
import { ReferenceIndex } from './reference-index.ts';
import type { VectorIndex } from './vector-index.ts';

/** Value of TRAWL_ISA that selects the reference engine in TypeScript, for comparisons. */
const REFERENCE = 'reference';

export interface EngineOptions {
  /** Search threads; default: the available cores. */
  readonly threads?: number;
  /** Called if the native engine cannot be used. */
  readonly onWarning?: (warning: string) => void;
}

/** Opens an index with the fastest available engine. All engines give the same results. */
export async function openEngine(source: IndexSource, options: EngineOptions = {}): Promise<VectorIndex> {
  const { threads, onWarning = () => undefined } = options;
  const referenceOptions = threads === undefined ? {} : { threads };
  if (environmentVariable('TRAWL_ISA') === REFERENCE) return ReferenceIndex.open(source, referenceOptions);
  const loaded = loadKernel();
  if (!loaded.ok) {
    onWarning(
      `The native engine is missing (${loaded.reason}). Searches run in TypeScript, with the same results, but 20 to 1,000 ` +
        'times slower. Install a C++ compiler and run `npm run setup` to build the engine.',
    );
    return ReferenceIndex.open(source, referenceOptions);
  }
  if (threads !== undefined) loaded.kernel.setThreads(threads);
  return FlatIndex.open(source, loaded.kernel);
}
