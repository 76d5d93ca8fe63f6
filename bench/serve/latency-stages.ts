import { type LoadResult, SERVER_STAGES } from './load-plan.ts';

/** What the latency of requests consists of, at some percentiles. */
export interface LatencyStages {
  /** The stages of the server, and last `rest`: the connection, and what the client waits for outside of the server's handler. */
  readonly names: readonly string[];
  readonly percentiles: readonly {
    readonly percent: number;
    /** Mean times of the stages, in milliseconds, in the order of `names`. */
    readonly ms: readonly number[];
  }[];
}

const PERCENTILES = [50, 90, 99] as const;
/** The stages at a percentile are means over the requests within this share of all requests around it. */
const NEIGHBOURS = 0.02;

/**
 * The stages of requests whose latency is near a percentile. The percentiles of single stages would not add up to that of the latency,
 * because the slowest requests of one stage are not those of another. Null if a request was answered without stages.
 */
export function latencyStages(results: readonly Pick<LoadResult, 'latenciesMs' | 'stagesMs'>[]): LatencyStages | null {
  const requests = results.flatMap(({ latenciesMs, stagesMs }) =>
    latenciesMs.map((latency, i) => ({ latency, stages: stagesMs[i] })),
  );
  if (requests.length === 0 || requests.some(({ stages }) => stages === undefined)) return null;
  requests.sort((a, b) => a.latency - b.latency);
  const around = Math.floor(requests.length * NEIGHBOURS);
  const percentiles = PERCENTILES.map((percent) => {
    const at = Math.round(((requests.length - 1) * percent) / 100);
    const near = requests.slice(Math.max(0, at - around), at + around + 1);
    const ms = SERVER_STAGES.map((_, stage) => mean(near.map(({ stages }) => stages![stage]!)));
    const rest = mean(near.map(({ latency }) => latency)) - ms.reduce((sum, value) => sum + value, 0);
    return { percent, ms: [...ms, Math.max(0, rest)] };
  });
  return { names: [...SERVER_STAGES, 'rest'], percentiles };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
