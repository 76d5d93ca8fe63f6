import type { IncomingMessage, ServerResponse } from 'node:http';
import { TrawlError } from '../errors.ts';
import { whenAnswerIsOver } from './client-signal.ts';

/**
 * The bytes of replies that are written but not taken by their clients yet. A client that reads slowly keeps its reply in
 * memory; when all of them together are too many, new requests are refused rather than the process run out of memory.
 * Work already begun may go over the limit by its own replies.
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
    if (this.#bytes < this.#maxBytes) return;
    throw new TrawlError(
      'OVERLOADED',
      `${this.#bytes} bytes of replies wait for their clients to read them, more than this server holds. Try again later.`,
    );
  }

  /** Counts a reply until it is sent or its client is gone. */
  hold(bytes: number, request: IncomingMessage, response: ServerResponse): void {
    this.#bytes += bytes;
    whenAnswerIsOver(request, response, () => {
      this.#bytes -= bytes;
    });
  }
}
