import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import Fastify, { type FastifyInstance, type FastifyRequest, type FastifyServerOptions, LogController } from 'fastify';
import { TrawlError } from '../base/errors.ts';
import type { OpenRetriever } from '../search/retriever.ts';
import { installAccess, installCors } from './access/access.ts';
import { disconnectIfStalled, IdleConnections } from './connections/disconnects.ts';
import { ConnectionErrors, installProtocolChecks, WITHOUT_HOST_CHECK } from './connections/protocol-errors.ts';
import { servesElasticsearch } from './dialects/dispatch.ts';
import { ELASTICSEARCH_ERRORS, seemsElasticsearch } from './elasticsearch/elasticsearch-error.ts';
import { PRODUCT_HEADER, registerElasticsearch } from './elasticsearch/register.ts';
import { installErrorHandler, sendError } from './errors/error-reply.ts';
import { installUnknownRoutes } from './errors/unknown-routes.ts';
import { takePathPrefix } from './indexes/index-choice.ts';
import { IndexRegistry } from './indexes/index-registry.ts';
import { installViews } from './indexes/view-choice.ts';
import { acceptRawBodies } from './json-body.ts';
import { BodyBudget, ReplyBudget } from './limits/byte-budgets.ts';
import { ServerMetrics } from './metrics/server-metrics.ts';
import { installClock } from './metrics/server-timing.ts';
import { installRecording } from './record-search.ts';
import { TrajectoryGuesser } from './recording/guess-trajectories.ts';
import { registerAdmin } from './routes/admin.ts';
import { registerDialects, type SearchRoutes } from './routes/dialects.ts';
import { registerDocs } from './routes/docs.ts';
import { registerHealth } from './routes/health.ts';
import { registerIndexFiles } from './routes/index-files.ts';
import { registerIndexes, registerManifest } from './routes/indexes.ts';
import { registerMcp } from './routes/mcp.ts';
import { registerModels } from './routes/models.ts';
import { registerPage } from './routes/page.ts';
import { registerPassage } from './routes/passage.ts';
import { registerSample } from './routes/sample.ts';
import { installSearchHook } from './search-hook.ts';
import { resolveServerConfig, type ServerConfig } from './server-config.ts';
import { installTracing } from './trace-requests.ts';

/** TCP keep-alive detects clients that vanish during a long wait, such as a machine that loses power. */
const TCP_KEEP_ALIVE_AFTER_MS = 60_000;

/** Longest id for GET /v1/passages/{id}. */
const MAX_ID_CHARACTERS = 2_048;

/** How often Node checks for requests that take too long to arrive. */
const CHECK_EVERY_MS = 10_000;

const TLS_OPTIONS = { minVersion: 'TLSv1.2', handshakeTimeout: 20_000 } as const;

/** Builds the HTTP server, which does not listen yet. Closing it does not close the retriever, which the caller owns. */
export function buildApp(source: OpenRetriever | IndexRegistry, options: Partial<ServerConfig> = {}): FastifyInstance {
  const metrics = options.metrics ?? new ServerMetrics();
  const config = resolveServerConfig({ ...options, metrics });
  const hasElasticsearch = servesElasticsearch(config.dialects);
  const productHeaders = hasElasticsearch ? PRODUCT_HEADER : {};
  const holder = source instanceof IndexRegistry ? source : IndexRegistry.single(source);
  const app = Fastify({
    ...fastifyOptions(config),
    clientErrorHandler: (error, socket) => connectionErrors.handle(error, socket),
    frameworkErrors(_error, request, reply) {
      // Fastify does not run hooks for framework errors.
      request.arrivedAt = performance.now();
      reply.headers({ ...headersOfEveryResponse(request), ...productHeaders });
      request.dialect = hasElasticsearch && seemsElasticsearch(request) ? ELASTICSEARCH_ERRORS : null;
      sendError(
        new TrawlError('NOT_FOUND', 'Route not found: the path of the request cannot be decoded.'),
        request,
        reply,
        config,
      );
    },
  } as FastifyServerOptions);

  const connectionErrors = new ConnectionErrors(app.log, () => metrics.refused('INVALID_REQUEST'));
  connectionErrors.watch(app.server);
  limitConnections(app, config, metrics);
  installClock(app);
  installTracing(app, config.tracer);
  app.addHook('onRequest', async (request, reply) => {
    reply.headers({ ...headersOfEveryResponse(request), ...productHeaders });
  });
  app.addHook('onSend', async (request, reply) => {
    disconnectIfStalled(request.raw, reply.raw, config.writeStallMs, () => metrics.disconnected('stalled'));
    // A connection that stays open would delay the stop.
    if (holder.state === 'stopping') reply.header('connection', 'close');
  });
  installCors(app, config.corsOrigins);
  installProtocolChecks(app);
  installViews(app, metrics);
  installRecording(app, metrics);
  installSearchHook(app, config.searchHook, metrics);
  installAccess(app, config.keys);
  acceptRawBodies(app);
  installErrorHandler(app, config);
  installUnknownRoutes(app, hasElasticsearch);
  const replies = new ReplyBudget(config.maxReplyBytesInFlight);
  const bodies = new BodyBudget(config.maxBodyBytesInFlight);
  metrics.watch(holder, { replyBytes: () => replies.bytes, bodyBytes: () => bodies.bytes, server: app.server });
  const routes = { holder, config, metrics, replies, bodies, guesser: new TrajectoryGuesser() };
  registerRoutes(app, routes, hasElasticsearch);
  return app;
}

function fastifyOptions(config: ServerConfig): FastifyServerOptions {
  return {
    ...(config.logger === null ? { logger: false } : { loggerInstance: config.logger }),
    // The routes log one line per response, with timings.
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: requestId,
    rewriteUrl: takePathPrefix,
    trustProxy: false,
    bodyLimit: config.maxBodyBytes,
    routerOptions: { maxParamLength: MAX_ID_CHARACTERS },
    // Plugins may take long to load from a slow disk.
    pluginTimeout: 0,
    // A connection without traffic may be waiting for its response, for any time.
    connectionTimeout: 0,
    requestTimeout: config.receiveTimeoutMs,
    keepAliveTimeout: config.keepAliveMs,
    ...(config.tls === null
      ? { http: connectionOptions(config) }
      : { https: { ...connectionOptions(config), ...config.tls, ...TLS_OPTIONS } }),
    // While closing, the holder throws NOT_READY, which our error handler formats.
    return503OnClosing: false,
  } as FastifyServerOptions;
}

function limitConnections(app: FastifyInstance, { maxConnections }: ServerConfig, metrics: ServerMetrics): void {
  app.server.maxConnections = maxConnections;
  app.server.on('drop', () => metrics.disconnected('too-many'));
  const idle = new IdleConnections(app.server);
  app.addHook('preClose', async () => idle.close());
}

function registerRoutes(app: FastifyInstance, routes: SearchRoutes, hasElasticsearch: boolean): void {
  const { holder, config, metrics } = routes;
  registerDialects(app, routes);
  registerHealth(app, holder, config, metrics);
  registerIndexes(app, holder, config);
  registerPassage(app, holder, config);
  registerSample(app, holder, config);
  registerManifest(app, holder, config);
  registerModels(app, holder);
  registerAdmin(app, holder, metrics);
  registerIndexFiles(app, holder);
  registerMcp(app, routes);
  if (hasElasticsearch) registerElasticsearch(app, routes);
  registerDocs(app);
  registerPage(app, { root: !hasElasticsearch });
}

function headersOfEveryResponse({ id }: FastifyRequest): Record<string, string> {
  // The files of the page and the documents replace the cache's rule by their own.
  return { 'x-request-id': id, 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' };
}

function connectionOptions({ receiveTimeoutMs, headersTimeoutMs }: ServerConfig): object {
  const headersTimeout = Math.min(headersTimeoutMs, receiveTimeoutMs);
  return {
    ...WITHOUT_HOST_CHECK,
    keepAlive: true,
    keepAliveInitialDelay: TCP_KEEP_ALIVE_AFTER_MS,
    headersTimeout,
    connectionsCheckingInterval: Math.min(CHECK_EVERY_MS, headersTimeout),
  };
}

/** Characters that are safe in a header and a log line. */
const USABLE_ID = /^[\w.:+/=@-]{1,128}$/;

/** The client's own id if it is safe, so that client and server log the same id; else a new id. */
function requestId(request: Pick<IncomingMessage, 'headers'>): string {
  const given = request.headers['x-request-id'];
  return typeof given === 'string' && USABLE_ID.test(given) ? given : randomUUID();
}
