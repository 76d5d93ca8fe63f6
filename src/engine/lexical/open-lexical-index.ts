import type { Kernel } from '../native/kernel.ts';
import { loadKernel } from '../native/kernel.ts';
import { ReferenceLexicalFields } from '../reference/lexical/composed-fields.ts';
import { ReferenceLexicalIndex } from '../reference/lexical/reference-lexical-index.ts';
import type { LexicalFields } from './lexical-fields.ts';
import type { EngineSource, LexicalIndex, LexicalSource } from './lexical-index.ts';
import { engineAnalyserOf, isSnowball, type LexicalField } from './lexical-settings.ts';
import { MappedLexicalFields } from './native-lexical-fields.ts';
import { MappedLexicalIndex } from './native-lexical-index.ts';
import { StemmedFields } from './stemmed-fields.ts';
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
 * @throws TrawlError INDEX_FILE_MISSING or INDEX_FILE_FOREIGN, naming the file; INDEX_VERSION_UNSUPPORTED if other stemmers made
 * its terms.
 */
export async function openLexicalIndex(
  source: LexicalSource,
  options: LexicalEngineOptions = {},
): Promise<LexicalIndex> {
  const kernel = lexicalKernel(options);
  const made = engineSource(source);
  const engine = kernel === undefined ? new ReferenceLexicalIndex(made) : await MappedLexicalIndex.open(made, kernel);
  return isSnowball(source.analyser) ? new StemmedIndex(source.analyser, engine) : engine;
}

/** Opens the inverted indexes of all fields of an index, which have one analyser, as `openLexicalIndex`. */
export async function openLexicalFields(
  sources: ReadonlyMap<LexicalField, LexicalSource>,
  options: LexicalEngineOptions = {},
): Promise<LexicalFields> {
  const kernel = lexicalKernel(options);
  const made = new Map([...sources].map(([field, source]) => [field, engineSource(source)]));
  const engine = kernel === undefined ? new ReferenceLexicalFields(made) : await MappedLexicalFields.open(made, kernel);
  const analyser = [...sources.values()][0]?.analyser;
  return analyser !== undefined && isSnowball(analyser) ? new StemmedFields(analyser, engine) : engine;
}

function engineSource(source: LexicalSource): EngineSource {
  checkStemmer(source.shards[0]?.path ?? 'the index', source);
  return { ...source, analyser: engineAnalyserOf(source.analyser) };
}

/** Undefined without the native engine. */
function lexicalKernel({ threads, onWarning = () => undefined }: LexicalEngineOptions): Kernel | undefined {
  const loaded = loadKernel();
  if (!loaded.ok) {
    onWarning(
      `The native engine is missing (${loaded.reason}). BM25 runs in TypeScript, with the same answers, many times slower. ` +
        'Install a C++ compiler and run `npm run build` to build the engine.',
    );
    return undefined;
  }
  if (threads !== undefined) loaded.kernel.setThreads(threads);
  return loaded.kernel;
}
