import type { FastifyInstance, FastifyRequest } from 'fastify';
import { STAGES, type StageTimings } from '../retrieval/timings.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** When its headers had arrived, on the clock of `performance.now()`; 0 where it never came to a hook. */
    arrivedAt: number;
  }
}

/** Fastify has a clock of its own, but it stands still without a logger. */
export function installClock(app: FastifyInstance): void {
  app.decorateRequest('arrivedAt', 0);
  app.addHook('onRequest', async (request) => {
    request.arrivedAt = performance.now();
  });
  app.addHook('onSend', async (request, reply) => {
    if (!reply.hasHeader('server-timing')) reply.header('server-timing', totalOnly(elapsedMs(request)));
  });
}

export function elapsedMs(request: FastifyRequest): number {
  return request.arrivedAt === 0 ? 0 : performance.now() - request.arrivedAt;
}

/** In the order they are told. */
export const ANSWER_STAGES = ['parse', ...STAGES, 'reply', 'total'] as const;

/** Milliseconds of one answer. `total` runs from the request's headers to the finished reply, waiting included. */
export interface AnswerTimings extends StageTimings {
  /** Parsing the body and reading the request from it. */
  readonly parse: number;
  /** Writing the reply's JSON. */
  readonly reply: number;
  readonly total: number;
}

/** The header of that name (W3C Server Timing), durations in milliseconds. */
export function serverTiming(timings: AnswerTimings): string {
  return ANSWER_STAGES.map((name) => entry(name, timings[name])).join(', ');
}

/** For an answer that never came to the stages. */
export function totalOnly(totalMs: number): string {
  return entry('total', totalMs);
}

/** The same figures for the log line. */
export function roundedTimings(timings: AnswerTimings): Record<string, number> {
  return Object.fromEntries(ANSWER_STAGES.map((name) => [`${name}Ms`, Number(timings[name].toFixed(3))]));
}

function entry(name: string, ms: number): string {
  return `${name};dur=${ms.toFixed(3)}`;
}
