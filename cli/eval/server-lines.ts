import { formatCount, formatDuration, formatNumberOf, printable } from '../../src/base/format.ts';
import type { SearchedSystem, ServerReport } from '../../evaluation/systems/searched-system.ts';

/** How a server was asked, how fast it answered, and what failed. Empty for other systems. */
export function serverLines({ server, what }: SearchedSystem): string[] {
  if (server === undefined) return [];
  const { concurrency, queriesPerRequest, requests, repeated, matchedBy, failures } = server;
  const matched = {
    id: 'matched by id',
    text: "matched by the relevant passages' texts",
    none: 'not matched with judged passages',
  };
  return [
    `${printable(what)}: ${formatNumberOf(requests, 'request')} of ${queriesPerRequest === 1 ? '1 query' : `up to ${queriesPerRequest} queries`}, ` +
      `${formatCount(concurrency)} at a time, ${formatCount(repeated)} repeated; ${matched[matchedBy ?? 'none']}`,
    latencyLine(server),
    ...Object.entries(failures).map(
      ([reason, count]) => `failed: ${formatNumberOf(count, 'search').replace(/hs$/, 'hes')}, ${printable(reason)}`,
    ),
  ];
}

/** Percentiles of the latency, and the throughput. */
export function latencyLine({ latencyMs, questionsPerSecond }: ServerReport): string {
  if (latencyMs === null) return 'no request was answered';
  const { p50, p95, p99 } = latencyMs;
  return `latency p50 ${formatDuration(p50)}, p95 ${formatDuration(p95)}, p99 ${formatDuration(p99)}; ${questionsPerSecond.toFixed(1)} questions/s`;
}
