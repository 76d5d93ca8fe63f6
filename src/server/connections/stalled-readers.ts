import type { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';

/** Number of checks within the stall limit. */
const CHECKS = 4;

/**
 * Disconnects a client that reads no byte of its response for `stallMs` (or up to a quarter longer). A slow reader is not
 * disconnected. Waiting for a response does not count: the check starts when the response is written to the socket. The socket's own
 * timeout cannot be used, because every received byte restarts it: a client that sends a byte now and then would keep its responses
 * in memory forever.
 */
export function disconnectIfStalled(
  { socket }: IncomingMessage,
  response: ServerResponse,
  stallMs: number,
  onDisconnect: () => void,
): void {
  // Fastify's inject() has no network socket.
  if (!(socket instanceof Socket) || socket.destroyed || response.closed) return;
  let timer: NodeJS.Timeout | undefined;
  const start = (): void => {
    let before = unsentOf(socket);
    let since = performance.now();
    timer = setInterval(() => {
      const now = unsentOf(socket);
      if (now === before && socket.writableLength > 0) {
        if (performance.now() - since < stallMs) return;
        onDisconnect();
        socket.destroy();
      }
      before = now;
      since = performance.now();
    }, stallMs / CHECKS).unref();
  };
  if (response.socket === null) response.once('socket', start);
  else start();
  response.once('close', () => {
    response.off('socket', start);
    clearInterval(timer);
  });
}

/** A text that changes whenever the client reads a byte. Only the socket's handle knows how much of a chunk was sent. */
function unsentOf(socket: Socket): string {
  const { _handle: handle } = socket as Socket & { readonly _handle?: { readonly writeQueueSize?: number } | null };
  return `${socket.bytesWritten} ${socket.writableLength} ${handle?.writeQueueSize}`;
}
