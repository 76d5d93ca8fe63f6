import { throwIfCancelled } from './abort.ts';

/**
 * Calls `work` for every item in order, with at most `atOnce` calls running. The first error aborts the signal of the running calls, and
 * no further call begins. All calls have ended when the promise settles, so the caller may close what they use.
 *
 * @throws the first error of `work`; TrawlError CANCELLED if `signal` is aborted before an item's turn.
 */
export async function inParallel<Item>(
  items: readonly Item[],
  atOnce: number,
  work: (item: Item, signal: AbortSignal) => Promise<void>,
  signal?: AbortSignal,
): Promise<void> {
  const stop = new AbortController();
  const either = signal === undefined ? stop.signal : AbortSignal.any([signal, stop.signal]);
  const failures: unknown[] = [];
  // The workers share the iterator, so each item goes to one of them.
  const rest = items.values();
  const worker = async (): Promise<void> => {
    try {
      for (const item of rest) {
        throwIfCancelled(either);
        await work(item, either);
      }
    } catch (error) {
      failures.push(error);
      stop.abort(error);
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker));
  if (failures.length > 0) throw failures[0];
}
