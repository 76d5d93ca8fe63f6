import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { setImmediate as nextIteration } from 'node:timers/promises';
import { onResponseEnd } from './client-signal.ts';

/** If no connection arrives in this many iterations of the event loop, the kernel's queue is considered empty. */
const ITERATIONS_WITHOUT_CONNECTION = 3;
/** Longest time to accept connections, if they never stop arriving. */
const MAX_ACCEPTING_MS = 3_000;
/**
 * Time since its last request in which a client may send another one, whose response closes the connection with `connection: close`. On a
 * busy machine a client that sends one request after another needs more than a second for it, and a request that meets a closed
 * connection is lost.
 */
const QUIET_MS = 2_000;
/** The same since the stop, for clients that were quiet before. */
const TRANSIT_MS = 250;
const CHECK_EVERY_MS = 25;

interface Connection {
  readonly socket: Socket;
  /** Unanswered requests. */
  requests: number;
  /** When the last request ended, by `performance.now()`. */
  idleSince: number;
  /** Bytes read when the last request ended; more bytes are the beginning of another request. */
  bytesOfRequests: number;
}

/**
 * Closes the connections of a stopping server, each after some time without requests. Node's own `closeIdleConnections` would
 * close them immediately, losing requests in transit and the unsent rest of large responses, and would wait up to a minute
 * for each connection that a browser opened in advance and never used.
 */
export class IdleConnections {
  readonly #server: Server;
  readonly #connections = new Map<string, Connection>();

  constructor(server: Server) {
    this.#server = server;
    server.on('connection', (socket) => this.#add(socket));
    // With TLS, requests arrive on a second socket object with the same address.
    server.on('secureConnection', (socket: Socket) => this.#add(socket));
    server.on('request', (request, response) => {
      const connection = this.#connections.get(addressOf(request.socket));
      if (connection === undefined) return;
      connection.requests++;
      onResponseEnd(request, response, () => {
        connection.requests--;
        connection.idleSince = performance.now();
        connection.bytesOfRequests = connection.socket.bytesRead;
      });
    });
    // Node would call its own when the server closes; see above.
    server.closeIdleConnections = () => undefined;
  }

  /** Call it before the server closes: it closes idle connections until the server is closed. */
  close(): void {
    if (!this.#server.listening) return;
    // setImmediate runs after the event loop has read the sockets, so that requests that have just arrived are counted.
    const quiet = performance.now() + TRANSIT_MS;
    const check = (): void => {
      if (performance.now() > quiet) this.#closeIdle();
    };
    const timer = setInterval(() => setImmediate(check), CHECK_EVERY_MS);
    this.#server.once('close', () => clearInterval(timer));
  }

  #closeIdle(): void {
    const latest = performance.now() - QUIET_MS;
    for (const { socket, requests, idleSince, bytesOfRequests } of this.#connections.values()) {
      if (requests === 0 && idleSince <= latest && socket.bytesRead <= bytesOfRequests) socket.destroy();
    }
  }

  #add(socket: Socket): void {
    const address = addressOf(socket);
    const connection = { socket, requests: 0, idleSince: performance.now(), bytesOfRequests: socket.bytesRead };
    this.#connections.set(address, connection);
    socket.once('close', () => {
      if (this.#connections.get(address) === connection) this.#connections.delete(address);
    });
  }
}

/**
 * Accepts the connections in the kernel's queue. Await it before a server closes, because connections that are still queued then
 * are reset, and Node accepts only one per iteration of the event loop. Do not await it after the server has begun to disconnect
 * clients: they reconnect immediately.
 */
export async function acceptQueued(servers: readonly Server[]): Promise<void> {
  let iterations = 0;
  const onConnection = (): void => {
    iterations = 0;
  };
  for (const server of servers) server.on('connection', onConnection);
  const end = performance.now() + MAX_ACCEPTING_MS;
  for (; iterations < ITERATIONS_WITHOUT_CONNECTION && performance.now() < end; iterations++) await nextIteration();
  for (const server of servers) server.off('connection', onConnection);
}

function addressOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

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
