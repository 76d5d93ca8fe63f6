import { DEFAULT_QUERY_TEMPLATE, type QueryTemplate } from '../../encoder/identity/model-identity.ts';
import type { EncoderInput } from '../../encoder/text-encoder.ts';
import { composedParts } from './composed-query.ts';
import type { TrajectoryGuesser } from './guess-trajectories.ts';
import type { QueryOrigin } from './query-origin.ts';
import { type IgnoredValue, type OriginSources, readOrigins } from './read-origins.ts';
import type { RecordedSearch } from './recorded-search.ts';

/**
 * The search with the origins of its queries: what its dialect says, before what the request says elsewhere. A query without a trajectory
 * gets the id of its trace, or else a guess.
 *
 * @param template that of the index.
 */
export function withOrigins(
  search: RecordedSearch,
  sources: OriginSources,
  {
    guesser,
    connection,
    template,
  }: {
    readonly guesser: TrajectoryGuesser;
    readonly connection: object;
    readonly template: QueryTemplate | undefined;
  },
): { readonly search: RecordedSearch; readonly ignored: readonly IgnoredValue[] } {
  const { queries, items } = search;
  const { origins: given, ignored } = readOrigins(sources, items?.count ?? queries.length);
  const known = queries.map((_, i): QueryOrigin => ({ ...given[items?.positions[i] ?? i], ...search.origins?.[i] }));
  // One trace may be that of a whole batch.
  const named = known.length === 1 ? known.map(namedByTrace) : known;
  const guesses = guesser.guess(
    connection,
    named.map(({ trajectory, question }, i) =>
      trajectory === undefined ? (question ?? questionOf(queries[i]!)) : undefined,
    ),
  );
  // What the client says counts before the guess.
  const origins = named.map((origin, i) => ({ ...guesses[i], ...origin }));
  // A question that was not searched for must not look as if it were.
  const searchedFor = origins.some(({ question }) => question !== undefined)
    ? { template: search.template ?? template ?? DEFAULT_QUERY_TEMPLATE }
    : {};
  return { search: { ...search, ...searchedFor, origins }, ignored };
}

/** Where each opening of a request comes from. Without a trajectory, a single one gets the id of its trace; none is guessed. */
export function openingOrigins(
  sources: OriginSources,
  openings: number,
): { readonly origins: readonly QueryOrigin[]; readonly ignored: readonly IgnoredValue[] } {
  const { origins, ignored } = readOrigins(sources, openings);
  return { origins: openings === 1 ? origins.map(namedByTrace) : origins, ignored };
}

function namedByTrace(origin: QueryOrigin): QueryOrigin {
  if (origin.trajectory !== undefined || origin.traceId === undefined) return origin;
  return { ...origin, trajectory: origin.traceId, trajectoryFrom: 'traceparent' };
}

function questionOf(input: EncoderInput): string | undefined {
  if (typeof input !== 'string') return input.question === '' ? undefined : input.question;
  return composedParts(input)?.question;
}
