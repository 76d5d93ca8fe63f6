/**
 * Runs `work` on the items, at most `atOnce` at a time, and yields the results in the order of the items. The next item is read only
 * when a place is free, and its work begins before the caller gets the result that freed the place. An error ends it: the signal of the running work is aborted, and their ends are waited for.
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
    const fill = async (): Promise<void> => {
      while (!isOver && running.length < atOnce) {
        const next = await iterator.next();
        if (next.done === true) {
          isOver = true;
          return;
        }
        const result = work(next.value, either);
        // Its error is thrown when its turn comes; until then it must not be unhandled.
        result.catch(() => undefined);
        running.push(result);
      }
    };
    for (;;) {
      await fill();
      const first = running.shift();
      if (first === undefined) return;
      const result = await first;
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
    stop.abort();
    await iterator.return?.();
    await Promise.allSettled(running);
  }
}
