import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyBaseLogger } from 'fastify';

/**
 * Answers what is not a request at all: garbage, headers without end, a sender that stalls. These never reach a route and
 * have no error code of ours; Node names them, and HTTP has a status for each.
 */
export function answerConnectionError(error: NodeJS.ErrnoException, socket: Socket, log: FastifyBaseLogger): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return;
  const status = statusOf(error.code);
  log.debug({ reason: error.code, status }, 'connection error');
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const message = `The bytes received are not a usable HTTP request (${error.code ?? 'unknown'}).`;
  const body = JSON.stringify({ detail: STATUS_CODES[status], error: { code: 'INVALID_REQUEST', message } });
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: application/json; charset=utf-8\r\n`;
  socket.end(`${head}content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`);
}

function statusOf(code: string | undefined): number {
  if (code === 'HPE_HEADER_OVERFLOW') return 431;
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 408;
  return 400;
}
