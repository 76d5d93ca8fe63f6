import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { TrawlError } from '../../base/errors.ts';
import { isObject } from '../../base/objects.ts';
import {
  CLIENT_CLOSED_REQUEST,
  clientSignal,
  deadlineErrorOr,
  deadlineOf,
  onResponseEnd,
} from '../connections/client-signal.ts';
import { URLS_MISSED, UrlsMissed } from '../dialects/asearcher.ts';
import type { Answer, Dialect, ErrorFormat, Plan } from '../dialects/dialect.ts';
import { checkDialectNames, DIALECTS, dialectPaths, PathDialects } from '../dialects/dispatch.ts';
import { field } from '../dialects/parts/read-request.ts';
import { searchR1 } from '../dialects/search-r1.ts';
import { bodyTooLarge } from '../errors/error-reply.ts';
import { isForOperator } from '../errors/error-status.ts';
import { chosenIndex, refuseOtherIndex } from '../indexes/index-choice.ts';
import type { IndexRegistry } from '../indexes/index-registry.ts';
import type { Lease } from '../indexes/index-slot.ts';
import { retrieverFor, viewFact } from '../indexes/view-choice.ts';
import { parseJsonBody, requireJsonMediaType } from '../json-body.ts';
import { byteLength, writeReply } from '../json-reply.ts';
import type { BodyBudget, ReplyBudget } from '../limits/byte-budgets.ts';
import type { ServerMetrics } from '../metrics/server-metrics.ts';
import { type AnswerTimings, elapsedMs, roundedTimings, serverTiming } from '../metrics/server-timing.ts';
import { recordOpenings, recordSearch } from '../record-search.ts';
import type { TrajectoryGuesser } from '../recording/guess-trajectories.ts';
import { shortLists } from '../recording/recorded-search.ts';
import { perturbedOf } from '../search-hook.ts';
import type { ServerConfig } from '../server-config.ts';

/** Failed queries logged per request; they usually have the same cause. */
const LOGGED_FAILURES = 3;

declare module 'fastify' {
  interface FastifyRequest {
    /** Set as soon as the path or the body determines it; errors have its format. */
    dialect: ErrorFormat | null;
  }
}

/** The objects that the search routes share. */
export interface SearchRoutes {
  readonly holder: IndexRegistry;
  readonly config: ServerConfig;
  readonly metrics: ServerMetrics;
  readonly replies: ReplyBudget;
  readonly bodies: BodyBudget;
  readonly guesser: TrajectoryGuesser;
}

/** Adds the routes of all dialects: the dialect parses the request, the retriever searches, the dialect writes the reply. */
export function registerDialects(app: FastifyInstance, routes: SearchRoutes): void {
  const { holder, config, metrics, replies, bodies } = routes;
  checkDialectNames(config.dialects);
  app.decorateRequest('dialect', null);
  const logs = { log: responseLog(config.logEvery), urlsMissed: new UrlsMissed() };
  const refuseEarly = (request: FastifyRequest, reply: FastifyReply, mayWait: boolean): void => {
    countRequest(request, reply, metrics);
    // While the server starts, a request that may wait passes: its body decides which dialect it is, and so whether it waits.
    if (!(mayWait && config.holdMs > 0 && holder.state === 'starting')) refuseIfNotReady(holder);
    holder.slotsOf(chosenIndex(request));
    replies.refuseIfFull();
  };
  for (const path of dialectPaths(config.dialects)) {
    const dialects = new PathDialects(path, config.dialects);
    app.route({
      method: 'POST',
      url: path,
      config: { onlyDialect: dialects.only },
      // Refuses a request before its body is read. Node then reads the body and discards it, because many clients look for a response
      // only after they have sent the whole body.
      onRequest: async (request, reply) => {
        refuseEarly(request, reply, dialects.hold);
        bodies.refuseIfFull();
        requireJsonMediaType(request);
        if (Number(request.headers['content-length'] ?? 0) > config.maxBodyBytes) throw bodyTooLarge(config);
      },
      preParsing: bodies.count,
      handler(request, reply) {
        const signal = clientSignal(request.raw, reply.raw, deadlineOf(request, config));
        const parseStart = performance.now();
        const body = parseJsonBody(request.body);
        request.body = undefined;
        return answer(dialects.choose(body), body, { request, reply, signal, parseStart }, routes, logs);
      },
    });
  }
  for (const dialect of DIALECTS) {
    if (dialect.method !== 'GET') continue;
    app.route({
      method: 'GET',
      url: dialect.path,
      config: { onlyDialect: dialect },
      onRequest: async (request, reply) => refuseEarly(request, reply, dialect.holdMs > 0),
      handler(request, reply) {
        const signal = clientSignal(request.raw, reply.raw, deadlineOf(request, config));
        const fields: unknown = request.query;
        return answer(dialect, fields, { request, reply, signal, parseStart: performance.now() }, routes, logs);
      },
    });
  }
}

/**
 * Refuses requests while the server starts, or if it could not open an index. While it stops, the handler refuses them after the body has
 * arrived: an earlier response with `connection: close` would reset the connection of a client that is still sending.
 */
export function refuseIfNotReady(holder: IndexRegistry): void {
  if (holder.state !== 'stopping') holder.requireReady();
}

/** @param name label in the metrics for requests without a dialect. */
export function countRequest(
  request: FastifyRequest,
  reply: FastifyReply,
  metrics: ServerMetrics,
  name = 'unknown',
): void {
  metrics.requestStarted();
  onResponseEnd(request.raw, reply.raw, () => {
    metrics.requestEnded(
      request.dialect?.name ?? name,
      reply.raw.writableFinished ? reply.statusCode : CLIENT_CLOSED_REQUEST,
    );
  });
}

/** The header says that hits of the reply are not proved to be the best. In most dialects a reply has no other place to say so. */
const EXACT_HEADER = 'x-trawl-exact';
/** The lists with fewer hits than were asked for: their number by the reason (`ShortReason`). Absent if there are none. */
const SHORT_HEADER = 'x-trawl-short';

interface Exchange {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  /** Aborts when the client disconnects or the deadline passes. */
  readonly signal: AbortSignal;
  /** When the parsing of the body began, by `performance.now()`. */
  readonly parseStart: number;
}

async function answer(
  dialect: Dialect,
  body: unknown,
  { request, reply, signal, parseStart }: Exchange,
  routes: SearchRoutes,
  { log, urlsMissed }: { readonly log: ResponseLog; readonly urlsMissed: UrlsMissed },
): Promise<FastifyReply> {
  const { holder, config, metrics, replies, bodies } = routes;
  request.dialect = dialect;
  const heldMs = await holdWhileStarting(dialect, { request, signal }, routes);
  bodies.release(request.raw);
  const plan = dialect.parse(body, config);
  const parse = performance.now() - parseStart - heldMs;
  const lease = leaseFor(request, plan, holder);
  try {
    const record = dialect.method === 'POST' && isObject(body) ? field(body, 'record') : undefined;
    const retriever = retrieverFor(request, lease.retriever, config, { shown: plan.k, record });
    const { info } = retriever;
    if (plan.given !== undefined) await request.hooked?.pass(plan.given, signal);
    const result = await plan.run(retriever, signal);
    if (result.search !== undefined) {
      request.hooked?.note(perturbedOf(result.search.outcomes), result.search.items?.positions);
      if (dialect === searchR1 && urlsMissed.shownBy(result.search, performance.now())) {
        request.log.warn({ index: info.index }, URLS_MISSED);
      }
      recordSearch(result.search, { request, dialect: dialect.name, body: record }, info, routes);
      if (result.search.outcomes.some((outcome) => outcome.ok && !outcome.certificate.exact)) {
        reply.header(EXACT_HEADER, 'false');
      }
      const short = shortLists(result.search);
      if (short !== '') reply.header(SHORT_HEADER, short);
    }
    recordOpenings(result.openings ?? [], { request, dialect: dialect.name, body: record }, info, config.record);
    const { timings, send } = await prepareReply(
      result.pieces,
      { request, reply, signal },
      { parse, ...result.timings },
      replies,
    );
    const { truncated = 0, failures = [] } = result;
    metrics.answered({ dialect: dialect.name, queries: plan.queries, truncated, failed: failures.length, timings });
    request.answered = { dialect: dialect.name, index: info.index, queries: plan.queries, timings };
    logFailures(request, failedRerankings(result), 'reranking');
    log(request, failures, () => ({
      dialect: dialect.name,
      index: info.index,
      ...viewFact(request.usedViews),
      queries: plan.queries,
      k: plan.k,
      truncated,
      ...roundedTimings(timings),
    }));
    return send(`${dialect.replyType ?? 'application/json'}; charset=utf-8`);
  } catch (error) {
    throw deadlineErrorOr(error, signal);
  } finally {
    // The reply's text is made. If a reload has replaced the retriever, it can close now.
    lease.release();
  }
}

/** Makes the text of a reply, within the budget of replies. `send` sends it with its length and the times of the request. */
export async function prepareReply(
  pieces: Iterable<string>,
  { request, reply, signal }: Pick<Exchange, 'request' | 'reply' | 'signal'>,
  stages: Omit<AnswerTimings, 'reply' | 'total'>,
  replies: ReplyBudget,
): Promise<{ readonly timings: AnswerTimings; send(type: string): FastifyReply }> {
  // Other replies may have used up the budget since the first check.
  replies.refuseIfFull();
  const replyStart = performance.now();
  const chunks = await writeReply(pieces, signal, replies.hold(request.raw, reply.raw));
  const timings = { ...stages, reply: performance.now() - replyStart, total: elapsedMs(request) };
  const send = (type: string): FastifyReply =>
    reply
      .header('content-type', type)
      .header('content-length', byteLength(chunks))
      .header('server-timing', serverTiming(timings))
      .send(chunks.length === 1 ? chunks[0] : Readable.from(chunks));
  return { timings, send };
}

/**
 * Holds a request while the server starts, if the clients of its dialect give up at a 503.
 *
 * @returns how long, in milliseconds.
 * @throws TrawlError NOT_READY if the server still starts, or the error of an index that it could not open; DEADLINE_EXCEEDED; CANCELLED
 * if the client has disconnected.
 */
async function holdWhileStarting(
  { holdMs }: Dialect,
  { request, signal }: Pick<Exchange, 'request' | 'signal'>,
  { holder, config }: SearchRoutes,
): Promise<number> {
  if (holder.state !== 'starting') return 0;
  const start = performance.now();
  const ms = Math.min(holdMs, config.holdMs) - elapsedMs(request);
  await holder.untilStarted({ ms, most: config.maxConnections, signal }).catch((error) => {
    throw deadlineErrorOr(error, signal);
  });
  refuseIfNotReady(holder);
  return performance.now() - start;
}

function leaseFor(request: FastifyRequest, { index = null, models = [] }: Plan, holder: IndexRegistry): Lease {
  if (index === null || typeof index === 'string') {
    return holder.lease(chosenIndex(request, index ?? undefined) ?? holder.indexWithModel(models));
  }
  refuseOtherIndex(request);
  return holder.leaseAll(index);
}

/** The errors of queries that are answered with the hits of the search, because their reranking failed. */
function failedRerankings({ search }: Answer): readonly TrawlError[] {
  return (search?.outcomes ?? []).flatMap((outcome) =>
    outcome.ok && outcome.rerank?.ok === false ? [outcome.rerank.error] : [],
  );
}

/** Logs the first errors of queries: failures of the server as errors, faults of the client like a refused request. */
function logFailures(request: FastifyRequest, errors: readonly TrawlError[], what: 'query' | 'reranking'): void {
  for (const error of errors.slice(0, LOGGED_FAILURES)) {
    const { code, details, message } = error;
    if (isForOperator(code)) request.log.error({ err: error, code, details }, `${what} failed`);
    else request.log.info({ code, reason: message }, `${what} refused`);
  }
}

/** `facts`: numbers and names, never texts. */
type ResponseLog = (request: FastifyRequest, failures: readonly TrawlError[], facts: () => object) => void;

/** Logs one of `every` responses, and all responses with failed queries. */
function responseLog(every: number): ResponseLog {
  let responses = 0;
  return (request, failures, facts) => {
    if (responses++ % every !== 0 && failures.length === 0) return;
    logFailures(request, failures, 'query');
    const failed = failures.length === 0 ? {} : { failed: failures.length };
    request.log.info({ ...facts(), ...failed }, 'retrieved');
  };
}
