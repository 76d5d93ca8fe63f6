import { throwIfCancelled } from './abort.ts';

interface InOrderOptions {
  /** Limit of the items whose work runs. */
  readonly atOnce: number;
  readonly signal: AbortSignal | undefined;
  /** Whether an abort spares the oldest running work, so that its result is not lost. */
  readonly finishesOldest?: boolean;
}

interface Running<R> {
  readonly result: Promise<R>;
  readonly stop: AbortController;
}

/**
 * Runs `work` on the items, at most `atOnce` at a time, and yields the results in the order of the items. It reads the next item only
 * when a place is free, and begins its work before the caller gets the result that freed the place. When `signal` aborts, the signals of
 * the running work abort and no further work begins. When an item or the caller fails, the same happens, and the generator ends after all
 * work has ended.
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
