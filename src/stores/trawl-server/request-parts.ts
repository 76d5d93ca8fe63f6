import type { TrawlError } from '../../base/errors.ts';
import { isOfQuery } from '../../search/calls/query-errors.ts';
import type { NativeApi, NativeReply } from './native-api.ts';
import { refusal } from './refusal.ts';

/** Refusals that fewer queries per request avoid. */
const TOO_MUCH: ReadonlySet<string> = new Set([
  'K_TOO_LARGE',
  'TOO_MANY_QUERIES',
  'BODY_TOO_LARGE',
  'RERANK_TOO_LARGE',
]);

/** The answers of a request, or its refusal. */
export type Answered<Result> =
  | { readonly ok: true; readonly each: readonly Result[] }
  | Extract<NativeReply, { ok: false }>;

/** How the items of a call are divided into requests. */
interface PartRequests<Item, Result> {
  /** Most items of a request. */
  readonly length: number;
  readonly api: NativeApi;
  /** Sends a request for a part of the items. */
  readonly ask: (part: readonly Item[]) => Promise<Answered<Result>>;
  /** The result of an item whose request is refused because of it. Without it, such a refusal rejects. */
  readonly failed?: (error: TrawlError) => Result;
}

/**
 * The answers to all items in their order, from requests of a few of them. A request that is refused for its size is sent again in
 * halves; with `failed`, also one that is refused for one of its queries.
 *
 * @throws TrawlError of a refused request.
 */
export async function inParts<Item, Result>(
  items: readonly Item[],
  { length, api, ask, failed }: PartRequests<Item, Result>,
): Promise<readonly Result[]> {
  const answer = async (part: readonly Item[]): Promise<readonly Result[]> => {
    const reply = await ask(part);
    if (reply.ok) return reply.each;
    const error = refusal(api, reply);
    const isOfOne = failed !== undefined && isOfQuery(error);
    if (part.length > 1 && (isOfOne || TOO_MUCH.has(error.code))) {
      const half = part.length >> 1;
      return [...(await answer(part.slice(0, half))), ...(await answer(part.slice(half)))];
    }
    if (isOfOne) return [failed(error)];
    throw error;
  };
  return (await Promise.all(parts(items, length).map(answer))).flat();
}

function parts<T>(list: readonly T[], length: number): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(list.length / length) }, (_, i) => list.slice(i * length, (i + 1) * length));
}
