/**
 * Runs `work` on the items, at most `atOnce` at a time, and yields the results in the order of the items. The next item is read only
 * when a place is free. An error ends it: the signal of the running work is aborted, and their ends are waited for.
 */
export async function* inOrder<T, R>(
  items: AsyncIterable<T>,
  atOnce: number,
  work: (item: T, signal: AbortSignal) => Promise<R>,
  signal: AbortSignal,
): AsyncGenerator<R, void> {
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  const running: Promise<R>[] = [];
  const iterator = items[Symbol.asyncIterator]();
  try {
    let isOver = false;
    for (;;) {
      while (!isOver && running.length < atOnce) {
        const next = await iterator.next();
        if (next.done === true) {
          isOver = true;
          break;
        }
        const result = work(next.value, either);
        // Its error is thrown when its turn comes; until then it must not be unhandled.
        result.catch(() => undefined);
        running.push(result);
      }
      const first = running.shift();
      if (first === undefined) return;
      yield await first;
    }
  } finally {
    stop.abort();
    await iterator.return?.();
    await Promise.allSettled(running);
  }
}
