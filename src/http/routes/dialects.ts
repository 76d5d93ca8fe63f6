import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Retriever } from '../../retrieval/retriever.ts';
import { clientSignal } from '../client-signal.ts';
import type { Answer, Dialect, Plan } from '../dialects/dialect.ts';
import { checkDialectNames, DIALECT_PATHS, PathDialects } from '../dialects/dispatch.ts';
import { bodyTooLarge } from '../error-reply.ts';
import { chosenIndex } from '../index-choice.ts';
import { parseJsonBody, requireJsonMediaType } from '../json-body.ts';
import { byteLength, writeReply } from '../json-reply.ts';
import { ReplyBudget } from '../reply-budget.ts';
import type { RetrieverHolder } from '../retriever-holder.ts';
import type { ServerConfig } from '../server-config.ts';
import { type AnswerTimings, elapsedMs, roundedTimings, serverTiming } from '../server-timing.ts';

/** Of one request; they are usually all the same. */
const LOGGED_FAILURES = 3;

declare module 'fastify' {
  interface FastifyRequest {
    /** The dialect of a request, once its path or its body tells: it words the errors too. */
    dialect: Dialect | null;
  }
}

/** The POST routes of all dialects: body → dialect → retriever → dialect → reply. */
export function registerDialects(app: FastifyInstance, holder: RetrieverHolder, config: ServerConfig): void {
  checkDialectNames(config.dialects);
  app.decorateRequest('dialect', null);
  const budget = new ReplyBudget(config.maxReplyBytesInFlight);
  for (const path of DIALECT_PATHS) {
    const dialects = new PathDialects(path, config.dialects);
    app.route({
      method: 'POST',
      url: path,
      // Refused before the body is read. Node reads the rest away, so that the client can hear the answer.
      onRequest: async (request) => {
        request.dialect = dialects.only;
        holder.requireReady();
        if (chosenIndex(request) !== undefined) holder.slot(chosenIndex(request));
        budget.require();
        requireJsonMediaType(request);
        if (Number(request.headers['content-length'] ?? 0) > config.maxBodyBytes) throw bodyTooLarge(config);
      },
      handler: (request, reply) => answer(dialects, request, reply, holder, budget, config),
    });
  }
}

async function answer(
  dialects: PathDialects,
  request: FastifyRequest,
  reply: FastifyReply,
  holder: RetrieverHolder,
  budget: ReplyBudget,
  config: ServerConfig,
): Promise<FastifyReply> {
  const signal = clientSignal(request.raw, reply.raw);
  const body = parseJsonBody(request.body);
  request.body = undefined;
  const dialect = dialects.choose(body);
  request.dialect = dialect;
  const plan = dialect.parse(body, config);
  const lease = holder.lease(chosenIndex(request, plan.index ?? undefined));
  try {
    return await answerFrom(lease.retriever, dialect, plan, signal, request, reply, budget);
  } finally {
    // The answer is written by now; a retriever that was replaced meanwhile may close.
    lease.release();
  }
}

async function answerFrom(
  retriever: Retriever,
  dialect: Dialect,
  plan: Plan,
  signal: AbortSignal,
  request: FastifyRequest,
  reply: FastifyReply,
  budget: ReplyBudget,
): Promise<FastifyReply> {
  const result = await plan.run(retriever, signal);
  // Others may have been answered meanwhile.
  budget.require();
  const replyStart = performance.now();
  const slices = await writeReply(result.pieces, signal);
  const timings: AnswerTimings = {
    ...result.timings,
    reply: performance.now() - replyStart,
    total: elapsedMs(request),
  };
  budget.hold(byteLength(slices), request.raw, reply.raw);
  logAnswer(request, dialect, plan, result, timings);
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
  { queries, k }: Plan,
  { truncated, failures = [] }: Answer,
  timings: AnswerTimings,
): void {
  for (const error of failures.slice(0, LOGGED_FAILURES)) {
    request.log.error({ err: error, code: error.code, details: error.details }, 'query failed');
  }
  const failed = failures.length === 0 ? {} : { failed: failures.length };
  request.log.info(
    { dialect: dialect.name, queries, k, truncated, ...failed, ...roundedTimings(timings) },
    'retrieved',
  );
}
