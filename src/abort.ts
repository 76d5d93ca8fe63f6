import { TrawlError } from './errors.ts';

export function cancelled(): TrawlError {
  return new TrawlError('CANCELLED', 'The operation was cancelled.');
}

/** @throws TrawlError CANCELLED when the signal was aborted. */
export function throwIfCancelled(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw cancelled();
}
