import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { asTrawlError, TrawlError } from '../../base/errors.ts';
import { isLoopback } from '../access/access.ts';
import { clientSignal, deadlineErrorOr, deadlineOf } from '../connections/client-signal.ts';
import { clientMessage, ERROR_STATUS } from '../errors/error-status.ts';
import { chosenIndex, pathPrefix } from '../indexes/index-choice.ts';
import { viewFact, withRetriever } from '../indexes/view-choice.ts';
import { parseJsonBody, requireJsonMediaType } from '../json-body.ts';
import { EventStreams } from '../mcp/event-streams.ts';
import type { answerMcp } from '../mcp/server.ts';
import { elapsedMs } from '../metrics/server-timing.ts';
import { recordOpenings, recordSearch } from '../record-search.ts';
import { perturbedOf } from '../search-hook.ts';
import type { McpConfig } from '../server-config.ts';
import { countRequest, refuseIfNotReady, type SearchRoutes } from './dialects.ts';

const MCP_ROUTE = '/mcp';
/** The parameter of the URL to which a client posts messages whose answers it gets in its stream; Python's client knows the name. */
const STREAM_PARAMETER = 'session_id';
/** JSON-RPC error code, in the range that is reserved for servers. */
const FORBIDDEN = -32_000;
/** JSON-RPC's code of an error within the server. */
const INTERNAL_ERROR = -32_603;

/** The headers that the streamable transport requires, for messages that are answered in an event stream. */
const STREAMED_HEADERS = new Headers({
  accept: 'application/json, text/event-stream',
  'content-type': 'application/json',
});

/** Answers the messages of a body as the streamable HTTP transport does. */
type AnswerBody = (request: FastifyRequest, body: unknown, headers: Headers, signal: AbortSignal) => Promise<Response>;

/**
 * The Model Context Protocol at `/mcp`, if configured.
 *
 * - `POST` is its streamable HTTP transport: there are neither sessions nor server-initiated streams, so DELETE is 405, as the protocol
 *   allows.
 * - `GET` opens an event stream of the older transport, which Qwen-Agent and BrowseComp-Plus use by default. Messages that are posted for
 *   the stream are answered as in the other transport, with the key, the view and the deadline of the request that posts them.
 */
export function registerMcp(app: FastifyInstance, routes: SearchRoutes): void {
  const { config, metrics, replies, bodies } = routes;
  const { mcp } = config;
  if (mcp === null) return;
  // Loads the MCP library only if the route is configured.
  app.register(async (scope) => {
    const library = await import('../mcp/server.ts');
    const answer = answerer(library.answerMcp, routes, mcp);
    const streams = new EventStreams();
    scope.addHook('preClose', async () => streams.close());
    scope.route({
      method: 'GET',
      url: MCP_ROUTE,
      exposeHeadRoute: false,
      onRequest: async (request, reply) => refuseEarly(request, reply, routes, mcp),
      handler(request, reply) {
        if (!wantsStream(request)) {
          reply.header('allow', 'POST, OPTIONS');
          throw new TrawlError(
            'METHOD_NOT_ALLOWED',
            'This route accepts POST, or GET for an event stream (accept: text/event-stream).',
          );
        }
        reply
          .header('content-type', 'text/event-stream')
          // nginx would collect the events.
          .header('x-accel-buffering', 'no');
        return reply.send(streams.open((id) => streamAddress(request, id)));
      },
    });
    scope.route({
      method: 'POST',
      url: MCP_ROUTE,
      onRequest: async (request, reply) => {
        countRequest(request, reply, metrics, 'mcp');
        const refused = refuseEarly(request, reply, routes, mcp);
        if (refused !== undefined) return refused;
        bodies.refuseIfFull();
        requireJsonMediaType(request);
      },
      preParsing: bodies.count,
      async handler(request, reply) {
        const body = parseJsonBody(request.body);
        bodies.release(request.raw);
        const id = (request.query as Record<string, unknown>)[STREAM_PARAMETER];
        if (typeof id === 'string') {
          const stream = streams.find(id);
          if (stream === undefined) {
            throw new TrawlError('NOT_FOUND', 'The event stream has ended. Connect again with GET /mcp.');
          }
          answerInStream(stream, request, body, answer, deadlineOf(request, config));
          // Clients wait for this reply only for seconds, but for the answer in their stream as long as they want.
          return reply.code(202).send();
        }
        const signal = clientSignal(request.raw, reply.raw, deadlineOf(request, config));
        const answered = await answer(request, body, transportHeaders(request), signal);
        reply.code(answered.status);
        const type = answered.headers.get('content-type');
        if (type !== null) reply.header('content-type', type);
        const text = Buffer.from(await answered.arrayBuffer());
        replies.hold(request.raw, reply.raw)(text.length);
        return reply.send(text);
      },
    });
  });
}

/** Refuses a request before its body is read. Sends the refusal of another origin; undefined if the request is accepted. */
function refuseEarly(
  request: FastifyRequest,
  reply: FastifyReply,
  { holder, replies }: SearchRoutes,
  { hosts }: McpConfig,
): FastifyReply | undefined {
  const refusal = refusalOf(request, hosts);
  if (refusal !== undefined) {
    request.log.info({ status: 403, reason: refusal }, 'request refused');
    return reply.code(403).send({ jsonrpc: '2.0', id: null, error: { code: FORBIDDEN, message: refusal } });
  }
  refuseIfNotReady(holder);
  holder.slotsOf(chosenIndex(request));
  replies.refuseIfFull();
  return undefined;
}

/** Answers the messages of a body by the MCP library, with a lease of their own on the index. */
function answerer(answer: typeof answerMcp, routes: SearchRoutes, { tools, snippetTokens }: McpConfig): AnswerBody {
  const { holder, config } = routes;
  return (request, body, headers, signal) =>
    withRetriever(request, holder, config, async (retriever) => {
      const { index } = retriever.info;
      let queries = 0;
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
      request.answered = { dialect: 'mcp', index, queries, timings: null };
      const totalMs = Number(elapsedMs(request).toFixed(3));
      request.log.info({ mcp: calledMethods(body), index, ...viewFact(request.usedViews), totalMs }, 'answered');
      return answered;
    });
}

/** Answers the messages of a body in an event stream, until the stream ends or the deadline passes. */
function answerInStream(
  stream: NonNullable<ReturnType<EventStreams['find']>>,
  request: FastifyRequest,
  body: unknown,
  answer: AnswerBody,
  deadline: ReturnType<typeof deadlineOf>,
): void {
  const late = new AbortController();
  const timer = deadline && setTimeout(() => late.abort(deadline.error), Math.max(0, deadline.at - performance.now()));
  const signal = AbortSignal.any([stream.signal, late.signal]);
  void stream.run(async () => {
    try {
      const text = await (await answer(request, body, STREAMED_HEADERS, signal)).text();
      const messages: unknown = text === '' ? [] : JSON.parse(text);
      return [messages].flat().map((message) => JSON.stringify(message));
    } catch (thrown) {
      const error = asTrawlError(deadlineErrorOr(thrown, signal));
      if (ERROR_STATUS[error.code] === 500) {
        request.log.error({ err: error, code: error.code, details: error.details }, 'request failed');
      }
      const refusal = { code: INTERNAL_ERROR, message: `${error.code}: ${clientMessage(error)}` };
      // One error for each message of the body that is a request.
      const ids = ([body].flat() as ({ readonly id?: unknown } | null)[]).flatMap((each) => each?.id ?? []);
      return ids.map((id) => JSON.stringify({ jsonrpc: '2.0', id, error: refusal }));
    } finally {
      clearTimeout(timer);
    }
  });
}

/** Clients of the streamable transport ask for a stream, too, but only after they agreed on a version of the protocol. */
function wantsStream({ headers }: FastifyRequest): boolean {
  return /text\/event-stream/i.test(headers.accept ?? '') && headers['mcp-protocol-version'] === undefined;
}

/** Where the client of a stream posts messages: the same path, with what the request named in its URL. */
function streamAddress({ raw, url }: FastifyRequest, id: string): string {
  const parameters = new URLSearchParams(url.split('?')[1]);
  parameters.set(STREAM_PARAMETER, id);
  return `${pathPrefix(raw)}${MCP_ROUTE}?${parameters}`;
}

/** The headers that the transport reads; it gets the parsed body separately. */
function transportHeaders(request: FastifyRequest): Headers {
  const headers = new Headers({ 'content-type': 'application/json' });
  for (const name of ['accept', 'content-type', 'mcp-protocol-version', 'mcp-session-id']) {
    const value = request.headers[name];
    if (typeof value === 'string') headers.set(name, value);
  }
  return headers;
}

/** Methods and tool names for the log, without arguments, which contain queries. */
function calledMethods(body: unknown): string {
  const messages = [body].flat().slice(0, 5) as ({ method?: unknown; params?: { name?: unknown } } | null)[];
  return messages
    .map((message) =>
      [message?.method, message?.params?.name]
        .filter((part) => typeof part === 'string')
        .join(' ')
        .slice(0, 100),
    )
    .join(', ');
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
