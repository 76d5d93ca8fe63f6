import { isNodeError, TrawlError, usageError } from '../../src/base/errors.ts';
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
