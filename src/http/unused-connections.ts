import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Connections that have not sent a request yet. Node counts them as busy, so a graceful stop would wait a minute for each
 * one that a browser opened in advance.
 */
export class UnusedConnections {
  readonly #sockets = new Set<Socket>();

  constructor(server: Server) {
    server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
    server.on('request', (request) => this.#sockets.delete(request.socket));
  }

  /** Ends those on which nothing has arrived; one whose request is just coming in may finish it. */
  close(): void {
    for (const socket of this.#sockets) if (socket.bytesRead === 0) socket.destroy();
  }
}
