import { randomUUID } from 'node:crypto';
import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import { TrawlError } from '../../base/errors.ts';
import { onResponseEnd } from './client-signal.ts';

/** How long a broken connection stays open after its response, so that the client can read it. */
const CLOSE_AFTER_MS = 2_000;

/**
 * Answers bytes that are not a valid HTTP request: garbage, endless headers, or a request that takes too long to arrive. They never
 * reach a route. Complete requests that came before them on the same connection are answered first, because responses must be sent
 * in order.
 */
export class ConnectionErrors {
  readonly #log: FastifyBaseLogger;
  /** Unanswered requests of a connection, in order. */
  readonly #pending = new WeakMap<Socket, Map<ServerResponse, IncomingMessage>>();
  /** Connections on which parsing has failed. */
  readonly #broken = new WeakMap<Socket, NodeJS.ErrnoException>();

  readonly #onError: () => void;

  /** @param onError called for each connection on which parsing fails. */
  constructor(log: FastifyBaseLogger, onError: () => void) {
    this.#log = log;
    this.#onError = onError;
  }

  watch(server: Server): void {
    server.on('request', (request, response) => {
      const { socket } = request;
      const pending = this.#pending.get(socket) ?? new Map<ServerResponse, IncomingMessage>();
      this.#pending.set(socket, pending.set(response, request));
      onResponseEnd(request, response, () => {
        pending.delete(response);
        const error = this.#broken.get(socket);
        if (error !== undefined) this.#answerInOrder(error, socket);
      });
    });
  }

  handle(error: NodeJS.ErrnoException, socket: Socket): void {
    if (error.code === 'ECONNRESET' || socket.destroyed) return;
    // Node reports every further chunk of a broken connection.
    if (this.#broken.has(socket)) return;
    this.#broken.set(socket, error);
    this.#log.debug({ reason: error.code, status: statusOf(error.code) }, 'bytes that are not an HTTP request');
    this.#onError();
    this.#answerInOrder(error, socket);
  }

  #answerInOrder(error: NodeJS.ErrnoException, socket: Socket): void {
    for (const [response, request] of this.#pending.get(socket) ?? []) {
      if (request.complete) return;
      // The invalid bytes are in the body of this request, so no route will answer it. A response that has begun is aborted.
      if (!response.headersSent) continue;
      socket.destroySoon();
      return;
    }
    if (!socket.writable) {
      socket.destroySoon();
      return;
    }
    socket.end(answerTo(error));
    if (error.code === 'HPE_INVALID_EOF_STATE') {
      // The client closed its side in the middle of a request.
      socket.destroySoon();
      return;
    }
    // Closes the connection of a client that never closes its side.
    socket.setTimeout(CLOSE_AFTER_MS, () => socket.destroy());
  }
}

function answerTo({ code }: NodeJS.ErrnoException): string {
  const status = statusOf(code);
  const message = `The bytes received are not a valid HTTP request (${code ?? 'unknown'}).`;
  const body = JSON.stringify({ detail: STATUS_CODES[status], error: { code: 'INVALID_REQUEST', message } });
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    'cache-control: no-store',
    'x-content-type-options: nosniff',
    `x-request-id: ${randomUUID()}`,
    'connection: close',
  ];
  return `${head.join('\r\n')}\r\n\r\n${body}`;
}

function statusOf(code: string | undefined): number {
  if (code === 'HPE_HEADER_OVERFLOW') return 431;
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 408;
  return 400;
}

/** Option of `createServer`: Node's own response to a missing Host header would have no body and none of our headers. */
export const WITHOUT_HOST_CHECK = { requireHostHeader: false } as const;

/**
 * Refuses requests without a Host header (RFC 9110, section 7.2) and with an expectation other than 100-continue (section
 * 10.1.1). Node would answer them with an empty 400 or 417.
 */
export function installProtocolChecks(app: FastifyInstance): void {
  const unmet = new WeakSet<IncomingMessage>();
  app.server.on('checkExpectation', (request, response) => {
    unmet.add(request);
    app.server.emit('request', request, response);
  });
  app.addHook('onRequest', async ({ raw }, reply) => {
    if (raw.httpVersion === '1.1' && raw.headers.host === undefined) {
      reply.header('connection', 'close');
      throw new TrawlError('HOST_MISSING', 'The request has no Host header, which HTTP/1.1 requires. Send one.');
    }
    if (unmet.has(raw)) {
      throw new TrawlError(
        'EXPECTATION_FAILED',
        `The header "expect: ${raw.headers.expect?.slice(0, 40)}" is not supported. Omit it, or send "expect: 100-continue".`,
      );
    }
  });
}
