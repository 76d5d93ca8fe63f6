import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Retriever } from '../../retrieval/retriever.ts';
import { BodyBudget } from '../body-budget.ts';
import { clientSignal } from '../client-signal.ts';
import { asDeadline, deadlineOf } from '../deadline.ts';
import type { Answer, Dialect, Plan } from '../dialects/dialect.ts';
import { checkDialectNames, DIALECT_PATHS, PathDialects } from '../dialects/dispatch.ts';
import { bodyTooLarge } from '../error-reply.ts';
import { parseJsonBody, requireJsonMediaType } from '../json-body.ts';
import { byteLength, writeReply } from '../json-reply.ts';
import { ReplyBudget } from '../reply-budget.ts';
import type { RetrieverHolder } from '../retriever-holder.ts';
import type { ServerConfig } from '../server-config.ts';
import { type AnswerTimings, elapsedMs, roundedTimings, serverTiming } from '../server-timing.ts';
import { shedIfLate } from '../shedding.ts';

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
  const bodies = new BodyBudget(config.maxBodyBytesInFlight);
  for (const path of DIALECT_PATHS) {
    const dialects = new PathDialects(path, config.dialects);
    app.route({
      method: 'POST',
      url: path,
      // Refused before the body is read. Node reads the rest away, so that the client can hear the answer.
      onRequest: async (request, reply) => {
        request.dialect = dialects.only;
        holder.require();
        budget.require();
        requireJsonMediaType(request);
        if (Number(request.headers['content-length'] ?? 0) > config.maxBodyBytes) throw bodyTooLarge(config);
        bodies.hold(request.raw, reply.raw);
      },
      handler: (request, reply) => {
        // What is left of the body then are its texts, which the retriever counts.
        bodies.release(request.raw);
        return answer(dialects, request, reply, holder, budget, config);
      },
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
  const signal = clientSignal(request.raw, reply.raw, deadlineOf(request, config));
  const body = parseJsonBody(request.body);
  request.body = undefined;
  const dialect = dialects.choose(body);
  request.dialect = dialect;
  const plan = dialect.parse(body, config);
  const retriever = holder.require();
  shedIfLate(retriever, config);
  const { result, slices, replyMs } = await answered(plan, retriever, budget, signal);
  const timings: AnswerTimings = {
    ...result.timings,
    reply: replyMs,
    total: elapsedMs(request),
  };
  budget.hold(byteLength(slices), request.raw, reply.raw);
  logAnswer(request, dialect, plan, result, timings);
  return send(reply, slices, timings);
}

async function answered(
  plan: Plan,
  retriever: Retriever,
  budget: ReplyBudget,
  signal: AbortSignal,
): Promise<{ result: Answer; slices: Buffer[]; replyMs: number }> {
  try {
    const result = await plan.run(retriever, signal);
    // Others may have been answered meanwhile.
    budget.require();
    const replyStart = performance.now();
    const slices = await writeReply(result.pieces, signal);
    return { result, slices, replyMs: performance.now() - replyStart };
  } catch (error) {
    throw asDeadline(error, signal);
  }
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
