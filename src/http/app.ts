import Fastify, { type FastifyInstance, type FastifyRequest, type FastifyServerOptions, LogController } from 'fastify';
import { TrawlError } from '../errors.ts';
import type { Retriever } from '../retrieval/retriever.ts';
import { installAccess } from './access.ts';
import { BodyBudget } from './body-budget.ts';
import { ConnectionErrors } from './connection-errors.ts';
import { installCors } from './cors.ts';
import { installErrorHandler, sendError } from './error-reply.ts';
import { takeIndexPrefix } from './index-choice.ts';
import { acceptRawBodies } from './json-body.ts';
import { QuietConnections } from './quiet-connections.ts';
import { ReplyBudget } from './reply-budget.ts';
import { requestId } from './request-id.ts';
import { RetrieverHolder } from './retriever-holder.ts';
import { registerAdmin } from './routes/admin.ts';
import { registerDialects } from './routes/dialects.ts';
import { registerDocs } from './routes/docs.ts';
import { registerHealth } from './routes/health.ts';
import { registerMcp } from './routes/mcp.ts';
import { registerMetrics } from './routes/metrics.ts';
import { registerNative } from './routes/native.ts';
import { registerPage } from './routes/page.ts';
import { resolveServerConfig, type ServerConfig } from './server-config.ts';
import { ServerMetrics } from './server-metrics.ts';
import { installClock } from './server-timing.ts';
import { cutIfStalled } from './stalled-readers.ts';
import { installUnknownRoutes } from './unknown-routes.ts';

/** TCP's own probes find clients that vanished without a word (a machine that lost power), also behind a long wait. */
const TCP_PROBE_AFTER_MS = 60_000;

/** Longer ones cannot be asked for by GET /v1/passages/{id}. */
const MAX_ID_CHARACTERS = 2_048;

/** How often Node looks for requests that take too long to arrive. */
const CHECK_EVERY_MS = 10_000;

const TLS_OPTIONS = { minVersion: 'TLSv1.2', handshakeTimeout: 20_000 } as const;

/** The whole HTTP layer, not listening. Closing it closes no retriever: who opened that closes it afterwards. */
export function buildApp(source: Retriever | RetrieverHolder, options: Partial<ServerConfig> = {}): FastifyInstance {
  const metrics = options.metrics ?? new ServerMetrics();
  const config = resolveServerConfig({ ...options, metrics });
  const holder = source instanceof RetrieverHolder ? source : RetrieverHolder.of(source);
  const app = Fastify({
    ...(config.logger === null ? { logger: false } : { loggerInstance: config.logger }),
    // One line per answer, written by the route that knows its figures.
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: requestId,
    rewriteUrl: takeIndexPrefix,
    trustProxy: false,
    bodyLimit: config.maxBodyBytes,
    // Ids of passages stand in paths.
    routerOptions: { maxParamLength: MAX_ID_CHARACTERS },
    // A start from a slow disk is slow, not broken.
    pluginTimeout: 0,
    // A quiet connection may be waiting for its answer: waiting is the default, so nothing cuts it.
    connectionTimeout: 0,
    requestTimeout: config.receiveTimeoutMs,
    keepAliveTimeout: config.keepAliveMs,
    ...(config.tls === null
      ? { http: connectionOptions(config) }
      : { https: { ...connectionOptions(config), ...config.tls, ...TLS_OPTIONS } }),
    // While closing, the holder says NOT_READY in the form the clients know.
    return503OnClosing: false,
    clientErrorHandler: (error, socket) => connectionErrors.handle(error, socket),
    frameworkErrors(_error, request, reply) {
      // No hook runs for it.
      request.arrivedAt = performance.now();
      reply.headers(headersOfEveryAnswer(request));
      sendError(new TrawlError('NOT_FOUND', 'The path of the request cannot be decoded.'), request, reply, config);
    },
  } as FastifyServerOptions);

  const connectionErrors = new ConnectionErrors(app.log, () => metrics.refused('INVALID_REQUEST'));
  connectionErrors.watch(app.server);
  app.server.maxConnections = config.maxConnections;
  app.server.on('drop', () => metrics.cut('too-many'));
  const quiet = new QuietConnections(app.server);
  app.addHook('preClose', async () => quiet.close());
  installClock(app);
  app.addHook('onRequest', async (request, reply) => {
    reply.headers(headersOfEveryAnswer(request));
  });
  app.addHook('onSend', async (request, reply) => {
    cutIfStalled(request.raw, reply.raw, config.writeStallMs, () => metrics.cut('stalled'));
    // A connection kept open would hold up the stop until it is idle for long.
    if (holder.state === 'stopping') reply.header('connection', 'close');
  });
  installCors(app, config.corsOrigins);
  installAccess(app, config.keys);
  acceptRawBodies(app);
  installErrorHandler(app, config);
  installUnknownRoutes(app);
  const replies = new ReplyBudget(config.maxReplyBytesInFlight);
  const bodies = new BodyBudget(config.maxBodyBytesInFlight);
  metrics.watch(holder, { replyBytes: () => replies.bytes, bodyBytes: () => bodies.bytes, server: app.server });
  const routes = { holder, config, metrics, replies, bodies };
  registerDialects(app, routes);
  registerHealth(app, holder, config);
  registerNative(app, holder);
  registerAdmin(app, holder, metrics);
  registerMetrics(app, metrics);
  registerMcp(app, routes);
  registerDocs(app);
  registerPage(app);
  return app;
}

function headersOfEveryAnswer({ id }: FastifyRequest): Record<string, string> {
  return { 'x-request-id': id, 'x-content-type-options': 'nosniff' };
}

function connectionOptions({ receiveTimeoutMs, headersTimeoutMs }: ServerConfig): object {
  const headersTimeout = Math.min(headersTimeoutMs, receiveTimeoutMs);
  return {
    keepAlive: true,
    keepAliveInitialDelay: TCP_PROBE_AFTER_MS,
    headersTimeout,
    connectionsCheckingInterval: Math.min(CHECK_EVERY_MS, headersTimeout),
  };
}
