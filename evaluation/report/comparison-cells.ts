import { formatChange, formatCount, formatDuration, formatNumberOf } from '../../src/base/format.ts';
import type { ComparedMetric } from '../compare-evaluations.ts';
import type { Comparison, ComparisonReport } from '../systems/comparison.ts';
import type { ServerReport } from '../systems/searched-system.ts';

/** On what the metrics are measured, if a system failed to answer questions; undefined if none did. */
export function answeredLine({ asked, answered }: ComparisonReport): string | undefined {
  if (answered === asked) return undefined;
  return `All metrics are of the ${formatCount(answered)} of ${formatNumberOf(asked, 'question')} that every system answered.`;
}

/** Percentiles of the latency, and the throughput. */
export function latencyLine({ latencyMs, questionsPerSecond }: ServerReport): string {
  if (latencyMs === null) return 'no request was answered';
  const { p50, p95, p99 } = latencyMs;
  return `latency p50 ${formatDuration(p50)}, p95 ${formatDuration(p95)}, p99 ${formatDuration(p99)}; ${questionsPerSecond.toFixed(1)} questions/s`;
}

/** The metrics of all systems: a row each with its name and the means. The order is that of the first system that has a metric. */
export function meanRows({ systems }: ComparisonReport): string[][] {
  const names = [...new Set(systems.flatMap(({ metrics }) => Object.keys(metrics)))];
  return names.map((name) => [name, ...systems.map(({ metrics }) => metrics[name]?.toFixed(4) ?? '–')]);
}

interface DifferenceRow {
  readonly metric: ComparedMetric;
  /** `name`, and the cells of `head` after the first. */
  readonly cells: readonly [name: string, difference: string, ...others: string[]];
}

/** The differences of two systems: one row per metric. The first cell of the head is empty. */
export function differenceRows({ metrics }: Pick<Comparison, 'metrics'>): {
  readonly head: readonly string[];
  readonly rows: readonly DifferenceRow[];
} {
  const hasTrajectories = Object.values(metrics).some(({ questions }) => questions !== undefined);
  const rows = Object.entries(metrics).map(([name, metric]): DifferenceRow => {
    const { difference, interval, p, better, worse, queries, questions = queries } = metric;
    return {
      metric,
      cells: [
        name,
        formatChange(difference),
        interval === null ? '–' : `${formatChange(interval.low)} … ${formatChange(interval.high)}`,
        p < 0.001 ? '< 0.001' : p.toFixed(3),
        ...[better, worse, ...(hasTrajectories ? [queries, questions] : [queries])].map(formatCount),
      ],
    };
  });
  const counted = hasTrajectories ? ['trajectories', 'questions'] : ['questions'];
  return { head: ['', 'difference', '95 % interval', 'p', 'better', 'worse', ...counted], rows };
}
