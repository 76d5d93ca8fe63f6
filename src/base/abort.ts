import { TrawlError } from './errors.ts';

export function cancelled(): TrawlError {
  return new TrawlError('CANCELLED', 'The operation was cancelled.');
}

/** @throws TrawlError CANCELLED when the signal was aborted. */
export function throwIfCancelled(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw cancelled();
}

/**
 * Waits for work that others may wait for too, and that goes on after an abort.
 *
 * @throws TrawlError CANCELLED as soon as the signal is aborted.
 */
export async function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  // An unused failure must not count as an unhandled rejection.
  work.catch(() => undefined);
  throwIfCancelled(signal);
  let stop: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(cancelled());
    signal.addEventListener('abort', stop, { once: true });
  });
  return Promise.race([work, aborted]).finally(() => signal.removeEventListener('abort', stop!));
}
