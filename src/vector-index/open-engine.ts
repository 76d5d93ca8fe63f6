import { environmentVariable } from '../options/resolve-options.ts';
import { FlatIndex } from './flat-index.ts';
import type { IndexSource } from './index-source.ts';
import { loadKernel } from './kernel.ts';
import { ReferenceIndex } from './reference-index.ts';
import type { VectorIndex } from './vector-index.ts';

/** Name in TRAWL_ISA that asks for the TypeScript search, for comparison. */
const REFERENCE = 'reference';

export interface EngineOptions {
  /** Search threads; default: as many as cores. */
  readonly threads?: number;
  /** Told when the native engine cannot be used, with the reason and the cost. */
  readonly onWarning?: (warning: string) => void;
}

/** The fastest engine this machine has over an index; every engine gives the same answers. */
export async function openEngine(source: IndexSource, options: EngineOptions = {}): Promise<VectorIndex> {
  const { threads, onWarning = () => undefined } = options;
  const referenceOptions = threads === undefined ? {} : { threads };
  if (environmentVariable('TRAWL_ISA') === REFERENCE) return ReferenceIndex.open(source, referenceOptions);
  const loaded = loadKernel();
  if (!loaded.ok) {
    onWarning(
      `The native engine is not there (${loaded.reason}): searching in TypeScript, with the same answers but 20 to 1,000 ` +
        'times slower. With a C++ compiler installed, `npm run setup` builds it.',
    );
    return ReferenceIndex.open(source, referenceOptions);
  }
  if (threads !== undefined) loaded.kernel.setThreads(threads);
  return FlatIndex.open(source, loaded.kernel);
}
