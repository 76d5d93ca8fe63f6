import Fastify, { type FastifyInstance, LogController } from 'fastify';
import { TrawlError } from '../errors.ts';
import type { Retriever } from '../retrieval/retriever.ts';
import { ConnectionErrors } from './connection-errors.ts';
import { installErrorHandler, sendError } from './error-reply.ts';
import { acceptRawBodies } from './json-body.ts';
import { requestId } from './request-id.ts';
import { RetrieverHolder } from './retriever-holder.ts';
import { registerDialects } from './routes/dialects.ts';
import { registerDocs } from './routes/docs.ts';
import { registerHealth } from './routes/health.ts';
import { registerMcp } from './routes/mcp.ts';
import { registerNative } from './routes/native.ts';
import { registerPage } from './routes/page.ts';
import { resolveServerConfig, type ServerConfig } from './server-config.ts';
import { installClock } from './server-timing.ts';
import { installUnknownRoutes } from './unknown-routes.ts';
import { UnusedConnections } from './unused-connections.ts';

/** TCP's own probes find clients that vanished without a word (a machine that lost power), also behind a long wait. */
const TCP_PROBE_AFTER_MS = 60_000;

/** Longer ones cannot be asked for by GET /v1/passages/{id}. */
const MAX_ID_CHARACTERS = 2_048;

/** The whole HTTP layer, not listening. Closing it closes no retriever: who opened that closes it afterwards. */
export function buildApp(source: Retriever | RetrieverHolder, options: Partial<ServerConfig> = {}): FastifyInstance {
  const config = resolveServerConfig(options);
  const holder = source instanceof RetrieverHolder ? source : RetrieverHolder.of(source);
  const app: FastifyInstance = Fastify({
    ...(config.logger === null ? { logger: false } : { loggerInstance: config.logger }),
    // One line per answer, written by the route that knows its figures.
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: requestId,
    trustProxy: false,
    bodyLimit: config.maxBodyBytes,
    // Ids of passages stand in paths.
    routerOptions: { maxParamLength: MAX_ID_CHARACTERS },
    // A quiet connection may be waiting for its answer: waiting is the default, so nothing cuts it.
    connectionTimeout: 0,
    requestTimeout: config.receiveTimeoutMs,
    keepAliveTimeout: config.keepAliveMs,
    http: { keepAlive: true, keepAliveInitialDelay: TCP_PROBE_AFTER_MS },
    // While closing, the holder says NOT_READY in the form the clients know.
    return503OnClosing: false,
    clientErrorHandler: (error, socket) => connectionErrors.handle(error, socket),
    frameworkErrors(_error, request, reply) {
      sendError(new TrawlError('NOT_FOUND', 'The path of the request cannot be decoded.'), request, reply, config);
    },
  });

  const connectionErrors = new ConnectionErrors(app.log);
  connectionErrors.watch(app.server);
  const unused = new UnusedConnections(app.server);
  app.addHook('preClose', async () => unused.close());
  installClock(app);
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id).header('x-content-type-options', 'nosniff');
  });
  app.addHook('onSend', async (_request, reply) => {
    // A connection kept open would hold up the stop until it is idle for long.
    if (holder.state === 'stopping') reply.header('connection', 'close');
  });
  acceptRawBodies(app);
  installErrorHandler(app, config);
  installUnknownRoutes(app);
  registerDialects(app, holder, config);
  registerHealth(app, holder, config);
  registerNative(app, holder);
  registerMcp(app, holder, config);
  registerDocs(app);
  registerPage(app);
  return app;
}
