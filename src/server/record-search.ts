import type { FastifyInstance, FastifyRequest } from 'fastify';
import { DEFAULT_QUERY_TEMPLATE, type QueryTemplate } from '../encoder/identity/model-identity.ts';
import type { EncoderInput } from '../encoder/text-encoder.ts';
import type { RetrieverInfo } from '../search/retriever-info.ts';
import type { ServerMetrics } from './metrics/server-metrics.ts';
import { composedParts } from './recording/composed-query.ts';
import type { TrajectoryGuesser } from './recording/guess-trajectories.ts';
import type { QueryOrigin } from './recording/query-origin.ts';
import { type IgnoredValue, type OriginSources, readOrigins } from './recording/read-origins.ts';
import type { QueryRecord, RecordedOpening, RecordedRequest, RecordedSearch } from './recording/recorded-search.ts';

/** The header of a reply that names the values of its request that were not recorded. */
const IGNORED_HEADER = 'x-trawl-record-ignored';
/** Values named in it. */
const MAX_NAMED = 5;

declare module 'fastify' {
  interface FastifyRequest {
    /** Values of the request that were not recorded; null until a search is recorded. */
    unrecorded: readonly IgnoredValue[] | null;
  }
}

interface Observers {
  readonly metrics: Pick<ServerMetrics, 'searched' | 'unrecorded'>;
  readonly config: { readonly record: QueryRecord | null };
  readonly guesser: TrajectoryGuesser;
}

interface SearchedRequest {
  readonly request: FastifyRequest;
  readonly dialect: string;
  /** The field `record` of the body. */
  readonly body?: unknown;
}

/** Names in each reply the values that were not recorded, and counts them. */
export function installRecording(app: FastifyInstance, metrics: Pick<ServerMetrics, 'unrecorded'>): void {
  app.decorateRequest('unrecorded', null);
  app.addHook('onSend', async ({ unrecorded }, reply) => {
    if (unrecorded === null || unrecorded.length === 0) return;
    for (const { fault, count } of unrecorded) metrics.unrecorded(fault, count);
    // Names of the body may have characters that a header cannot have.
    const named = unrecorded
      .slice(0, MAX_NAMED)
      .map(({ name, fault }) => `${name.replace(/[^\w.-]/g, '?')} (${fault})`);
    const more = unrecorded.length - named.length;
    reply.header(IGNORED_HEADER, [...named, ...(more > 0 ? [`${more} more`] : [])].join(', '));
  });
}

/** Counts a request's search once, even if it took several calls of the retriever, and records it with the origins of its queries. */
export function recordSearch(
  search: RecordedSearch,
  searched: SearchedRequest,
  info: RetrieverInfo,
  { metrics, config: { record }, guesser }: Observers,
): void {
  metrics.searched(search.outcomes);
  if (record === null) return;
  const { request } = searched;
  const known = { guesser, connection: request.raw.socket, template: info.model?.queryTemplate };
  const originated = withOrigins(search, originSources(searched), known);
  request.unrecorded = originated.ignored;
  record.record(recordedRequest(searched, info), originated.search);
}

/** Records what a request opened, with the origins that it names. */
export function recordOpenings(
  openings: readonly RecordedOpening[],
  searched: SearchedRequest,
  info: RetrieverInfo,
  record: QueryRecord | null,
): void {
  if (record?.recordOpenings === undefined || openings.length === 0) return;
  const { origins, ignored } = readOrigins(originSources(searched), openings.length);
  searched.request.unrecorded = ignored;
  // Without a trajectory, a single opening gets the id of its trace; none is guessed.
  const named = origins.length === 1 ? origins.map(namedByTrace) : origins;
  record.recordOpenings(
    recordedRequest(searched, info),
    openings.map((opening, i) => ({ ...opening, origin: named[i]! })),
  );
}

function recordedRequest(
  { request, dialect }: SearchedRequest,
  { index, generation, within }: RetrieverInfo,
): RecordedRequest {
  return { requestId: request.id, dialect, index, generation, view: within?.join() };
}

function originSources({ request, body }: SearchedRequest): OriginSources {
  return { body, headers: request.headers, parameters: request.query as OriginSources['parameters'] };
}

/**
 * The search with the origins of its queries. What the dialect says counts before what the request says elsewhere. A query without a
 * trajectory gets the id of its trace, or else a guess.
 *
 * @param known.template the template of the index.
 * @internal
 */
export function withOrigins(
  search: RecordedSearch,
  sources: OriginSources,
  known: { readonly guesser: TrajectoryGuesser; readonly connection: object; readonly template?: QueryTemplate },
): { readonly search: RecordedSearch; readonly ignored: readonly IgnoredValue[] } {
  const { queries, items } = search;
  const { origins: given, ignored } = readOrigins(sources, items?.count ?? queries.length);
  const stated = queries.map((_, i): QueryOrigin => ({ ...given[items?.positions[i] ?? i], ...search.origins?.[i] }));
  // A batch may have one trace for all its queries.
  const named = stated.length === 1 ? stated.map(namedByTrace) : stated;
  const guesses = known.guesser.guess(
    known.connection,
    named.map(({ trajectory, question }, i) =>
      trajectory === undefined ? (question ?? questionOf(queries[i]!)) : undefined,
    ),
  );
  // What the client says counts before the guess.
  const origins = named.map((origin, i) => ({ ...guesses[i], ...origin }));
  // A question that was not searched for must not look as if it were.
  const template = origins.some(({ question }) => question !== undefined)
    ? (search.template ?? known.template ?? DEFAULT_QUERY_TEMPLATE)
    : search.template;
  return { search: { ...search, template, origins }, ignored };
}

function namedByTrace(origin: QueryOrigin): QueryOrigin {
  if (origin.trajectory !== undefined || origin.traceId === undefined) return origin;
  return { ...origin, trajectory: origin.traceId, trajectoryFrom: 'traceparent' };
}

function questionOf(input: EncoderInput): string | undefined {
  if (typeof input !== 'string') return input.question === '' ? undefined : input.question;
  return composedParts(input)?.question;
}
