import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';

/** In these a connection that has come is accepted, and what has come on it read, however busy the server was. */
const TURNS_TO_READ = 3;

/**
 * Connections that have not sent a request yet. Node counts them as busy, so a graceful stop would wait a minute for each
 * one that a browser opened in advance.
 */
export class UnusedConnections {
  readonly #sockets = new Map<string, Socket>();

  constructor(server: Server) {
    server.on('connection', (socket) => this.#add(socket));
    // With TLS requests come on a socket of their own, from the same address.
    server.on('secureConnection', (socket: Socket) => this.#add(socket));
    server.on('request', ({ socket }) => this.#sockets.delete(addressOf(socket)));
  }

  /** Ends those on which nothing has arrived; one whose request is just coming in may finish it. */
  async close(): Promise<void> {
    for (let turn = 0; turn < TURNS_TO_READ; turn++) await nextTurn();
    for (const socket of this.#sockets.values()) if (socket.bytesRead === 0 || 'encrypted' in socket) socket.destroy();
  }

  #add(socket: Socket): void {
    const address = addressOf(socket);
    this.#sockets.set(address, socket);
    socket.once('close', () => {
      if (this.#sockets.get(address) === socket) this.#sockets.delete(address);
    });
  }
}

function addressOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
