import type { FastifyInstance, FastifyRequest } from 'fastify';
import { isLoopback } from '../access.ts';
import { clientSignal } from '../client-signal.ts';
import { deadlineOf } from '../deadline.ts';
import { ERROR_STATUS } from '../error-status.ts';
import { chosenIndex } from '../index-choice.ts';
import { parseJsonBody, requireJsonMediaType } from '../json-body.ts';
import { observed } from '../observed-retriever.ts';
import { elapsedMs } from '../server-timing.ts';
import { shedding } from '../shedding.ts';
import { count, refuseIfNotReady, type SearchRoutes } from './dialects.ts';

export const MCP_ROUTE = '/mcp';

/** JSON-RPC's range for errors of a server. */
const FORBIDDEN = -32_000;

/**
 * `POST /mcp`, the streamable HTTP transport of the Model Context Protocol, where the server was told to have it. There
 * are no sessions and no stream of the server's own, so GET and DELETE are 405, as the protocol allows.
 */
export function registerMcp(app: FastifyInstance, routes: SearchRoutes): void {
  const { holder, config, metrics, replies, bodies } = routes;
  if (config.mcp === null) return;
  const { hosts } = config.mcp;
  // The library is loaded by servers that have the route, not by all.
  app.register(async (scope) => {
    const { answerMcp } = await import('../mcp/server.ts');
    scope.route({
      method: 'POST',
      url: MCP_ROUTE,
      onRequest: async (request, reply) => {
        count(request, reply, metrics, 'mcp');
        const stranger = foreignName(request, hosts);
        if (stranger !== undefined) {
          request.log.info({ status: 403, reason: stranger }, 'request refused');
          return reply
            .code(403)
            .header('cache-control', 'no-store')
            .send({ jsonrpc: '2.0', id: null, error: { code: FORBIDDEN, message: stranger } });
        }
        refuseIfNotReady(holder);
        holder.slot(chosenIndex(request));
        replies.require();
        bodies.require();
        requireJsonMediaType(request, reply);
      },
      preParsing: bodies.count,
      async handler(request, reply) {
        const signal = clientSignal(request.raw, reply.raw, deadlineOf(request, config));
        const body = parseJsonBody(request.body);
        bodies.release(request.raw);
        const { retriever, release } = holder.lease(chosenIndex(request));
        let answer: Response;
        try {
          answer = await answerMcp(webRequest(request), body, signal, {
            retriever: () => observed(shedding(retriever, config), { requestId: request.id, dialect: 'mcp' }, routes),
            maxChars: config.maxQueryChars,
            onFailure(tool, error) {
              // The message of what an assistant did wrong may repeat what it asked for, which stays out of the log.
              if (ERROR_STATUS[error.code] !== 500) request.log.info({ tool, code: error.code }, 'tool refused');
              else request.log.error({ tool, code: error.code, err: error, details: error.details }, 'tool failed');
            },
          });
        } finally {
          release();
        }
        request.log.info(
          { mcp: callOf(body), index: retriever.info.index, totalMs: Number(elapsedMs(request).toFixed(3)) },
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

/** The transport reads headers alone; the body is given to it parsed. */
function webRequest(request: FastifyRequest): Request {
  const headers = new Headers();
  for (const name of ['accept', 'content-type', 'mcp-protocol-version', 'mcp-session-id']) {
    const value = request.headers[name];
    if (typeof value === 'string') headers.set(name, value);
  }
  if (!headers.has('content-type')) headers.set('content-type', 'application/json');
  return new Request(`http://server${MCP_ROUTE}`, { method: 'POST', headers });
}

/** What is wrong with where a request says it comes from or goes to; undefined where nothing is. */
function foreignName(request: FastifyRequest, hosts: readonly string[]): string | undefined {
  const known = (name: string | undefined): boolean =>
    name !== undefined && (isLoopbackName(name) || hosts.includes(name.toLowerCase()));
  const { origin, host } = request.headers;
  // Sent by browsers alone: a page of another site has no business here.
  if (origin !== undefined && !known(hostName(origin))) {
    return `Requests of pages of ${origin.slice(0, 200)} are not answered; --mcp-host names sites that may ask.`;
  }
  // A name that was made to lead to this machine (DNS rebinding) is the one way for a page to get here as its own origin.
  const { localAddress } = request.raw.socket;
  const local = localAddress === undefined || isLoopback(localAddress);
  if (local && !known(hostName(`http://${host ?? ''}`))) {
    return `This server is asked for as ${String(host).slice(0, 200)}; on loopback it answers to localhost and to what --mcp-host names.`;
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

/** Methods and tools alone: arguments are queries and stay out of the log. */
function callOf(body: unknown): string {
  const calls = Array.isArray(body) ? body : [body];
  return calls
    .map((call: { method?: unknown; params?: { name?: unknown } } | null) =>
      [call?.method, call?.params?.name]
        .filter((part) => typeof part === 'string')
        .join(' ')
        .slice(0, 100),
    )
    .slice(0, 5)
    .join(', ');
}
