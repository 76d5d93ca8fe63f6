import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { CLIENT_CLOSED_REQUEST, onResponseEnd } from './connections/client-signal.ts';
import { ANSWER_STAGES, type AnswerTimings, elapsedMs } from './metrics/server-timing.ts';
import type { RequestTracer, SpanStage } from './tracing/tracer.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** What a trace says about an answered search; null before, and for other requests. */
    answered: AnsweredSearch | null;
  }
}

interface AnsweredSearch {
  readonly dialect: string;
  readonly index: string | null;
  readonly queries: number;
  readonly timings: AnswerTimings | null;
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
  const { method, routeOptions, headers, id, answered } = request;
  const ms = elapsedMs(request);
  const status = reply.raw.writableFinished ? reply.statusCode : CLIENT_CLOSED_REQUEST;
  const { url: route } = routeOptions;
  tracer.trace({
    name: route === undefined ? method : `${method} ${route}`,
    headers,
    startedAt: performance.timeOrigin + performance.now() - ms,
    ms,
    status,
    // The names of OpenTelemetry's conventions for HTTP servers.
    attributes: {
      'http.request.method': method,
      ...(route === undefined ? {} : { 'http.route': route }),
      'http.response.status_code': status,
      'trawl.request_id': id,
      ...(answered === null ? {} : searchAttributes(answered)),
    },
    stages: answered?.timings == null ? [] : stagesOf(answered.timings),
  });
}

function searchAttributes({ dialect, index, queries }: AnsweredSearch): Record<string, string | number> {
  return { 'trawl.dialect': dialect, ...(index === null ? {} : { 'trawl.index': index }), 'trawl.queries': queries };
}

function stagesOf(timings: AnswerTimings): SpanStage[] {
  return ANSWER_STAGES.filter((name) => name !== 'total').map((name) => ({ name, ms: timings[name] }));
}
