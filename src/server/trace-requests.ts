import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { defined } from '../base/objects.ts';
import { CLIENT_CLOSED_REQUEST, onResponseEnd } from './connections/client-signal.ts';
import { ANSWER_STAGES, type AnswerTimings, elapsedMs } from './metrics/server-timing.ts';
import type { RequestTracer } from './tracing/tracer.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** What a trace says about an answered search; null before, and for other requests. */
    answered: { dialect: string; index: string | null; queries: number; timings: AnswerTimings | null } | null;
  }
}

/** Requests of monitoring, which would fill the traces. */
const UNTRACED: ReadonlySet<string | undefined> = new Set(['/health', '/healthz', '/livez', '/readyz', '/metrics']);

/** Passes every request to the tracer when its response has ended. With null it only declares what routes set. */
export function installTracing(app: FastifyInstance, tracer: RequestTracer | null): void {
  app.decorateRequest('answered', null);
  if (tracer === null) return;
  app.addHook('onRequest', async (request, reply) => {
    if (UNTRACED.has(request.routeOptions.url)) return;
    onResponseEnd(request.raw, reply.raw, () => trace(tracer, request, reply));
  });
}

function trace(tracer: RequestTracer, request: FastifyRequest, reply: FastifyReply): void {
  const { method, headers, id, answered } = request;
  const { url: route } = request.routeOptions;
  const ms = elapsedMs(request);
  const status = reply.raw.writableFinished ? reply.statusCode : CLIENT_CLOSED_REQUEST;
  const stages = ANSWER_STAGES.filter((name) => name !== 'total');
  tracer.trace({
    name: route === undefined ? method : `${method} ${route}`,
    headers,
    startedAt: performance.timeOrigin + performance.now() - ms,
    ms,
    status,
    // The names of OpenTelemetry's conventions for HTTP servers.
    attributes: defined({
      'http.request.method': method,
      'http.route': route,
      'http.response.status_code': status,
      'trawl.request_id': id,
      'trawl.dialect': answered?.dialect,
      'trawl.index': answered?.index ?? undefined,
      'trawl.queries': answered?.queries,
    }) as Record<string, string | number>,
    stages: answered?.timings == null ? [] : stages.map((name) => ({ name, ms: answered.timings![name] })),
  });
}
