import type { FastifyInstance, FastifyRequest } from 'fastify';
import { STAGES, type StageTimings } from '../../search/timings.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** When the headers had arrived, by `performance.now()`; 0 before the first hook. */
    arrivedAt: number;
  }
}

/** Fastify's own timing (`reply.elapsedTime`) does not work without a logger. */
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

export const ANSWER_STAGES = ['parse', ...STAGES, 'reply', 'total'] as const;

/** Timings of one response in milliseconds. `total` is the time from the request's headers to the finished reply. */
export interface AnswerTimings extends StageTimings {
  /** Time to parse and validate the body. */
  readonly parse: number;
  /** Time to write the JSON. */
  readonly reply: number;
  readonly total: number;
}

/** The value of the header `server-timing` (W3C Server Timing), in milliseconds. */
export function serverTiming(timings: AnswerTimings): string {
  return ANSWER_STAGES.map((name) => entry(name, timings[name])).join(', ');
}

/** The value of `server-timing` for a response without stages. */
export function totalOnly(totalMs: number): string {
  return entry('total', totalMs);
}

/** The timings as fields of a log line, in milliseconds. */
export function roundedTimings(timings: AnswerTimings): Record<string, number> {
  return Object.fromEntries(ANSWER_STAGES.map((name) => [`${name}Ms`, Number(timings[name].toFixed(3))]));
}

function entry(name: string, ms: number): string {
  return `${name};dur=${ms.toFixed(3)}`;
}
