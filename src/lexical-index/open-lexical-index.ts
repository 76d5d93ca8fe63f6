import { loadKernel } from '../native/kernel.ts';
import type { LexicalIndex, LexicalSource } from './lexical-index.ts';
import { MappedLexicalIndex } from './native-lexical-index.ts';
import { ReferenceLexicalIndex } from './reference/reference-lexical-index.ts';

export interface LexicalEngineOptions {
  /** Search threads, which the native engine shares with the dense search. Default: the available cores. */
  readonly threads?: number;
  /** Called with the reason if the native engine cannot be used. */
  readonly onWarning?: (warning: string) => void;
}

/** Opens an inverted index with the fastest engine of this machine; all engines give the same answers. */
export function openLexicalIndex(
  source: LexicalSource,
  { threads, onWarning = () => undefined }: LexicalEngineOptions = {},
): LexicalIndex {
  const loaded = loadKernel();
  if (!loaded.ok) {
    onWarning(
      `The native engine is missing (${loaded.reason}). BM25 runs in TypeScript, with the same answers, many times slower. ` +
        'Install a C++ compiler and run `npm run setup` to build the engine.',
    );
    return new ReferenceLexicalIndex(source);
  }
  if (threads !== undefined) loaded.kernel.setThreads(threads);
  return MappedLexicalIndex.open(source, loaded.kernel.lexical);
}
