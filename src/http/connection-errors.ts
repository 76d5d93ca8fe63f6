import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyBaseLogger } from 'fastify';
import { whenAnswerIsOver } from './client-signal.ts';

/** Between the answer and the end of a connection on which nothing can be understood. */
const CLOSE_WITHIN_MS = 2_000;

/**
 * Answers what is not a request at all: garbage, headers without end, a sender that stalls. These never reach a route and
 * have no error code of ours; Node names them, and HTTP has a status for each.
 *
 * Requests that came whole before it on the same connection get their answers first: bytes put between would become part
 * of one of them.
 */
export class ConnectionErrors {
  readonly #log: FastifyBaseLogger;
  /** The requests of a connection whose answers are not over, in their order. */
  readonly #pending = new WeakMap<Socket, Map<ServerResponse, IncomingMessage>>();
  /** Connections on which nothing more can be understood. */
  readonly #broken = new WeakMap<Socket, NodeJS.ErrnoException>();

  readonly #onError: () => void;

  /** `onError`: told of each connection that could not be understood. */
  constructor(log: FastifyBaseLogger, onError: () => void) {
    this.#log = log;
    this.#onError = onError;
  }

  watch(server: Server): void {
    server.on('request', (request, response) => {
      const { socket } = request;
      const pending = this.#pending.get(socket) ?? new Map<ServerResponse, IncomingMessage>();
      this.#pending.set(socket, pending.set(response, request));
      whenAnswerIsOver(request, response, () => {
        pending.delete(response);
        const error = this.#broken.get(socket);
        if (error !== undefined) this.#answerInTurn(error, socket);
      });
    });
  }

  handle(error: NodeJS.ErrnoException, socket: Socket): void {
    if (error.code === 'ECONNRESET' || socket.destroyed) return;
    // Node tells each further piece of a broken connection again.
    if (this.#broken.has(socket)) return;
    this.#broken.set(socket, error);
    this.#log.debug({ reason: error.code, status: statusOf(error.code) }, 'connection error');
    this.#onError();
    this.#answerInTurn(error, socket);
  }

  #answerInTurn(error: NodeJS.ErrnoException, socket: Socket): void {
    for (const [response, request] of this.#pending.get(socket) ?? []) {
      if (request.complete) return;
      // Its own body is what is broken, so it will never have its answer from a route; one begun can only be cut.
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
      // The client has closed its side in the middle of a request.
      socket.destroySoon();
      return;
    }
    // A client that never closes its side would keep the connection for ever.
    socket.setTimeout(CLOSE_WITHIN_MS, () => socket.destroy());
  }
}

function answerTo({ code }: NodeJS.ErrnoException): string {
  const status = statusOf(code);
  const message = `The bytes received are not a usable HTTP request (${code ?? 'unknown'}).`;
  const body = JSON.stringify({ detail: STATUS_CODES[status], error: { code: 'INVALID_REQUEST', message } });
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: application/json; charset=utf-8\r\n`;
  return `${head}content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`;
}

function statusOf(code: string | undefined): number {
  if (code === 'HPE_HEADER_OVERFLOW') return 431;
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 408;
  return 400;
}
