import type { LexicalFileCounts } from '../native/lexical-functions.ts';
import type { SnowballAnalyser } from './lexical-settings.ts';
import type { LexicalWriter } from './lexical-writer.ts';
import { engineTexts } from './stemmed-texts.ts';

/** Writes the terms of a Snowball analyser. Texts become terms here, and the engine's writer gets these. */
export class StemmedWriter implements LexicalWriter {
  readonly #analyser: SnowballAnalyser;
  readonly #engine: LexicalWriter;

  /** `engine` has the analyser `whitespace`. */
  constructor(analyser: SnowballAnalyser, engine: LexicalWriter) {
    this.#analyser = analyser;
    this.#engine = engine;
  }

  async append(texts: readonly string[], signal?: AbortSignal): Promise<void> {
    await this.#engine.append(await engineTexts(this.#analyser, texts, signal), signal);
  }

  finish(signal?: AbortSignal): Promise<LexicalFileCounts> {
    return this.#engine.finish(signal);
  }

  abandon(): void {
    this.#engine.abandon();
  }
}
