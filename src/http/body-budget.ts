import type { IncomingMessage, ServerResponse } from 'node:http';
import { TrawlError } from '../errors.ts';
import { whenAnswerIsOver } from './client-signal.ts';

/**
 * The bytes of bodies that are being received, by their announced length. Many clients that send slowly would fill the
 * memory with halves of bodies; when all of them together are too many, new requests are refused before theirs is read.
 * A body without a length is not counted; it is bounded by `maxBodyBytes` and the time it may take.
 */
export class BodyBudget {
  readonly #maxBytes: number;
  readonly #held = new WeakMap<IncomingMessage, number>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Counts a body until it is released or its request is over. OVERLOADED where no further one should be received. */
  hold(request: IncomingMessage, response: ServerResponse): void {
    if (this.#bytes >= this.#maxBytes) {
      throw new TrawlError(
        'OVERLOADED',
        `${this.#bytes} bytes of requests are being received, more than this server holds. Try again later.`,
      );
    }
    const bytes = Number(request.headers['content-length'] ?? 0);
    if (bytes === 0) return;
    this.#held.set(request, bytes);
    this.#bytes += bytes;
    whenAnswerIsOver(request, response, () => this.release(request));
  }

  /** The body has been read and is let go. */
  release(request: IncomingMessage): void {
    this.#bytes -= this.#held.get(request) ?? 0;
    this.#held.delete(request);
  }
}
