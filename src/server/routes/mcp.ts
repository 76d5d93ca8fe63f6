import type { FastifyInstance, FastifyRequest } from 'fastify';
import { clientSignal, deadlineOf } from '../connections/client-signal.ts';
import { ERROR_STATUS } from '../errors/error-status.ts';
import { chosenIndex } from '../indexes/index-choice.ts';
import { retrieverFor, viewFact } from '../indexes/view-choice.ts';
import { parseJsonBody, requireJsonMediaType } from '../json-body.ts';
import { refusalOf } from '../mcp/request-origin.ts';
import type { answerMcp } from '../mcp/server.ts';
import { elapsedMs } from '../metrics/server-timing.ts';
import { recordOpenings, recordSearch } from '../record-search.ts';
import { perturbedOf } from '../search-hook.ts';
import type { McpConfig } from '../server-config.ts';
import { countRequest, refuseIfNotReady, type SearchRoutes } from './dialects.ts';
import { addEventStreams, type EventParts, MCP_ROUTE } from './mcp-events.ts';

/** JSON-RPC error code, in the range that is reserved for servers. */
const FORBIDDEN = -32_000;

/**
 * The Model Context Protocol at `/mcp`, if configured. `POST` is its streamable HTTP transport: there are neither sessions nor
 * server-initiated streams, so DELETE is 405, as the protocol allows. `GET` begins its older transport (`mcp-events.ts`).
 */
export function registerMcp(app: FastifyInstance, routes: SearchRoutes): void {
  const { config, metrics, replies, bodies } = routes;
  const { mcp } = config;
  if (mcp === null) return;
  const refuseEarly = earlyRefusal(routes, mcp);
  // Loads the MCP library only if the route is configured.
  app.register(async (scope) => {
    const library = await import('../mcp/server.ts');
    const answer = answerer(library.answerMcp, routes, mcp);
    const streams = addEventStreams(scope, { refuseEarly, answer, config });
    scope.route({
      method: 'POST',
      url: MCP_ROUTE,
      onRequest: async (request, reply) => {
        countRequest(request, reply, metrics, 'mcp');
        const refused = refuseEarly(request, reply);
        if (refused !== undefined) return refused;
        bodies.refuseIfFull();
        requireJsonMediaType(request, reply);
      },
      preParsing: bodies.count,
      async handler(request, reply) {
        const body = parseJsonBody(request.body);
        bodies.release(request.raw);
        if (streams.isFor(request)) return streams.answer(request, reply, body);
        const signal = clientSignal(request.raw, reply.raw, deadlineOf(request, config));
        const answered = await answer(request, body, { headers: headersOf(request), signal });
        reply.code(answered.status).header('cache-control', 'no-store');
        const type = answered.headers.get('content-type');
        if (type !== null) reply.header('content-type', type);
        const text = Buffer.from(await answered.arrayBuffer());
        replies.hold(request.raw, reply.raw)(text.length);
        return reply.send(text);
      },
    });
  });
}

/** Refuses a request before its body is read. */
function earlyRefusal({ holder, replies }: SearchRoutes, { hosts }: McpConfig): EventParts['refuseEarly'] {
  return (request, reply) => {
    const refusal = refusalOf(request, hosts);
    if (refusal !== undefined) {
      request.log.info({ status: 403, reason: refusal }, 'request refused');
      return reply
        .code(403)
        .header('cache-control', 'no-store')
        .send({ jsonrpc: '2.0', id: null, error: { code: FORBIDDEN, message: refusal } });
    }
    refuseIfNotReady(holder);
    holder.slotsOf(chosenIndex(request));
    replies.refuseIfFull();
    return undefined;
  };
}

/** Answers the messages of a body by the MCP library, with a lease of their own on the index. */
function answerer(
  answer: typeof answerMcp,
  routes: SearchRoutes,
  { tools, snippetTokens }: McpConfig,
): EventParts['answer'] {
  const { holder, config } = routes;
  return async (request, body, { headers, signal }) => {
    const lease = holder.lease(chosenIndex(request));
    let queries = 0;
    try {
      const retriever = retrieverFor(request, lease.retriever, config);
      const post = new Request(`http://server${MCP_ROUTE}`, { method: 'POST', headers });
      const answered = await answer(post, body, signal, {
        retriever: () => retriever,
        onSearch(search) {
          queries += search.outcomes.length;
          request.hooked?.note(perturbedOf(search.outcomes));
          recordSearch(search, { request, dialect: 'mcp' }, retriever.info, routes);
        },
        onOpen(opening) {
          recordOpenings([opening], { request, dialect: 'mcp' }, retriever.info, config.record);
        },
        limits: config,
        tools,
        snippetTokens,
        onFailure(tool, error) {
          // Messages of refused calls may repeat arguments, which must not be logged.
          if (ERROR_STATUS[error.code] !== 500) request.log.info({ tool, code: error.code }, 'tool refused');
          else request.log.error({ tool, code: error.code, err: error, details: error.details }, 'tool failed');
        },
      });
      const { index } = lease.retriever.info;
      request.answered = { dialect: 'mcp', index, queries, timings: null };
      const totalMs = Number(elapsedMs(request).toFixed(3));
      request.log.info({ mcp: methodOf(body), index, ...viewFact(request.usedViews), totalMs }, 'answered');
      return answered;
    } finally {
      lease.release();
    }
  };
}

/** The headers that the transport reads; it gets the parsed body separately. */
function headersOf(request: FastifyRequest): Headers {
  const headers = new Headers();
  for (const name of ['accept', 'content-type', 'mcp-protocol-version', 'mcp-session-id']) {
    const value = request.headers[name];
    if (typeof value === 'string') headers.set(name, value);
  }
  if (!headers.has('content-type')) headers.set('content-type', 'application/json');
  return headers;
}

/** Methods and tool names for the log, without arguments, which contain queries. */
function methodOf(body: unknown): string {
  const messages: readonly unknown[] = Array.isArray(body) ? body : [body];
  return (messages.slice(0, 5) as ({ method?: unknown; params?: { name?: unknown } } | null)[])
    .map((message) =>
      [message?.method, message?.params?.name]
        .filter((part) => typeof part === 'string')
        .join(' ')
        .slice(0, 100),
    )
    .join(', ');
}
