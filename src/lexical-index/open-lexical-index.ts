import { loadKernel } from '../native/kernel.ts';
import type { EngineSource, LexicalIndex, LexicalSource } from './lexical-index.ts';
import { isSnowball } from './lexical-settings.ts';
import { MappedLexicalIndex } from './native-lexical-index.ts';
import { ReferenceLexicalIndex } from './reference/reference-lexical-index.ts';
import { checkStemmer, StemmedIndex } from './stemmed-index.ts';

export interface LexicalEngineOptions {
  /** Search threads, which the native engine shares with the dense search. Default: the available cores. */
  readonly threads?: number;
  /** Called with the reason if the native engine cannot be used. */
  readonly onWarning?: (warning: string) => void;
}

/**
 * Opens an inverted index with the fastest engine of this machine; all engines give the same answers.
 *
 * @throws TrawlError INDEX_FILE_MISSING or INDEX_FILE_FOREIGN, naming the file; INDEX_VERSION_UNSUPPORTED if other stemmers made its terms.
 */
export function openLexicalIndex(source: LexicalSource, options: LexicalEngineOptions = {}): LexicalIndex {
  const { analyser, shards, stemmer } = source;
  if (!isSnowball(analyser)) return openEngine({ ...source, analyser }, options);
  checkStemmer(shards[0]?.path ?? 'the index', { analyser, stemmer });
  return new StemmedIndex(analyser, openEngine({ ...source, analyser: 'whitespace' }, options));
}

function openEngine(
  source: EngineSource,
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
