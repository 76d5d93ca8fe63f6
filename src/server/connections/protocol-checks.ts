import type { IncomingMessage } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { TrawlError } from '../../base/errors.ts';

/** Option of `createServer`: Node's own response to a missing Host header would have no body and none of our headers. */
export const WITHOUT_HOST_CHECK = { requireHostHeader: false } as const;

/**
 * Refuses requests without a Host header (RFC 9110, section 7.2) and with an expectation other than 100-continue (section
 * 10.1.1). Node would answer them with an empty 400 or 417.
 */
export function installProtocolChecks(app: FastifyInstance): void {
  const unmet = new WeakSet<IncomingMessage>();
  app.server.on('checkExpectation', (request, response) => {
    unmet.add(request);
    app.server.emit('request', request, response);
  });
  app.addHook('onRequest', async ({ raw }, reply) => {
    if (raw.httpVersion === '1.1' && raw.headers.host === undefined) {
      reply.header('connection', 'close');
      throw new TrawlError('HOST_MISSING', 'The request has no Host header, which HTTP/1.1 requires. Send one.');
    }
    if (unmet.has(raw)) {
      throw new TrawlError(
        'EXPECTATION_FAILED',
        `The header "expect: ${raw.headers.expect?.slice(0, 40)}" is not supported. Omit it, or send "expect: 100-continue".`,
      );
    }
  });
}
