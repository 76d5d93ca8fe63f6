import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { RetrieveResult } from '../../retrieval/retriever.ts';
import { clientSignal } from '../client-signal.ts';
import type { Dialect } from '../dialects/dialect.ts';
import { chooseDialect, DIALECT_PATHS } from '../dialects/dispatch.ts';
import { bodyTooLarge } from '../error-reply.ts';
import { parseJsonBody, requireJsonMediaType } from '../json-body.ts';
import { byteLength, writeReply } from '../json-reply.ts';
import { ReplyBudget } from '../reply-budget.ts';
import type { RetrieverHolder } from '../retriever-holder.ts';
import type { ServerConfig } from '../server-config.ts';
import { type AnswerTimings, elapsedMs, roundedTimings, serverTiming } from '../server-timing.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The dialect of a retrieve request, once its body is known: it words the errors too. */
    dialect: Dialect | null;
  }
}

/** The POST routes of all dialects: body → dialect → retriever → dialect → reply. */
export function registerRetrieve(app: FastifyInstance, holder: RetrieverHolder, config: ServerConfig): void {
  app.decorateRequest('dialect', null);
  const budget = new ReplyBudget(config.maxReplyBytesInFlight);
  for (const path of DIALECT_PATHS) {
    app.route({
      method: 'POST',
      url: path,
      // Refused before the body is read. Node reads the rest away, so that the client can hear the answer.
      onRequest: async (request) => {
        holder.require();
        budget.require();
        requireJsonMediaType(request);
        if (Number(request.headers['content-length'] ?? 0) > config.maxBodyBytes) throw bodyTooLarge(config);
      },
      handler: (request, reply) => answer(path, request, reply, holder, budget, config),
    });
  }
}

async function answer(
  path: string,
  request: FastifyRequest,
  reply: FastifyReply,
  holder: RetrieverHolder,
  budget: ReplyBudget,
  config: ServerConfig,
): Promise<FastifyReply> {
  const signal = clientSignal(request.raw, reply.raw);
  const body = parseJsonBody(request.body);
  request.body = undefined;
  const dialect = chooseDialect(path, body);
  request.dialect = dialect;
  const parsed = dialect.parse(body, config);
  const result = await holder.require().retrieve({ ...parsed.call, signal });
  // Others may have been answered meanwhile.
  budget.require();
  const replyStart = performance.now();
  const slices = await writeReply(parsed.reply(result.outcomes), signal);
  const timings: AnswerTimings = {
    ...result.timings,
    reply: performance.now() - replyStart,
    total: elapsedMs(request),
  };
  budget.hold(byteLength(slices), request.raw, reply.raw);
  logAnswer(request, dialect, parsed.call.k, result, timings);
  return send(reply, slices, timings);
}

function send(reply: FastifyReply, slices: readonly Buffer[], timings: AnswerTimings): FastifyReply {
  return reply
    .header('content-type', 'application/json; charset=utf-8')
    .header('content-length', byteLength(slices))
    .header('cache-control', 'no-store')
    .header('server-timing', serverTiming(timings))
    .send(slices.length === 1 ? slices[0] : Readable.from(slices));
}

/** Figures only: queries and passages stay out of the log. */
function logAnswer(
  request: FastifyRequest,
  dialect: Dialect,
  k: number,
  result: RetrieveResult,
  timings: AnswerTimings,
): void {
  const truncated = result.outcomes.filter((outcome) => outcome.ok && outcome.truncated).length;
  request.log.info(
    { dialect: dialect.name, queries: result.outcomes.length, k, truncated, ...roundedTimings(timings) },
    'retrieved',
  );
}
