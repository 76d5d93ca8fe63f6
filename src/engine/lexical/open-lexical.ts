import { type Kernel, searchKernel } from '../native/kernel.ts';
import { referenceLexicalFields } from '../reference/lexical/composed-fields.ts';
import { ReferenceLexicalIndex } from '../reference/lexical/reference-lexical-index.ts';
import { ReferenceLexicalWriter } from '../reference/lexical/reference-lexical-writer.ts';
import type { EngineSource, LexicalFields, LexicalIndex, LexicalSource } from './lexical-index.ts';
import { type AnalyserName, engineAnalyser, isSnowball, type LexicalField } from './lexical-settings.ts';
import type { LexicalWriter } from './lexical-writer.ts';
import { nativeLexicalWriter, openNativeLexicalFields, openNativeLexicalIndex } from './native-lexical.ts';
import { checkStemmer, stemmedFields, stemmedIndex, stemmedWriter } from './stemmed.ts';

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
  const engine = kernel === undefined ? new ReferenceLexicalIndex(made) : await openNativeLexicalIndex(made, kernel);
  return isSnowball(source.analyser) ? stemmedIndex(source.analyser, engine) : engine;
}

/** Opens the inverted indexes of all fields of an index, which have one analyser, as `openLexicalIndex`. */
export async function openLexicalFields(
  sources: ReadonlyMap<LexicalField, LexicalSource>,
  options: LexicalEngineOptions = {},
): Promise<LexicalFields> {
  const kernel = lexicalKernel(options);
  const made = new Map(Array.from(sources, ([field, source]) => [field, engineSource(source)]));
  const engine = await (kernel === undefined ? referenceLexicalFields(made) : openNativeLexicalFields(made, kernel));
  const analyser = [...sources.values()][0]?.analyser;
  return analyser !== undefined && isSnowball(analyser) ? stemmedFields(analyser, engine) : engine;
}

/**
 * Begins an inverted index, with the native engine if there is one. Both writers write the same bytes.
 *
 * @throws TrawlError DISK_FULL or OUTPUT_NOT_WRITABLE.
 */
export function openLexicalWriter(path: string, analyser: AnalyserName, kernel: Kernel | undefined): LexicalWriter {
  const made = engineAnalyser(analyser);
  const engine =
    kernel === undefined ? new ReferenceLexicalWriter(path, made) : nativeLexicalWriter(path, made, kernel);
  return isSnowball(analyser) ? stemmedWriter(analyser, engine) : engine;
}

function engineSource(source: LexicalSource): EngineSource {
  checkStemmer(source.shards[0]?.path ?? 'the index', source);
  return { ...source, analyser: engineAnalyser(source.analyser) };
}

function lexicalKernel({ threads, onWarning = () => undefined }: LexicalEngineOptions): Kernel | undefined {
  const kernel = searchKernel((reason) =>
    onWarning(
      `The native engine is missing (${reason}). BM25 runs in TypeScript, with the same answers, many times slower. ` +
        'Install a C++ compiler and run `npm run build` to build the engine.',
    ),
  );
  if (threads !== undefined) kernel?.setThreads(threads);
  return kernel;
}
