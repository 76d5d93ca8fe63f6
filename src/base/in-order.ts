import { throwIfCancelled } from './abort.ts';

interface InOrderOptions {
  /** Items that are at work at a time. */
  readonly atOnce: number;
  readonly signal: AbortSignal | undefined;
  /** Whether the oldest running work goes on after an abort, so that its result is not lost. */
  readonly finishesOldest?: boolean;
}

interface Running<R> {
  readonly result: Promise<R>;
  readonly stop: AbortController;
}

/**
 * Runs `work` on the items, at most `atOnce` at a time, and yields the results in the order of the items. The next item is read only
 * when a place is free, and its work begins before the caller gets the result that freed the place. An abort of `signal` aborts the
 * signals of the running work, and no other begins. An error, also one of the caller, does the same, and waits until all work has ended.
 *
 * @throws the error of an item, at its place; TrawlError CANCELLED if items are left after an abort.
 */
export async function* inOrder<T, R>(
  items: AsyncIterable<T> | Iterable<T>,
  work: (item: T, signal: AbortSignal) => Promise<R>,
  { atOnce, signal, finishesOldest = false }: InOrderOptions,
): AsyncGenerator<R, void> {
  const running: Running<R>[] = [];
  const stopFrom = (first: number): void => {
    for (const { stop } of running.slice(first)) stop.abort(signal?.reason);
  };
  const isAborted = (): boolean => signal?.aborted === true;
  const onAbort = (): void => stopFrom(finishesOldest ? 1 : 0);
  signal?.addEventListener('abort', onAbort);
  const iterator = Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
  try {
    let isOver = false;
    const fill = async (): Promise<void> => {
      while (!isOver && !isAborted() && running.length < atOnce) {
        const next = await iterator.next();
        if (next.done === true) {
          isOver = true;
          return;
        }
        if (isAborted()) return;
        const stop = new AbortController();
        const result = work(next.value, stop.signal);
        // Its error is thrown when its turn comes; until then it must not be unhandled.
        result.catch(() => undefined);
        running.push({ result, stop });
      }
    };
    for (;;) {
      await fill();
      const oldest = running[0];
      if (oldest === undefined) {
        if (!isOver) throwIfCancelled(signal);
        return;
      }
      const result = await oldest.result;
      running.shift();
      let failure: { readonly error: unknown } | undefined;
      try {
        await fill();
      } catch (error) {
        failure = { error };
      }
      yield result;
      if (failure !== undefined) throw failure.error;
    }
  } finally {
    signal?.removeEventListener('abort', onAbort);
    stopFrom(0);
    await iterator.return?.();
    await Promise.allSettled(running.map(({ result }) => result));
  }
}
