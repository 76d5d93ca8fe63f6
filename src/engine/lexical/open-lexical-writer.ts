import type { Kernel } from '../native/kernel.ts';
import { ReferenceLexicalWriter } from '../reference/lexical/reference-lexical-writer.ts';
import { type AnalyserName, engineAnalyserOf, isSnowball } from './lexical-settings.ts';
import type { LexicalWriter } from './lexical-writer.ts';
import { MergingLexicalWriter } from './native-lexical-writer.ts';
import { StemmedWriter } from './stemmed-writer.ts';

/**
 * Begins an inverted index, with the native engine if there is one. Both writers write the same bytes.
 *
 * @throws TrawlError DISK_FULL or OUTPUT_NOT_WRITABLE.
 */
export function openLexicalWriter(path: string, analyser: AnalyserName, kernel: Kernel | undefined): LexicalWriter {
  const made = engineAnalyserOf(analyser);
  const engine =
    kernel === undefined ? new ReferenceLexicalWriter(path, made) : new MergingLexicalWriter(path, made, kernel);
  return isSnowball(analyser) ? new StemmedWriter(analyser, engine) : engine;
}
