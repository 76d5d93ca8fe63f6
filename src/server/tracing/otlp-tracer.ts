import type { TracerProvider as ApiProvider, Context, Tracer } from '@opentelemetry/api';
import type { SpanExporter } from '@opentelemetry/sdk-trace';
import { TrawlError } from '../../base/errors.ts';
import { importOptional } from '../../base/system/optional-package.ts';
import type { RequestSpan, RequestTracer } from './tracer.ts';

/** What Trawl uses of OpenTelemetry, which is not installed with it (28 MB). */
const PACKAGES = [
  '@opentelemetry/api',
  '@opentelemetry/core',
  '@opentelemetry/resources',
  '@opentelemetry/sdk-trace',
  '@opentelemetry/exporter-trace-otlp-http',
] as const;
/** Spans that wait to be sent; further ones are lost. */
const QUEUE_SPANS = 16_384;
const BATCH_SPANS = 512;
const SEND_EVERY_MS = 1_000;
/** Time limit of a request to the collector, and of the last requests at the end, in milliseconds. */
const SEND_MS = 5_000;

export interface OtlpTracerOptions {
  /** The collector's address without `/v1/traces`: `http://127.0.0.1:4318`. */
  readonly endpoint: string;
  /** The share of the requests without a traced parent that are traced, 0 to 1. With `traceparent`, its flag decides. */
  readonly share: number;
  readonly version: string;
  /** Called when spans could not be sent, with the reason. */
  readonly onFailure: (reason: string) => void;
}

/**
 * Sends traces as OTLP over HTTP (https://opentelemetry.io/docs/specs/otlp/). The variables OTEL_EXPORTER_OTLP_HEADERS,
 * OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES apply. The only door to OpenTelemetry's packages.
 *
 * @throws TrawlError CONFIG_INVALID if the address is not one of HTTP, PACKAGE_MISSING.
 */
export async function openOtlpTracer(options: OtlpTracerOptions): Promise<RequestTracer> {
  const url = tracesUrl(options.endpoint);
  const { api, core, provider } = await openProvider(url, options);
  const tracer = (provider as ApiProvider).getTracer('trawl', options.version);
  const propagator = new core.W3CTraceContextPropagator();
  return {
    trace(request) {
      const parent = propagator.extract(api.ROOT_CONTEXT, request.headers, api.defaultTextMapGetter);
      recordSpans(tracer, parent, request, api);
    },
    async close() {
      // The shutdown fails if the collector does not answer: those spans are lost, and the failure was reported.
      await provider.shutdown().catch(() => undefined);
    },
  };
}

/** @throws TrawlError CONFIG_INVALID. */
function tracesUrl(endpoint: string): string {
  if (!/^https?:$/.test(URL.parse(endpoint)?.protocol ?? '')) {
    throw new TrawlError(
      'CONFIG_INVALID',
      `The address of the collector is ${JSON.stringify(endpoint)}; expected an http or https URL, such as http://127.0.0.1:4318.`,
    );
  }
  return `${endpoint.replace(/\/+$/, '')}/v1/traces`;
}

async function openProvider(url: string, { share, version, onFailure }: OtlpTracerOptions) {
  const { api, core, resources, sdk, exporters } = await loadPackages();
  const exporter = reporting(new exporters.OTLPTraceExporter({ url, timeoutMillis: SEND_MS }), onFailure);
  const fromEnvironment = resources.detectResources({ detectors: [resources.envDetector] });
  const provider = new sdk.TracerProvider({
    resource: resources
      .resourceFromAttributes({ 'service.name': 'trawl', 'service.version': version })
      .merge(fromEnvironment),
    sampler: new sdk.ParentBasedSampler({ root: new sdk.TraceIdRatioBasedSampler(share) }),
    spanProcessors: [
      new sdk.BatchSpanProcessor({
        exporter,
        maxQueueSize: QUEUE_SPANS,
        maxExportBatchSize: BATCH_SPANS,
        scheduledDelayMillis: SEND_EVERY_MS,
        exportTimeoutMillis: SEND_MS,
      }),
    ],
  });
  return { api, core, provider };
}

/** The exporter, which also reports spans that it could not send. */
function reporting(exporter: SpanExporter, onFailure: (reason: string) => void): SpanExporter {
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        if (result.error !== undefined) onFailure(result.error.message);
        done(result);
      }),
    forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
    shutdown: () => exporter.shutdown(),
  };
}

/**
 * The span of the request, and below it one for each stage that took time. The server measures how long the stages take, not when
 * they begin: they are placed one after another from the arrival of the request.
 */
function recordSpans(
  tracer: Tracer,
  parent: Context,
  { name, startedAt, ms, status, attributes, stages }: RequestSpan,
  { trace, SpanKind, SpanStatusCode }: typeof import('@opentelemetry/api'),
): void {
  const span = tracer.startSpan(name, { kind: SpanKind.SERVER, startTime: startedAt, attributes }, parent);
  if (span.isRecording()) {
    const within = trace.setSpan(parent, span);
    let at = startedAt;
    for (const stage of stages) {
      if (stage.ms <= 0) continue;
      tracer.startSpan(stage.name, { startTime: at }, within).end(at + stage.ms);
      at += stage.ms;
    }
    // OpenTelemetry's rule for servers: a refused request is not an error of the server.
    if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
  }
  span.end(startedAt + ms);
}

/** @throws TrawlError PACKAGE_MISSING. */
async function loadPackages() {
  const [api, core, resources, sdk, exporters] = (await importOptional(
    PACKAGES,
    "Traces need OpenTelemetry's packages",
  )) as [
    typeof import('@opentelemetry/api'),
    typeof import('@opentelemetry/core'),
    typeof import('@opentelemetry/resources'),
    typeof import('@opentelemetry/sdk-trace'),
    typeof import('@opentelemetry/exporter-trace-otlp-http'),
  ];
  return { api, core, resources, sdk, exporters };
}
