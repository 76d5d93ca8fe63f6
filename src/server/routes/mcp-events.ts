import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { asTrawlError, TrawlError } from '../../base/errors.ts';
import { type Deadline, deadlineErrorOr, deadlineOf } from '../connections/client-signal.ts';
import { clientError } from '../errors/client-error.ts';
import { ERROR_STATUS } from '../errors/error-status.ts';
import { pathPrefix } from '../indexes/index-choice.ts';
import { EventStreams } from '../mcp/event-streams.ts';
import type { ServerConfig } from '../server-config.ts';

export const MCP_ROUTE = '/mcp';
/** The parameter of the URL to which a client posts messages whose answers it gets in its stream; Python's client knows the name. */
const STREAM_PARAMETER = 'session_id';
/** JSON-RPC's code of an error within the server. */
const INTERNAL_ERROR = -32_603;

export interface EventParts {
  /** Sends a refusal; undefined if the request is accepted. */
  refuseEarly(request: FastifyRequest, reply: FastifyReply): FastifyReply | undefined;
  /** Answers the messages of a body as the streamable HTTP transport does. */
  answer(
    request: FastifyRequest,
    body: unknown,
    how: { readonly headers: Headers; readonly signal: AbortSignal },
  ): Promise<Response>;
  readonly config: Pick<ServerConfig, 'deadlineMs'>;
}

/** Answers to messages that a client posts for its event stream. */
interface StreamAnswers {
  /** Whether the URL of a message names an event stream. */
  isFor(request: FastifyRequest): boolean;
  answer(request: FastifyRequest, reply: FastifyReply, body: unknown): FastifyReply;
}

/**
 * Adds `GET /mcp`: the transport with an event stream, which Qwen-Agent and BrowseComp-Plus use by default. The messages of a client are
 * answered as those of the other transport, with the key, the view and the deadline of the request that posts them.
 */
export function addEventStreams(app: FastifyInstance, { refuseEarly, answer, config }: EventParts): StreamAnswers {
  const streams = new EventStreams();
  app.addHook('preClose', async () => streams.close());
  app.route({
    method: 'GET',
    url: MCP_ROUTE,
    exposeHeadRoute: false,
    onRequest: async (request, reply) => refuseEarly(request, reply),
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
        .header('cache-control', 'no-store')
        // nginx would collect the events.
        .header('x-accel-buffering', 'no');
      return reply.send(streams.open((id) => addressOf(request, id)));
    },
  });
  return {
    isFor: (request) => streamId(request) !== undefined,
    answer(request, reply, body) {
      const stream = streams.find(streamId(request) ?? '');
      if (stream === undefined) {
        throw new TrawlError('NOT_FOUND', 'The event stream has ended. Connect again with GET /mcp.');
      }
      const { signal, end } = withDeadline(stream.signal, deadlineOf(request, config));
      const messages = async (): Promise<readonly string[]> => {
        try {
          return await messagesOf(await answer(request, body, { headers: HEADERS, signal }));
        } catch (thrown) {
          const error = asTrawlError(deadlineErrorOr(thrown, signal));
          const isBug = ERROR_STATUS[error.code] === 500;
          if (isBug) request.log.error({ err: error, code: error.code, details: error.details }, 'request failed');
          return errorMessages(
            body,
            `${error.code}: ${isBug ? 'The server failed. Its log has the details.' : clientError(error).message}`,
          );
        } finally {
          end();
        }
      };
      void stream.run(messages);
      // Clients wait for this reply only for seconds, but for the answer in their stream as long as they want.
      return reply.code(202).header('cache-control', 'no-store').send();
    },
  };
}

/** The headers of the other transport's requests, which it requires. */
const HEADERS = new Headers({ accept: 'application/json, text/event-stream', 'content-type': 'application/json' });

/** Clients of the other transport ask for a stream, too, but only after they agreed on a version of the protocol. */
function wantsStream({ headers }: FastifyRequest): boolean {
  return /text\/event-stream/i.test(headers.accept ?? '') && headers['mcp-protocol-version'] === undefined;
}

function streamId({ query }: FastifyRequest): string | undefined {
  const id = (query as Record<string, unknown>)[STREAM_PARAMETER];
  return typeof id === 'string' ? id : undefined;
}

/** Where the client of a stream posts messages: the same path, with what the request named in its URL. */
function addressOf({ raw, url }: FastifyRequest, id: string): string {
  const parameters = new URLSearchParams(url.split('?')[1]);
  parameters.set(STREAM_PARAMETER, id);
  return `${pathPrefix(raw)}${MCP_ROUTE}?${parameters}`;
}

/** A signal that also aborts at a deadline, unless `end` is called before. */
function withDeadline(signal: AbortSignal, deadline: Deadline | undefined): { signal: AbortSignal; end: () => void } {
  if (deadline === undefined) return { signal, end: () => undefined };
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(deadline.error), Math.max(0, deadline.at - performance.now()));
  return { signal: AbortSignal.any([signal, controller.signal]), end: () => clearTimeout(timer) };
}

/** The JSON-RPC messages of a reply, each as one line. */
async function messagesOf(response: Response): Promise<readonly string[]> {
  const text = await response.text();
  if (text === '') return [];
  const messages: unknown = JSON.parse(text);
  return (Array.isArray(messages) ? messages : [messages]).map((message) => JSON.stringify(message));
}

/** The error for each message of a body that is a request. */
function errorMessages(body: unknown, message: string): readonly string[] {
  const messages = (Array.isArray(body) ? body : [body]) as ({ readonly id?: unknown } | null)[];
  const ids = messages.flatMap((each) => each?.id ?? []);
  return ids.map((id) => JSON.stringify({ jsonrpc: '2.0', id, error: { code: INTERNAL_ERROR, message } }));
}
