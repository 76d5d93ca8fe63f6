import type { RowScope } from '../../src/search/calls/retrieve-call.ts';
import type { Retriever } from '../../src/search/retriever.ts';

/** Ids of one look-up. */
const KEYS_PER_CALL = 1000;
/** Rows of one id that are looked at. */
const ROWS_PER_ID = 8;

/**
 * The rows of each id, ascending; an id that the index does not have in the scope has no entry.
 *
 * @throws TrawlError NOT_SUPPORTED if the index has no look-up by id.
 */
export async function rowsOfIds(
  retriever: Retriever,
  ids: Iterable<string>,
  { scope, signal }: { readonly scope: RowScope; readonly signal: AbortSignal | undefined },
): Promise<ReadonlyMap<string, readonly number[]>> {
  const rows = new Map<string, readonly number[]>();
  const keys = [...new Set(ids)];
  for (let start = 0; start < keys.length; start += KEYS_PER_CALL) {
    const part = keys.slice(start, start + KEYS_PER_CALL);
    const call = { by: 'id', keys: part, limit: ROWS_PER_ID, ...scope } as const;
    const { found } = await retriever.find(signal === undefined ? call : { ...call, signal });
    for (const [i, passages] of found.entries()) {
      if (passages.length > 0)
        rows.set(
          part[i]!,
          passages.map(({ row }) => row),
        );
    }
  }
  return rows;
}
