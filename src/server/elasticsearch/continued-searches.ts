import { type Static, Type } from 'typebox';
import { Check } from 'typebox/schema';
import type { RetrieverInfo } from '../../search/retriever-info.ts';
import { ElasticsearchError, illegalArgument } from './elasticsearch-error.ts';

/** The search of a scroll, and how far the client has read. */
const Scroll = Type.Object({
  body: Type.String(),
  parameters: Type.Record(Type.String(), Type.String()),
  /** The sort values of the last hit. */
  after: Type.Array(Type.Union([Type.String(), Type.Null()])),
  total: Type.Number(),
});
type Scroll = Static<typeof Scroll>;

/**
 * The content of the id of a scroll or of a point in time. The client keeps it, so the server holds nothing, and nothing expires; but the
 * index must not change meanwhile. A client may forge it: a page is searched and limited like any other search.
 */
const Continued = Type.Object({ index: Type.String(), generation: Type.String(), scroll: Type.Optional(Scroll) });
export type Continued = Static<typeof Continued>;

export function continuedId({ index, generation }: RetrieverInfo, scroll?: Scroll): string {
  return Buffer.from(JSON.stringify({ index, generation, scroll })).toString('base64url');
}

/** @throws ElasticsearchError for an id that this server did not make. */
export function parseContinuedId(id: string): Continued {
  let parsed: unknown;
  try {
    parsed = JSON.parse(Buffer.from(id, 'base64url').toString());
  } catch {
    // Refused below.
  }
  if (Check(Continued, parsed)) return parsed;
  throw illegalArgument(`Cannot parse the id [${id.slice(0, 100)}] of a scroll or a point in time`);
}

/** @throws ElasticsearchError for a search of several indexes, whose rows have no common order. */
export function onlyIndex(indexes: readonly RetrieverInfo[], what: string): RetrieverInfo {
  const [first, second] = indexes;
  if (first !== undefined && second === undefined) return first;
  throw illegalArgument(`${what} must name exactly one index on this server, but names ${indexes.length}`);
}

/** @throws ElasticsearchError search_context_missing_exception if the index is another one than at the first search. */
export function refuseChanged({ index, generation }: Continued, now: RetrieverInfo): void {
  if (now.generation === generation) return;
  const reason = `No search context found: the index [${index}] has changed since the first search. Begin again.`;
  throw new ElasticsearchError(404, { type: 'search_context_missing_exception', reason });
}
