import type { IncomingMessage, ServerResponse } from 'node:http';
import type { preParsingHookHandler } from 'fastify';
import { TrawlError } from '../errors.ts';
import { whenAnswerIsOver } from './client-signal.ts';

/**
 * The bytes of request bodies that have arrived and are not understood yet. Many clients that each send most of a large
 * body and then stall would otherwise fill the memory; what is only announced costs nothing.
 */
export class BodyBudget {
  readonly #maxBytes: number;
  readonly #held = new WeakMap<IncomingMessage, number>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** OVERLOADED where no further body should be received. */
  require(): void {
    if (this.#bytes >= this.#maxBytes) throw this.#overloaded();
  }

  /** The hook of a route that takes bodies. */
  readonly count: preParsingHookHandler = (request, reply, payload, done) => {
    this.#watch(request.raw, reply.raw);
    done(null, payload);
  };

  /** Counts a body as it arrives. One that arrives beyond the limit is given up with its connection. */
  #watch(request: IncomingMessage, response: ServerResponse): void {
    this.#held.set(request, 0);
    request.on('data', (chunk: Buffer) => {
      const held = this.#held.get(request);
      if (held === undefined) return;
      this.#held.set(request, held + chunk.length);
      this.#bytes += chunk.length;
      if (this.#bytes >= 2 * this.#maxBytes) request.destroy(this.#overloaded());
    });
    whenAnswerIsOver(request, response, () => this.release(request));
  }

  /** The body is understood, and its bytes are let go. */
  release(request: IncomingMessage): void {
    this.#bytes -= this.#held.get(request) ?? 0;
    this.#held.delete(request);
  }

  #overloaded(): TrawlError {
    return new TrawlError(
      'OVERLOADED',
      `${this.#bytes} bytes of request bodies are being received, more than this server holds. Try again later.`,
    );
  }
}
