import { packageVersion } from '../../src/base/package-root.ts';
import type { RequestTracer } from '../../src/server/tracing/tracer.ts';
import type { ServeOptions } from './serve-settings.ts';
import type { ServerLog } from './server-log.ts';

/** How often a failure to send traces is reported, in milliseconds. */
const TRACE_FAILURE_EVERY_MS = 60_000;

/** The tracer of `--trace-to`; undefined without it. Failures are logged once a minute. */
export async function openTracer(
  { 'trace-to': endpoint, 'trace-every': every }: ServeOptions,
  log: ServerLog | undefined,
  note: (text: string) => void,
): Promise<RequestTracer | undefined> {
  if (endpoint === undefined) return undefined;
  const { openOtlpTracer } = await import('../../src/server/tracing/otlp-tracer.ts');
  let reportedAt = Number.NEGATIVE_INFINITY;
  return openOtlpTracer({
    endpoint,
    share: 1 / every,
    version: packageVersion,
    onFailure(reason) {
      if (performance.now() - reportedAt < TRACE_FAILURE_EVERY_MS) return;
      reportedAt = performance.now();
      if (log === undefined) note(`--trace-to: traces are lost: ${reason}`);
      else log.logger.warn({ reason, collector: endpoint }, 'traces are lost');
    },
  });
}
