import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { whenAnswerIsOver } from './client-signal.ts';

/** After so many turns of the event loop in which no connection came there is none that waits. */
const TURNS_WITHOUT = 3;
/** They may come without end. */
const MOST_ACCEPTING_MS = 3_000;
/** A client that is about to send its next request has done so after this time, and is told in the answer to leave. */
const QUIET_MS = 250;
const LOOK_EVERY_MS = 25;

interface Connection {
  readonly socket: Socket;
  /** Requests whose answers are not over. */
  requests: number;
  /** On the clock of `performance.now()`: since when it has had none. */
  quietSince: number;
  /** Bytes that belong to requests that are over; more is the beginning of another. */
  bytesOver: number;
}

/**
 * Ends the connections of a server that stops: each once it has been quiet for a moment. Node ends what is idle at once, a
 * request on its way and the unsent rest of a large answer with it, and counts connections without a first request as busy,
 * so that a stop would wait a minute for each one that a browser opened in advance.
 */
export class QuietConnections {
  readonly #server: Server;
  readonly #connections = new Map<string, Connection>();

  constructor(server: Server) {
    this.#server = server;
    server.on('connection', (socket) => this.#add(socket));
    // With TLS requests come on a socket of their own, from the same address.
    server.on('secureConnection', (socket: Socket) => this.#add(socket));
    server.on('request', (request, response) => {
      const connection = this.#connections.get(addressOf(request.socket));
      if (connection === undefined) return;
      connection.requests++;
      whenAnswerIsOver(request, response, () => {
        connection.requests--;
        connection.quietSince = performance.now();
        connection.bytesOver = connection.socket.bytesRead;
      });
    });
    // Node's own, called when the server closes; see above.
    server.closeIdleConnections = () => undefined;
  }

  /** For the moment before the server closes: from then on ends what is quiet. */
  close(): void {
    if (!this.#server.listening) return;
    // After the turn's reading, so that what a connection brought is seen.
    const timer = setInterval(() => setImmediate(() => this.#endQuiet()), LOOK_EVERY_MS);
    this.#server.once('close', () => clearInterval(timer));
  }

  #endQuiet(): void {
    const latest = performance.now() - QUIET_MS;
    for (const { socket, requests, quietSince, bytesOver } of this.#connections.values()) {
      if (requests === 0 && quietSince <= latest && socket.bytesRead <= bytesOver) socket.destroy();
    }
  }

  #add(socket: Socket): void {
    const address = addressOf(socket);
    const connection = { socket, requests: 0, quietSince: performance.now(), bytesOver: socket.bytesRead };
    this.#connections.set(address, connection);
    socket.once('close', () => {
      if (this.#connections.get(address) === connection) this.#connections.delete(address);
    });
  }
}

/**
 * To be waited for before a server closes: a connection that is not accepted by then is reset, and Node accepts one a turn.
 * Not later, since clients that a closing server sends away come back at once, to a door that is about to be shut.
 */
export async function acceptArrived(servers: readonly Server[]): Promise<void> {
  let without = 0;
  const came = (): void => {
    without = 0;
  };
  for (const server of servers) server.on('connection', came);
  const end = performance.now() + MOST_ACCEPTING_MS;
  for (; without < TURNS_WITHOUT && performance.now() < end; without++) await nextTurn();
  for (const server of servers) server.off('connection', came);
}

function addressOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
