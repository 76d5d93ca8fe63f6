import type { BuildPlan } from '../../indexer/building/plan-build.ts';
import type { UpdatePlan } from '../../indexer/update/plan-update.ts';
import type { TextEncoder } from '../../src/encoder/text-encoder.ts';
import type { Kernel } from '../../src/engine/native/kernel.ts';
import { codesBytes, maxPrefilterBytes } from '../../src/engine/vectors/codes-size.ts';
import { type EncoderTrial, tryEncoder } from './encoder-trial.ts';
import { combinedRate, type ExpectedSearch, expectedSearch, type SearchedRows } from './expected-search.ts';
import { type SpeedTrial, trySpeed } from './speed-trial.ts';

/** The part of `--plan` about searches: expected from a trial, if what they read is in memory. */
export interface SearchForecast {
  readonly trial: SpeedTrial;
  /** For a plan of a build both, because only the vectors decide whether there is a prefilter; else the one of the index. */
  readonly expected: readonly {
    readonly rows: 'with prefilters' | 'without prefilters' | 'this index';
    readonly searches: readonly ExpectedSearch[];
    /** Queries a second with many clients, if encoder and engine share the cores; null without an encoder on this machine. */
    readonly queriesPerS: number | null;
  }[];
  /** Null without an encoder on this machine. */
  readonly encoder: EncoderTrial | null;
}

/** With fewer passages a search takes less than a millisecond, and no trial is needed. */
const MIN_FORECAST_ROWS = 10_000;
/** Of 768 principal components a prefilter of E5's vectors keeps 320. */
const COMPONENTS_SHARE = 320 / 768;
/** The batches in which a server under load searches. */
const SERVED_BATCH = 64;

/** The rows of an index that is not built yet, in `shards` equal shards, with and without prefilters. */
export function plannedRows(
  rows: number,
  { dimension, shards }: { readonly dimension: number; readonly shards: number },
): { readonly rows: SearchForecast['expected'][number]['rows']; readonly searched: SearchedRows }[] {
  const none = { rows: 0, bytes: 0 };
  const perShard = Math.ceil(rows / Math.max(1, shards));
  const coded = { rows, bytes: shards * codesBytes(perShard, dimension) };
  const without = { rows: 'without prefilters', searched: { prefiltered: none, coded } } as const;
  if (maxPrefilterBytes(perShard, dimension) === 0) return [without];
  const components = Math.max(64, Math.round((dimension * COMPONENTS_SHARE) / 64) * 64);
  const bytes = shards * (codesBytes(perShard, components) + 4 * components * dimension);
  return [{ rows: 'with prefilters', searched: { prefiltered: { rows, bytes }, coded: none } }, without];
}

/** Runs the trial and computes from it how fast searches should be; null with fewer passages than MIN_FORECAST_ROWS. */
export async function forecast(
  parts: ReturnType<typeof plannedRows> | readonly { readonly rows: 'this index'; readonly searched: SearchedRows }[],
  {
    dimension,
    kernel,
    encoder,
    signal,
  }: {
    readonly dimension: number;
    readonly kernel: Kernel;
    readonly encoder: TextEncoder | undefined;
    readonly signal: AbortSignal | undefined;
  },
): Promise<SearchForecast | null> {
  const indexRows = Math.max(...parts.map(({ searched: { prefiltered, coded } }) => prefiltered.rows + coded.rows));
  if (indexRows < MIN_FORECAST_ROWS) return null;
  const trial = await trySpeed(kernel, { dimension, rows: indexRows }, signal);
  const encoded = encoder === undefined ? null : await tryEncoder(encoder, signal);
  const expected = parts.map(({ rows, searched }) => {
    const searches = expectedSearch(trial, searched);
    const batch = searches.find(({ queries }) => queries === SERVED_BATCH);
    const queriesPerS =
      encoded === null || batch === undefined ? null : combinedRate(encoded.queriesPerS, batch.queriesPerS);
    return { rows, searches, queriesPerS };
  });
  return { trial, expected, encoder: encoded };
}

/** Searches of the planned index. Null without vectors or the native engine, and for few passages. */
export async function buildForecast(
  plan: BuildPlan | UpdatePlan,
  {
    kernel,
    encoder,
    signal,
  }: {
    readonly kernel?: Kernel;
    readonly encoder?: TextEncoder;
    readonly signal?: AbortSignal;
  },
): Promise<SearchForecast | null> {
  const rows = 'update' in plan ? plan.update.rowsAfter : plan.rows;
  if (kernel === undefined || plan.dimension === 0 || rows === 0) return null;
  const { dimension, shards } = plan;
  // What an endpoint can do is not a matter of this machine.
  const local = encoder?.identity.endpoint === undefined ? encoder : undefined;
  const parts = plannedRows(rows, { dimension, shards: Math.max(1, shards) });
  return forecast(parts, { dimension, kernel, encoder: local, signal });
}
