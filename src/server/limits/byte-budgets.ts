import type { IncomingMessage, ServerResponse } from 'node:http';
import type { preParsingHookHandler } from 'fastify';
import { TrawlError } from '../../base/errors.ts';
import { onResponseEnd } from '../connections/client-signal.ts';

/**
 * Counts the bytes of request bodies that have arrived but are not parsed yet, and refuses further bodies at a limit. Without it,
 * clients that send most of a large body and then stall could fill the memory.
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

  /** @throws TrawlError OVERLOADED at the limit. */
  refuseIfFull(): void {
    if (this.#bytes >= this.#maxBytes) throw this.#overloaded();
  }

  /** A Fastify hook for routes with a body. */
  readonly count: preParsingHookHandler = (request, reply, payload, done) => {
    this.#watch(request.raw, reply.raw);
    done(null, payload);
  };

  /** Counts a body while it arrives. At twice the limit, closes the connection. */
  #watch(request: IncomingMessage, response: ServerResponse): void {
    this.#held.set(request, 0);
    request.on('data', (chunk: Buffer) => {
      const held = this.#held.get(request);
      if (held === undefined) return;
      this.#held.set(request, held + chunk.length);
      this.#bytes += chunk.length;
      if (this.#bytes >= 2 * this.#maxBytes) request.destroy(this.#overloaded());
    });
    onResponseEnd(request, response, () => this.release(request));
  }

  /** Call it when the body is parsed. */
  release(request: IncomingMessage): void {
    this.#bytes -= this.#held.get(request) ?? 0;
    this.#held.delete(request);
  }

  #overloaded(): TrawlError {
    return new TrawlError(
      'OVERLOADED',
      `The server is receiving ${this.#bytes} bytes of request bodies; the limit is ${this.#maxBytes}. Try again later.`,
    );
  }
}

/**
 * Counts the bytes of replies that clients have not read yet, and refuses requests at a limit, so that slow readers cannot exhaust
 * the memory. A single reply may be larger than the limit.
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

  /** @throws TrawlError OVERLOADED at the limit. */
  refuseIfFull(): void {
    if (this.#bytes >= this.#maxBytes) throw this.#overloaded();
  }

  /**
   * Counts a reply until it is sent or its client disconnects.
   *
   * @returns a function to call with the size of each chunk. It throws OVERLOADED when the replies of all requests reach the limit,
   * unless this reply is the only one.
   */
  hold(request: IncomingMessage, response: ServerResponse): (bytes: number) => void {
    let own = 0;
    let ended = false;
    const release = (): void => {
      ended = true;
      this.#bytes -= own;
      own = 0;
    };
    onResponseEnd(request, response, release);
    return (bytes) => {
      if (ended) return;
      own += bytes;
      this.#bytes += bytes;
      if (this.#bytes < this.#maxBytes || own === this.#bytes) return;
      // Releases the bytes before the error is handled, so that other replies have room.
      const error = this.#overloaded();
      release();
      throw error;
    };
  }

  #overloaded(): TrawlError {
    return new TrawlError(
      'OVERLOADED',
      `Clients have not read ${this.#bytes} bytes of replies yet; the limit is ${this.#maxBytes}. Try again later.`,
    );
  }
}
