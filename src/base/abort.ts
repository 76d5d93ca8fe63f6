import { TrawlError } from './errors.ts';

export function cancelled(): TrawlError {
  return new TrawlError('CANCELLED', 'The operation was cancelled.');
}

/** @throws TrawlError CANCELLED when the signal was aborted. */
export function throwIfCancelled(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw cancelled();
}

/**
 * Waits for work that goes on after an abort.
 *
 * @param failure the error after an abort.
 * @throws TrawlError CANCELLED, or `failure`, as soon as the signal is aborted.
 */
export async function untilAborted<T>(
  work: Promise<T>,
  signal: AbortSignal | undefined,
  failure: () => unknown = cancelled,
): Promise<T> {
  if (signal === undefined) return work;
  // An unused failure must not count as an unhandled rejection.
  work.catch(() => undefined);
  if (signal.aborted) throw failure();
  let stop: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(failure());
    signal.addEventListener('abort', stop, { once: true });
  });
  return Promise.race([work, aborted]).finally(() => signal.removeEventListener('abort', stop!));
}
