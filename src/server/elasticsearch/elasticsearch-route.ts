import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from 'fastify';
import { TrawlError } from '../../base/errors.ts';
import { NO_TIMINGS, type StageTimings } from '../../search/timings.ts';
import type { Access } from '../access/access.ts';
import { clientSignal, deadlineErrorOr, deadlineOf } from '../connections/client-signal.ts';
import { bodyTooLarge } from '../errors/error-reply.ts';
import { byteLength, writeReply } from '../json-reply.ts';
import { elapsedMs, roundedTimings, serverTiming } from '../metrics/server-timing.ts';
import { countRequest, refuseIfNotReady, type SearchRoutes } from '../routes/dialects.ts';
import { ELASTICSEARCH_ERRORS } from './error-format.ts';
import { checkMediaTypes, jsonTypeFor } from './media-types.ts';
import type { UrlParameters } from './search-request.ts';

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
    const body = textOf(request.body);
    request.body = undefined;
    bodies.release(request.raw);
    const {
      status = 200,
      pieces,
      type,
      searches,
    } = await route.handle({
      request,
      body,
      path: request.params as ElasticsearchRequest['path'],
      parameters: parametersOf(request),
      signal,
      routes,
    });
    replies.refuseIfFull();
    const replyStart = performance.now();
    const chunks = await writeReply(pieces, signal, replies.hold(request.raw, reply.raw));
    const timings = {
      parse: 0,
      ...(searches?.timings ?? NO_TIMINGS),
      reply: performance.now() - replyStart,
      total: elapsedMs(request),
    };
    if (searches !== undefined) {
      const { name: dialect } = ELASTICSEARCH_ERRORS;
      metrics.answered({ dialect, queries: searches.count, truncated: 0, failed: 0, timings });
      request.answered = { dialect, index: null, queries: searches.count, timings };
      request.log.info({ dialect, queries: searches.count, ...roundedTimings(timings) }, 'retrieved');
    }
    reply
      .code(status)
      .header('content-type', type ?? jsonTypeFor(request))
      .header('content-length', byteLength(chunks))
      .header('cache-control', 'no-store')
      .header('server-timing', serverTiming(timings));
    return reply.send(chunks.length === 1 ? chunks[0] : Readable.from(chunks));
  } catch (error) {
    throw deadlineErrorOr(error, signal);
  }
}

function textOf(body: unknown): string {
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
