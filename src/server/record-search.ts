import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { RetrieverInfo } from '../search/retriever-info.ts';
import type { ServerMetrics } from './metrics/server-metrics.ts';
import type { TrajectoryGuesser } from './recording/guess-trajectories.ts';
import type { IgnoredValue, OriginSources } from './recording/read-origins.ts';
import type { RecordedOpening } from './recording/recorded-opening.ts';
import type { QueryRecord, RecordedSearch } from './recording/recorded-search.ts';
import { openingOrigins, withOrigins } from './recording/with-origins.ts';

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
  { request, dialect, body }: SearchedRequest,
  { index, generation, within, model }: RetrieverInfo,
  { metrics, config: { record }, guesser }: Observers,
): void {
  metrics.searched(search.outcomes);
  if (record === null) return;
  const sources = sourcesOf(request, body);
  const known = { guesser, connection: request.raw.socket, template: model?.queryTemplate };
  const originated = withOrigins(search, sources, known);
  request.unrecorded = originated.ignored;
  const view = within === undefined ? {} : { view: within.join() };
  record.record({ requestId: request.id, dialect, index, generation, ...view }, originated.search);
}

/** Records what a request opened, with the origins that it names. */
export function recordOpenings(
  openings: readonly RecordedOpening[],
  { request, dialect, body }: SearchedRequest,
  { index, generation, within }: RetrieverInfo,
  record: QueryRecord | null,
): void {
  if (record?.recordOpenings === undefined || openings.length === 0) return;
  const { origins, ignored } = openingOrigins(sourcesOf(request, body), openings.length);
  request.unrecorded = ignored;
  const view = within === undefined ? {} : { view: within.join() };
  record.recordOpenings(
    { requestId: request.id, dialect, index, generation, ...view },
    openings.map((opening, i) => ({ ...opening, origin: origins[i]! })),
  );
}

function sourcesOf(request: FastifyRequest, body: unknown): OriginSources {
  const parameters = request.query as OriginSources['parameters'];
  return { body, headers: request.headers, parameters };
}
