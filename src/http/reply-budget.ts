import type { IncomingMessage, ServerResponse } from 'node:http';
import { TrawlError } from '../errors.ts';
import { whenAnswerIsOver } from './client-signal.ts';

/**
 * The bytes of replies that are being written, or are written but not taken by their clients yet. A client that reads
 * slowly keeps its reply in memory; when all of them together are too many, requests are refused rather than the process
 * run out of memory. A reply that is alone may be larger than the limit.
 */
export class ReplyBudget {
  readonly #maxBytes: number;
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** OVERLOADED where no further reply should be begun. */
  require(): void {
    if (this.#bytes >= this.#maxBytes) throw this.#overloaded();
  }

  /**
   * Counts a reply until it is sent or its client is gone. The function returned is told its bytes as they are written: it
   * throws OVERLOADED where they are too many together with those of others.
   */
  hold(request: IncomingMessage, response: ServerResponse): (bytes: number) => void {
    let own = 0;
    let over = false;
    const release = (): void => {
      over = true;
      this.#bytes -= own;
      own = 0;
    };
    whenAnswerIsOver(request, response, release);
    return (bytes) => {
      if (over) return;
      own += bytes;
      this.#bytes += bytes;
      if (this.#bytes < this.#maxBytes || own === this.#bytes) return;
      // Of several that grow, the others have room again at once.
      const error = this.#overloaded();
      release();
      throw error;
    };
  }

  #overloaded(): TrawlError {
    return new TrawlError(
      'OVERLOADED',
      `${this.#bytes} bytes of replies wait for their clients to read them, more than this server holds. Try again later.`,
    );
  }
}
