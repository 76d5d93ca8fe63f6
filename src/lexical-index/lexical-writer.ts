import type { LexicalFileCounts, NativeLexicalWriter } from '../native/lexical-functions.ts';
import type { LexicalKernel } from '../native/lexical-kernel.ts';
import { type AnalyserName, engineAnalyser, engineAnalyserOf } from './lexical-settings.ts';
import { engineTexts } from './stemmed-texts.ts';

/**
 * Writes the inverted index of one field from a stream of texts. The file's bytes depend only on the texts and the analyser,
 * not on the number of threads or the size of the calls. Temporary files `<path>.run-N` are removed at the end.
 */
export class LexicalWriter {
  readonly #analyser: AnalyserName;
  readonly #kernel: LexicalKernel;
  readonly #writer: NativeLexicalWriter;
  #closed = false;

  /** @throws TrawlError DISK_FULL or OUTPUT_NOT_WRITABLE. */
  constructor(path: string, analyser: AnalyserName, kernel: LexicalKernel) {
    this.#kernel = kernel;
    this.#analyser = analyser;
    this.#writer = kernel.create(path, engineAnalyser(engineAnalyserOf(analyser)));
  }

  /**
   * Appends rows. One call must end before the next begins.
   *
   * @throws TrawlError DISK_FULL, OUTPUT_NOT_WRITABLE or CANCELLED.
   */
  async append(texts: readonly string[], signal?: AbortSignal): Promise<void> {
    const ends = new Float64Array(texts.length);
    const terms = await engineTexts(this.#analyser, texts, signal);
    const pieces = terms.map((text) => Buffer.from(text));
    let end = 0;
    for (const [i, piece] of pieces.entries()) ends[i] = end += piece.length;
    const joined = Buffer.concat(pieces, end);
    await this.#kernel.append(
      this.#writer,
      new Uint8Array(joined.buffer, joined.byteOffset, joined.length),
      ends,
      signal,
    );
  }

  /** Writes the file and flushes it to disk. */
  async finish(signal?: AbortSignal): Promise<LexicalFileCounts> {
    const counts = await this.#kernel.finish(this.#writer, signal);
    this.abandon();
    return counts;
  }

  /** Frees the writer after an error. Safe to call twice, and after `finish`. */
  abandon(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#kernel.closeWriter(this.#writer);
  }
}
