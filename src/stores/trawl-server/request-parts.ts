import { throwIfCancelled } from '../../base/abort.ts';
import { TrawlError } from '../../base/errors.ts';
import { isOfQuery } from '../../search/calls/query-errors.ts';

/** Codes of refusals that fewer queries per request avoid. */
const TOO_MUCH: readonly string[] = ['K_TOO_LARGE', 'TOO_MANY_QUERIES', 'BODY_TOO_LARGE', 'RERANK_TOO_LARGE'];

/**
 * The results of all items in their order, from requests for at most `length` of them. A request that is refused for its size is sent again
 * in halves; with `failed`, also one that is refused for one of its queries.
 *
 * @param ask sends a request for a part of the items.
 * @param failed makes the result of an item that is the reason for a refusal. Without it, such a refusal rejects.
 * @throws TrawlError of a refused request.
 */
export async function inParts<Item, Result>(
  items: readonly Item[],
  length: number,
  ask: (part: readonly Item[]) => Promise<readonly Result[]>,
  failed?: (error: TrawlError) => Result,
): Promise<readonly Result[]> {
  const answer = async (part: readonly Item[]): Promise<readonly Result[]> => {
    try {
      return await ask(part);
    } catch (error) {
      if (!(error instanceof TrawlError)) throw error;
      const isOfOne = failed !== undefined && isOfQuery(error);
      if (part.length > 1 && (isOfOne || TOO_MUCH.includes(error.code))) {
        const half = part.length >> 1;
        return [...(await answer(part.slice(0, half))), ...(await answer(part.slice(half)))];
      }
      if (isOfOne) return [failed(error)];
      throw error;
    }
  };
  const parts = Array.from({ length: Math.ceil(items.length / length) }, (_, i) =>
    items.slice(i * length, (i + 1) * length),
  );
  return (await Promise.all(parts.map(answer))).flat();
}

/** Bounds the number of requests at the same time. Those that wait begin in their order. */
export class RequestSlots {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(slots: number) {
    this.#free = slots;
  }

  /** @throws TrawlError CANCELLED if the signal is aborted before the work begins. */
  async run<T>(work: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      throwIfCancelled(signal);
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }
}
