import type { IncomingMessage, ServerResponse } from 'node:http';
import type { preParsingHookHandler } from 'fastify';
import { TrawlError } from '../../base/errors.ts';
import { onResponseEnd } from '../connections/client-signal.ts';

/** Counts bytes, and refuses requests at a limit. */
abstract class ByteBudget {
  protected readonly maxBytes: number;
  bytes = 0;

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
  }

  /** @throws TrawlError OVERLOADED at the limit. */
  refuseIfFull(): void {
    if (this.bytes >= this.maxBytes) throw this.overloaded();
  }

  /** What holds the bytes, for messages. */
  protected abstract readonly situation: string;

  protected overloaded(): TrawlError {
    return new TrawlError('OVERLOADED', `${this.situation}; the limit is ${this.maxBytes}. Try again later.`);
  }
}

/**
 * Counts the bytes of request bodies that have arrived but are not parsed yet. Without the limit, clients that send most of a large body
 * and then stall could fill the memory.
 */
export class BodyBudget extends ByteBudget {
  readonly #held = new WeakMap<IncomingMessage, number>();

  protected override get situation(): string {
    return `The server is receiving ${this.bytes} bytes of request bodies`;
  }

  /** A Fastify hook for routes with a body. Counts the body while it arrives; at twice the limit, closes the connection. */
  readonly count: preParsingHookHandler = ({ raw: request }, { raw: response }, payload, done) => {
    this.#held.set(request, 0);
    payload.on('data', (chunk: Buffer) => {
      const held = this.#held.get(request);
      if (held === undefined) return;
      this.#held.set(request, held + chunk.length);
      this.bytes += chunk.length;
      if (this.bytes >= 2 * this.maxBytes) request.destroy(this.overloaded());
    });
    onResponseEnd(request, response, () => this.release(request));
    done(null, payload);
  };

  /** Call it when the body is parsed. */
  release(request: IncomingMessage): void {
    this.bytes -= this.#held.get(request) ?? 0;
    this.#held.delete(request);
  }
}

/**
 * Counts the bytes of replies that clients have not read yet. Without the limit, slow readers could exhaust the memory. A single reply may
 * be larger than the limit.
 */
export class ReplyBudget extends ByteBudget {
  protected override get situation(): string {
    return `Clients have not read ${this.bytes} bytes of replies yet`;
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
      this.bytes -= own;
      own = 0;
    };
    onResponseEnd(request, response, release);
    return (bytes) => {
      if (ended) return;
      own += bytes;
      this.bytes += bytes;
      if (this.bytes < this.maxBytes || own === this.bytes) return;
      // Releases the bytes before the error is handled, so that other replies have room.
      const error = this.overloaded();
      release();
      throw error;
    };
  }
}
