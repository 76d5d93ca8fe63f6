import { setImmediate as nextIteration } from 'node:timers/promises';
import { asTrawlError, isNodeError, TrawlError, usageError } from '../../src/base/errors.ts';
import { acceptQueued } from '../../src/server/connections/disconnects.ts';
import { type ListenAddress, listen } from '../../src/server/connections/listen.ts';
import type { TrawlServer } from './make-server.ts';

/**
 * Listens on every address before an index is open: requests get a 503 with the progress of the start.
 *
 * @returns the URL of the main address.
 * @throws TrawlError PORT_IN_USE; USAGE if listening fails for another reason.
 */
export async function startListening({ listeners }: TrawlServer): Promise<string> {
  const urls: string[] = [];
  for (const { app, address } of listeners) {
    urls.push(await listen(app, address).catch((error) => Promise.reject(listenFailure(error, address))));
  }
  return urls[0]!;
}

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied (ports below 1024 need privileges)',
  EADDRNOTAVAIL: 'this machine does not have that address',
  ENOTFOUND: 'no such host name',
  EAI_AGAIN: 'the host name cannot be looked up',
};

function listenFailure(error: unknown, { host, port }: ListenAddress): unknown {
  if (error instanceof TrawlError || !isNodeError(error)) return error;
  const reason = REASONS[error.code!] ?? error.message;
  return usageError(`Cannot listen on ${host}:${port}: ${reason}. Choose another --host or --port.`, {
    details: { host, port, reason: error.code },
    cause: error,
  });
}

/** Reloads the files and every index. If one cannot be read or opened, the old one stays in use. */
export async function reloadServer(
  { holder, metrics, log, files }: TrawlServer,
  note: (text: string) => void,
): Promise<void> {
  if (holder.state !== 'ready') return;
  for (const { option, reload } of files) {
    try {
      await reload();
    } catch (error) {
      const { code, message } = asTrawlError(error);
      log?.logger.error({ option, code, reason: message }, 'reload failed');
      note(`${option}: reload failed, the old content stays in use: ${message} [${code}]`);
    }
  }
  for (const slot of holder.slots) {
    // A stopping server does not reload the remaining indexes.
    if (holder.state !== 'ready') return;
    try {
      const { generation, rows } = (await slot.load()).info;
      metrics.reloaded(slot.name, 'done');
      log?.logger.info({ index: slot.name, generation, rows }, 'index reloaded');
      note(`${slot.name}: reloaded (generation ${generation})`);
    } catch (error) {
      metrics.reloaded(slot.name, 'failed');
      const { code, message } = asTrawlError(error);
      log?.logger.error({ index: slot.name, code, reason: message }, 'reload failed');
      note(`${slot.name}: reload failed, the old index stays: ${message} [${code}]`);
    }
  }
}

/**
 * Handles SIGHUP, which requests a reload. The constructor installs the handler, because without one the signal would end the
 * process. A signal during the start causes a reload after the start; a signal during a reload causes another one after it.
 */
export class ReloadSignal {
  #requested = false;
  #running = false;
  #reload: (() => Promise<void>) | undefined;
  readonly #onSignal = (): void => {
    this.#requested = true;
    void this.#run();
  };

  constructor() {
    process.on('SIGHUP', this.#onSignal);
  }

  /** Calls `reload` for each signal from now on, one call at a time. */
  handleWith(reload: () => Promise<void>): void {
    this.#reload = reload;
    void this.#run();
  }

  close(): void {
    process.off('SIGHUP', this.#onSignal);
  }

  async #run(): Promise<void> {
    if (this.#running || this.#reload === undefined) return;
    this.#running = true;
    while (this.#requested) {
      this.#requested = false;
      await this.#reload();
    }
    this.#running = false;
  }
}

/** Time for the server to close after its clients were disconnected, in milliseconds. */
const AFTER_DISCONNECT_MS = 500;

/** Stops a server after its running requests. */
export async function stopServing({ listeners, holder }: TrawlServer): Promise<void> {
  const apps = listeners.map(({ app }) => app);
  await acceptQueued(apps.map(({ server }) => server));
  const closed = Promise.all(apps.map((app) => app.close()));
  // Refuse requests only when no address listens: a refused client reconnects at once, and must reach another server.
  while (apps.some(({ server }) => server.listening)) await nextIteration();
  holder.stop();
  await closed;
}

/** Disconnects all clients and closes every part of the server, even if the start was not complete. */
export async function closeServer(server: TrawlServer): Promise<void> {
  const { listeners, holder, writable, recorder, tracer, reranker } = server;
  holder.stop();
  disconnectClients(server);
  await Promise.all(listeners.map(({ app }) => app.close()));
  for (const part of [writable, holder, reranker, recorder, tracer]) await part?.close();
}

export function disconnectClients({ listeners }: TrawlServer): void {
  for (const { app } of listeners) app.server.closeAllConnections();
}

/**
 * Limits the time from the signal to the end of the process, even if the start, a request or the closing hangs: calls `disconnect`
 * `graceMs` after the signal, and `end` a moment later.
 *
 * @returns a function that removes the limit, to be called when the server has closed.
 */
export function endWithin(
  graceMs: number,
  signal: AbortSignal,
  { disconnect, end }: { disconnect: () => void; end: () => void },
): () => void {
  let timer: NodeJS.Timeout | undefined;
  // The timers keep the process alive: Node would otherwise end it with exit code 13 while a promise hangs.
  const start = (): void => {
    timer = setTimeout(() => {
      disconnect();
      timer = setTimeout(end, AFTER_DISCONNECT_MS);
    }, graceMs);
  };
  if (signal.aborted) start();
  else signal.addEventListener('abort', start, { once: true });
  return () => {
    signal.removeEventListener('abort', start);
    clearTimeout(timer);
  };
}
