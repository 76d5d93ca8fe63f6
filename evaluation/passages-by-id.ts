import type { CallOptions, RowScope } from '../src/search/calls/retrieve-call.ts';
import type { FoundPassage, SearchSource } from '../src/search/retriever.ts';

const KEYS_PER_CALL = 1000;

/**
 * Looks up ids, many at a time. Gives the passages of each id, at most `limit`, in the order of the ids; none for an unknown id.
 *
 * @throws TrawlError NOT_SUPPORTED if the index has no look-up by id.
 */
export async function* passagesById(
  retriever: SearchSource,
  ids: Iterable<string>,
  call: RowScope & CallOptions & { readonly limit: number },
): AsyncGenerator<readonly [id: string, passages: readonly FoundPassage[]], void> {
  const all = [...ids];
  for (let start = 0; start < all.length; start += KEYS_PER_CALL) {
    const keys = all.slice(start, start + KEYS_PER_CALL);
    const { found } = await retriever.find({ ...call, by: 'id', keys });
    for (const [i, id] of keys.entries()) yield [id, found[i]!];
  }
}
