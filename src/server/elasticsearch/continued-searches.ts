import { type Static, Type } from 'typebox';
import { Check } from 'typebox/schema';
import type { RetrieverInfo } from '../../search/retriever-info.ts';
import { ElasticsearchError, illegalArgument } from './elasticsearch-error.ts';

/** A search of a scroll, and how far it is. */
const Scroll = Type.Object({
  body: Type.String(),
  parameters: Type.Record(Type.String(), Type.String()),
  /** The sort values of the last hit. */
  after: Type.Array(Type.Union([Type.String(), Type.Null()])),
  total: Type.Number(),
});
export type Scroll = Static<typeof Scroll>;

/**
 * What the id of a scroll or of a point in time says. The client keeps it, so the server holds nothing, and nothing expires; but the
 * index must not change meanwhile.
 */
const Continued = Type.Object({ index: Type.String(), generation: Type.String(), scroll: Type.Optional(Scroll) });
type Continued = Static<typeof Continued>;

export function continuedId(continued: Continued): string {
  return Buffer.from(JSON.stringify(continued)).toString('base64url');
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
