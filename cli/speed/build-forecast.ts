import type { BuildPlan } from '../../indexer/building/plan-build.ts';
import type { UpdatePlan } from '../../indexer/update/plan-update.ts';
import type { TextEncoder } from '../../src/encoder/text-encoder.ts';
import type { Kernel } from '../../src/engine/native/kernel.ts';
import { forecast, plannedRows, type SearchForecast } from '../../evaluation/speed/search-forecast.ts';

/** Searches of the planned index. Null without vectors or the native engine, and for few passages. */
export async function buildForecast(
  plan: BuildPlan | UpdatePlan,
  {
    kernel,
    encoder,
    signal,
  }: {
    readonly kernel?: Kernel | undefined;
    readonly encoder?: TextEncoder | undefined;
    readonly signal?: AbortSignal | undefined;
  },
): Promise<SearchForecast | null> {
  const rows = 'update' in plan ? plan.update.rowsAfter : plan.rows;
  if (kernel === undefined || plan.dimension === 0 || rows === 0) return null;
  const { dimension, shards } = plan;
  // What an endpoint can do is not a matter of this machine.
  const local = encoder?.identity.endpoint === undefined ? encoder : undefined;
  return forecast(plannedRows(rows, { dimension, shards: Math.max(1, shards) }), {
    dimension,
    kernel,
    encoder: local,
    signal,
  });
}
