import { setImmediate as nextIteration } from 'node:timers/promises';
import { acceptQueued } from '../../src/server/connections/idle-connections.ts';
import type { TrawlServer } from './make-server.ts';

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
export async function closeServer({
  listeners,
  holder,
  writable,
  recorder,
  tracer,
  reranker,
}: TrawlServer): Promise<void> {
  holder.stop();
  disconnectClients({ listeners });
  await Promise.all(listeners.map(({ app }) => app.close()));
  await writable?.close();
  await holder.close();
  await reranker?.close();
  await recorder?.close();
  await tracer?.close();
}

export function disconnectClients({ listeners }: Pick<TrawlServer, 'listeners'>): void {
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
