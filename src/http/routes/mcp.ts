import type { FastifyInstance, FastifyRequest } from 'fastify';
import { isLoopback } from '../access/access.ts';
import { clientSignal } from '../connections/client-signal.ts';
import { ERROR_STATUS } from '../errors/error-status.ts';
import { chosenIndex } from '../indexes/index-choice.ts';
import { retrieverFor, viewFact } from '../indexes/view-choice.ts';
import { parseJsonBody, requireJsonMediaType } from '../json-body.ts';
import { deadlineOf } from '../limits/deadline.ts';
import { elapsedMs } from '../metrics/server-timing.ts';
import { recordSearch } from '../record-search.ts';
import { countRequest, refuseIfNotReady, type SearchRoutes } from './dialects.ts';

const MCP_ROUTE = '/mcp';

/** JSON-RPC error code, in the range that is reserved for servers. */
const FORBIDDEN = -32_000;

/**
 * `POST /mcp`, the streamable HTTP transport of the Model Context Protocol, if configured. There are neither sessions nor
 * server-initiated streams, so GET and DELETE are 405, as the protocol allows.
 */
export function registerMcp(app: FastifyInstance, routes: SearchRoutes): void {
  const { holder, config, metrics, replies, bodies } = routes;
  if (config.mcp === null) return;
  const { hosts, tools, snippetTokens } = config.mcp;
  // Loads the MCP library only if the route is configured.
  app.register(async (scope) => {
    const { answerMcp } = await import('../mcp/server.ts');
    scope.route({
      method: 'POST',
      url: MCP_ROUTE,
      onRequest: async (request, reply) => {
        countRequest(request, reply, metrics, 'mcp');
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
        bodies.refuseIfFull();
        requireJsonMediaType(request, reply);
      },
      preParsing: bodies.count,
      async handler(request, reply) {
        const signal = clientSignal(request.raw, reply.raw, deadlineOf(request, config));
        const body = parseJsonBody(request.body);
        bodies.release(request.raw);
        const lease = holder.lease(chosenIndex(request));
        let answer: Response;
        try {
          const retriever = retrieverFor(request, lease.retriever, config);
          answer = await answerMcp(webRequest(request), body, signal, {
            retriever: () => retriever,
            onSearch: (search) => recordSearch(search, { request, dialect: 'mcp' }, retriever.info, routes),
            limits: config,
            tools,
            snippetTokens,
            onFailure(tool, error) {
              // Messages of refused calls may repeat arguments, which must not be logged.
              if (ERROR_STATUS[error.code] !== 500) request.log.info({ tool, code: error.code }, 'tool refused');
              else request.log.error({ tool, code: error.code, err: error, details: error.details }, 'tool failed');
            },
          });
        } finally {
          lease.release();
        }
        const { index } = lease.retriever.info;
        request.log.info(
          {
            mcp: methodOf(body),
            index,
            ...viewFact(request.usedViews),
            totalMs: Number(elapsedMs(request).toFixed(3)),
          },
          'answered',
        );
        reply.code(answer.status).header('cache-control', 'no-store');
        const type = answer.headers.get('content-type');
        if (type !== null) reply.header('content-type', type);
        const text = Buffer.from(await answer.arrayBuffer());
        replies.hold(request.raw, reply.raw)(text.length);
        return reply.send(text);
      },
    });
  });
}

/** The request as the transport expects it: only headers, because it gets the parsed body separately. */
function webRequest(request: FastifyRequest): Request {
  const headers = new Headers();
  for (const name of ['accept', 'content-type', 'mcp-protocol-version', 'mcp-session-id']) {
    const value = request.headers[name];
    if (typeof value === 'string') headers.set(name, value);
  }
  if (!headers.has('content-type')) headers.set('content-type', 'application/json');
  return new Request(`http://server${MCP_ROUTE}`, { method: 'POST', headers });
}

/** Why a request's `origin` or `host` is refused; undefined if both are accepted. */
function refusalOf(request: FastifyRequest, hosts: readonly string[]): string | undefined {
  const isAccepted = (name: string | undefined): boolean =>
    name !== undefined && (isLoopbackName(name) || hosts.includes(name.toLowerCase()));
  const { origin, host } = request.headers;
  // Only browsers send `origin`: the request comes from a page of another site.
  if (origin !== undefined && !isAccepted(hostName(origin))) {
    return `Pages of ${origin.slice(0, 200)} may not call this server. Allow them with --mcp-host.`;
  }
  // DNS rebinding: if a site's host name resolves to loopback, its pages can reach this server as their own origin.
  const { localAddress } = request.raw.socket;
  const local = localAddress === undefined || isLoopback(localAddress);
  if (local && !isAccepted(hostName(`http://${host ?? ''}`))) {
    return `The host name ${String(host).slice(0, 200)} is not accepted on loopback. Use localhost, or allow the name with --mcp-host.`;
  }
  return undefined;
}

function hostName(url: string): string | undefined {
  try {
    return new URL(url).hostname;
  } catch {
    return undefined;
  }
}

function isLoopbackName(name: string): boolean {
  return name === 'localhost' || name === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(name);
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
