import { loadKernel } from '../native/kernel.ts';
import type { LexicalKernel } from '../native/lexical-kernel.ts';
import type { LexicalFields } from './lexical-fields.ts';
import type { LexicalIndex, LexicalSource } from './lexical-index.ts';
import type { LexicalField } from './lexical-settings.ts';
import { MappedLexicalFields } from './native-lexical-fields.ts';
import { MappedLexicalIndex } from './native-lexical-index.ts';
import { ReferenceLexicalFields } from './reference/composed-fields.ts';
import { ReferenceLexicalIndex } from './reference/reference-lexical-index.ts';

export interface LexicalEngineOptions {
  /** Search threads, which the native engine shares with the dense search. Default: the available cores. */
  readonly threads?: number;
  /** Called with the reason if the native engine cannot be used. */
  readonly onWarning?: (warning: string) => void;
}

/** Opens an inverted index with the fastest engine of this machine; all engines give the same answers. */
export function openLexicalIndex(source: LexicalSource, options: LexicalEngineOptions = {}): LexicalIndex {
  const kernel = lexicalKernel(options);
  return kernel === undefined ? new ReferenceLexicalIndex(source) : MappedLexicalIndex.open(source, kernel);
}

/** Opens the inverted indexes of all fields of an index, as `openLexicalIndex`. */
export function openLexicalFields(
  sources: ReadonlyMap<LexicalField, LexicalSource>,
  options: LexicalEngineOptions = {},
): LexicalFields {
  const kernel = lexicalKernel(options);
  return kernel === undefined ? new ReferenceLexicalFields(sources) : MappedLexicalFields.open(sources, kernel);
}

/** Undefined without the native engine. */
function lexicalKernel({ threads, onWarning = () => undefined }: LexicalEngineOptions): LexicalKernel | undefined {
  const loaded = loadKernel();
  if (!loaded.ok) {
    onWarning(
      `The native engine is missing (${loaded.reason}). BM25 runs in TypeScript, with the same answers, many times slower. ` +
        'Install a C++ compiler and run `npm run setup` to build the engine.',
    );
    return undefined;
  }
  if (threads !== undefined) loaded.kernel.setThreads(threads);
  return loaded.kernel.lexical;
}
