import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { BodyBudget } from '../body-budget.ts';
import { clientSignal, whenAnswerIsOver } from '../client-signal.ts';
import { asDeadline, deadlineOf } from '../deadline.ts';
import type { Answer, Dialect, Plan } from '../dialects/dialect.ts';
import { checkDialectNames, DIALECT_PATHS, PathDialects } from '../dialects/dispatch.ts';
import { bodyTooLarge } from '../error-reply.ts';
import { chosenIndex } from '../index-choice.ts';
import { parseJsonBody, requireJsonMediaType } from '../json-body.ts';
import { byteLength, writeReply } from '../json-reply.ts';
import { observed } from '../observed-retriever.ts';
import type { ReplyBudget } from '../reply-budget.ts';
import type { RetrieverHolder } from '../retriever-holder.ts';
import type { ServerConfig } from '../server-config.ts';
import type { ServerMetrics } from '../server-metrics.ts';
import { type AnswerTimings, elapsedMs, roundedTimings, serverTiming } from '../server-timing.ts';
import { shedding } from '../shedding.ts';

/** Of one request; they are usually all the same. */
const LOGGED_FAILURES = 3;
/** In the counts, the status of a client that left before its answer was sent; nobody receives it. */
const HUNG_UP = 499;

declare module 'fastify' {
  interface FastifyRequest {
    /** The dialect of a request, once its path or its body tells: it words the errors too. */
    dialect: Dialect | null;
  }
}

/** What the routes share. */
export interface SearchRoutes {
  readonly holder: RetrieverHolder;
  readonly config: ServerConfig;
  readonly metrics: ServerMetrics;
  readonly replies: ReplyBudget;
  readonly bodies: BodyBudget;
}

/** The POST routes of all dialects: body → dialect → retriever → dialect → reply. */
export function registerDialects(app: FastifyInstance, routes: SearchRoutes): void {
  const { holder, config, metrics, replies, bodies } = routes;
  checkDialectNames(config.dialects);
  app.decorateRequest('dialect', null);
  const log = answerLog(config.logEvery);
  for (const path of DIALECT_PATHS) {
    const dialects = new PathDialects(path, config.dialects);
    app.route({
      method: 'POST',
      url: path,
      config: { onlyDialect: dialects.only },
      // Refused before the body is read. Node reads the rest away, so that the client can hear the answer.
      onRequest: async (request, reply) => {
        count(request, reply, metrics);
        refuseIfNotReady(holder);
        holder.slot(chosenIndex(request));
        replies.require();
        bodies.require();
        requireJsonMediaType(request, reply);
        if (Number(request.headers['content-length'] ?? 0) > config.maxBodyBytes) throw bodyTooLarge(config);
      },
      preParsing: bodies.count,
      handler: (request, reply) => answer(dialects, request, reply, routes, log),
    });
  }
}

/**
 * While stopping, a request is refused by its handler, once its body has come: an answer that closes its connection before
 * would reset a client that still sends.
 */
export function refuseIfNotReady(holder: RetrieverHolder): void {
  if (holder.state !== 'stopping') holder.requireReady();
}

/** `name`: of the route's requests, where they are no dialect's. */
export function count(request: FastifyRequest, reply: FastifyReply, metrics: ServerMetrics, name = 'unknown'): void {
  metrics.begun();
  whenAnswerIsOver(request.raw, reply.raw, () => {
    metrics.ended(request.dialect?.name ?? name, reply.raw.writableFinished ? reply.statusCode : HUNG_UP);
  });
}

async function answer(
  dialects: PathDialects,
  request: FastifyRequest,
  reply: FastifyReply,
  routes: SearchRoutes,
  log: AnswerLog,
): Promise<FastifyReply> {
  const { holder, config, metrics, replies, bodies } = routes;
  const signal = clientSignal(request.raw, reply.raw, deadlineOf(request, config));
  const parseStart = performance.now();
  const body = parseJsonBody(request.body);
  request.body = undefined;
  bodies.release(request.raw);
  const dialect = dialects.choose(body);
  request.dialect = dialect;
  const plan = dialect.parse(body, config);
  const parse = performance.now() - parseStart;
  const lease = holder.lease(chosenIndex(request, plan.index ?? undefined));
  try {
    const { index } = lease.retriever.info;
    const result = await plan.run(
      observed(shedding(lease.retriever, config), { requestId: request.id, dialect: dialect.name }, routes),
      signal,
    );
    // Others may have been answered meanwhile.
    replies.require();
    const replyStart = performance.now();
    const slices = await writeReply(result.pieces, signal, replies.hold(request.raw, reply.raw));
    const timings: AnswerTimings = {
      parse,
      ...result.timings,
      reply: performance.now() - replyStart,
      total: elapsedMs(request),
    };
    const { truncated, failures = [] } = result;
    metrics.answered({ dialect: dialect.name, queries: plan.queries, truncated, failed: failures.length, timings });
    log(request, index, dialect, plan, result, timings);
    return send(reply, slices, timings);
  } catch (error) {
    throw asDeadline(error, signal);
  } finally {
    // The answer is written by now; a retriever that was replaced meanwhile may close.
    lease.release();
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

type AnswerLog = (
  request: FastifyRequest,
  index: string,
  dialect: Dialect,
  plan: Plan,
  answer: Answer,
  timings: AnswerTimings,
) => void;

/** Figures only: queries and passages stay out of the log. One of `every` answers gets a line, and all with failures. */
function answerLog(every: number): AnswerLog {
  let answers = 0;
  return (request, index, dialect, { queries, k }, { truncated, failures = [] }, timings) => {
    if (answers++ % every !== 0 && failures.length === 0) return;
    for (const error of failures.slice(0, LOGGED_FAILURES)) {
      request.log.error({ err: error, code: error.code, details: error.details }, 'query failed');
    }
    const failed = failures.length === 0 ? {} : { failed: failures.length };
    request.log.info(
      { dialect: dialect.name, index, queries, k, truncated, ...failed, ...roundedTimings(timings) },
      'retrieved',
    );
  };
}
