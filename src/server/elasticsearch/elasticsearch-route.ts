import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from 'fastify';
import { TrawlError } from '../../base/errors.ts';
import { NO_TIMINGS, type StageTimings } from '../../search/timings.ts';
import type { Access } from '../access/access.ts';
import { clientSignal, deadlineErrorOr, deadlineOf } from '../connections/client-signal.ts';
import { bodyTooLarge } from '../errors/error-reply.ts';
import { roundedTimings } from '../metrics/server-timing.ts';
import { countRequest, prepareReply, refuseIfNotReady, type SearchRoutes } from '../routes/dialects.ts';
import { ELASTICSEARCH_ERRORS, ElasticsearchError } from './elasticsearch-error.ts';

/** Parameters of a URL; an empty text for a parameter without a value. */
export type UrlParameters = Readonly<Record<string, string | undefined>>;

/** A request on a route of Elasticsearch, with its body as text. */
export interface ElasticsearchRequest {
  readonly request: FastifyRequest;
  readonly body: string;
  /** Parts of the path, such as `index` and `id`. */
  readonly path: Readonly<Record<string, string | undefined>>;
  readonly parameters: UrlParameters;
  readonly signal: AbortSignal;
  readonly routes: SearchRoutes;
}

export interface ElasticsearchReply {
  /** Default: 200. */
  readonly status?: number;
  /** The text of the reply in pieces. */
  readonly pieces: Iterable<string>;
  /** Default: JSON. */
  readonly type?: string;
  /** Searches of the request and their timings, for the log and the metrics. */
  readonly searches?: { readonly count: number; readonly timings: StageTimings };
}

export interface ElasticsearchRoute {
  readonly method: HTTPMethods | HTTPMethods[];
  readonly url: string;
  /** Default: read. */
  readonly access?: Access;
  handle(request: ElasticsearchRequest): Promise<ElasticsearchReply> | ElasticsearchReply;
}

export function jsonReply(value: unknown): ElasticsearchReply {
  return { pieces: [JSON.stringify(value)] };
}

/** Adds a route of Elasticsearch, with the limits and metrics of the other search routes. */
export function addElasticsearchRoute(app: FastifyInstance, routes: SearchRoutes, route: ElasticsearchRoute): void {
  const { holder, config, metrics, replies, bodies } = routes;
  app.route({
    method: route.method,
    url: route.url,
    // Routes with GET have a HEAD of their own where they need one.
    exposeHeadRoute: false,
    config: { onlyDialect: ELASTICSEARCH_ERRORS, access: route.access ?? 'read' },
    onRequest: async (request, reply) => {
      countRequest(request, reply, metrics);
      refuseIfNotReady(holder);
      replies.refuseIfFull();
      bodies.refuseIfFull();
      checkMediaTypes(request);
      if (Number(request.headers['content-length'] ?? 0) > config.maxBodyBytes) throw bodyTooLarge(config);
    },
    preParsing: bodies.count,
    handler: (request, reply) => answer(request, reply, route, routes),
  });
}

async function answer(
  request: FastifyRequest,
  reply: FastifyReply,
  route: ElasticsearchRoute,
  routes: SearchRoutes,
): Promise<FastifyReply> {
  const { config, metrics, replies, bodies } = routes;
  const signal = clientSignal(request.raw, reply.raw, deadlineOf(request, config));
  try {
    const body = bodyText(request.body);
    request.body = undefined;
    bodies.release(request.raw);
    const path = request.params as ElasticsearchRequest['path'];
    const asked = { request, body, path, parameters: parametersOf(request), signal, routes };
    const { status = 200, pieces, type = jsonTypeFor(request), searches } = await route.handle(asked);
    const stages = { parse: 0, ...(searches?.timings ?? NO_TIMINGS) };
    const { timings, send } = await prepareReply(pieces, { request, reply, signal }, stages, replies);
    if (searches !== undefined) {
      const answered = { dialect: ELASTICSEARCH_ERRORS.name, queries: searches.count };
      metrics.answered({ ...answered, truncated: 0, failed: 0, timings });
      request.answered = { ...answered, index: null, timings };
      request.log.info({ ...answered, ...roundedTimings(timings) }, 'retrieved');
    }
    reply.code(status);
    return send(type);
  } catch (error) {
    throw deadlineErrorOr(error, signal);
  }
}

function bodyText(body: unknown): string {
  if (!(body instanceof Uint8Array)) return '';
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch {
    throw new TrawlError('INVALID_JSON', 'The body is not UTF-8.');
  }
}

/** The last value of a repeated parameter counts. Parameters for the record (`trawl-…`) are left out. */
function parametersOf({ query }: FastifyRequest): UrlParameters {
  return Object.fromEntries(
    Object.entries(query as Record<string, string | string[]>)
      .filter(([name]) => !name.startsWith('trawl-'))
      .map(([name, value]) => [name, [value].flat().at(-1)]),
  );
}

const VENDOR = /^application\/vnd\.elasticsearch\+(?:json|x-ndjson)\s*;\s*compatible-with\s*=\s*([89])\s*$/i;
const BODIES = /^application\/(?:vnd\.elasticsearch\+)?(?:json|x-ndjson)\s*(?:;.*)?$/i;

/**
 * Refuses what Elasticsearch refuses before it reads a body: another content type than JSON, and a version of the protocol in only
 * one of `accept` and `content-type`, or different ones. A missing content type is accepted.
 */
function checkMediaTypes(request: FastifyRequest): void {
  const { accept = '', 'content-type': type = '', 'content-length': length = 0 } = request.headers;
  if (request.headers['transfer-encoding'] === undefined && !(Number(length) > 0)) return;
  if (type !== '' && !BODIES.test(type)) {
    throw new TrawlError('UNSUPPORTED_MEDIA_TYPE', `Content-Type header [${type.slice(0, 200)}] is not supported`);
  }
  if (type === '' || versionOf(accept) === versionOf(type)) return;
  throw new ElasticsearchError(400, {
    type: 'media_type_header_exception',
    reason:
      'A compatible version is required on both Content-Type and Accept headers if either one has requested a compatible version. ' +
      `Accept=${accept.slice(0, 200)}, Content-Type=${type.slice(0, 200)}`,
  });
}

/** The content type of a JSON reply: the one of `accept` if it names a version. */
export function jsonTypeFor(request: FastifyRequest): string {
  const version = versionOf(request.headers.accept ?? '');
  return version === undefined ? 'application/json' : `application/vnd.elasticsearch+json;compatible-with=${version}`;
}

/** The version of the protocol in a media type, 8 or 9; undefined if it names none. */
function versionOf(header: string): string | undefined {
  return header
    .split(',')
    .map((type) => VENDOR.exec(type.trim())?.[1])
    .find((version) => version !== undefined);
}
