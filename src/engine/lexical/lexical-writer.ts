import type { LexicalFileCounts } from '../native/lexical-functions.ts';

/** Writes the inverted index of one field from a stream of texts. The file's bytes depend only on the texts and the analyser. */
export interface LexicalWriter {
  /**
   * Appends rows. One call must end before the next begins.
   *
   * @throws TrawlError DISK_FULL, OUTPUT_NOT_WRITABLE, CANCELLED, or ENGINE_MISSING if the texts are too many for the writer in
   * TypeScript.
   */
  append(texts: readonly string[], signal?: AbortSignal): Promise<void>;
  /** Writes the file and flushes it to disk. */
  finish(signal?: AbortSignal): Promise<LexicalFileCounts>;
  /** Frees the writer after an error. Safe to call twice, and after `finish`. */
  abandon(): void;
}
