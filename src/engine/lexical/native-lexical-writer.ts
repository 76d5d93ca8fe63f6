import type { Kernel } from '../native/kernel.ts';
import type { LexicalFileCounts, NativeLexicalWriter } from '../native/lexical-functions.ts';
import { type EngineAnalyser, engineAnalyser } from './lexical-settings.ts';
import type { LexicalWriter } from './lexical-writer.ts';

/**
 * Writes an inverted index with the native engine: its threads sort parts of the texts into temporary files `<path>.run-N`, which
 * `finish` merges and removes.
 */
export class MergingLexicalWriter implements LexicalWriter {
  readonly #kernel: Kernel;
  readonly #writer: NativeLexicalWriter;
  #closed = false;

  /** @throws TrawlError DISK_FULL or OUTPUT_NOT_WRITABLE. */
  constructor(path: string, analyser: EngineAnalyser, kernel: Kernel) {
    this.#kernel = kernel;
    this.#writer = kernel.createLexical(path, engineAnalyser(analyser));
  }

  async append(texts: readonly string[], signal?: AbortSignal): Promise<void> {
    const ends = new Float64Array(texts.length);
    const pieces = texts.map((text) => Buffer.from(text));
    let end = 0;
    for (const [i, piece] of pieces.entries()) ends[i] = end += piece.length;
    const joined = Buffer.concat(pieces, end);
    await this.#kernel.appendLexical(
      this.#writer,
      new Uint8Array(joined.buffer, joined.byteOffset, joined.length),
      ends,
      signal,
    );
  }

  async finish(signal?: AbortSignal): Promise<LexicalFileCounts> {
    const counts = await this.#kernel.finishLexical(this.#writer, signal);
    this.abandon();
    return counts;
  }

  abandon(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#kernel.closeLexicalWriter(this.#writer);
  }
}
