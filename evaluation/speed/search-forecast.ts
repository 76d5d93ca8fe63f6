import type { BuildPlan } from '../../indexer/building/plan-build.ts';
import type { UpdatePlan } from '../../indexer/update/plan-update.ts';
import type { TextEncoder } from '../../src/encoder/text-encoder.ts';
import type { Kernel } from '../../src/engine/native/kernel.ts';
import { codesBytes, maxPrefilterBytes } from '../../src/engine/vectors/codes-size.ts';
import { COMPONENTS_SHARE, type SpeedTrial, trySpeed } from './speed-trial.ts';

/** The rows of an index, by how searches read them. */
export interface SearchedRows {
  /** Rows of shards with a prefilter, and the bytes of their prefilters. */
  readonly prefiltered: { readonly rows: number; readonly bytes: number };
  /** Rows of shards without one, and the bytes of their codes. */
  readonly coded: { readonly rows: number; readonly bytes: number };
}

/** The part of `--plan` about searches: expected from a trial, if what they read is in memory. */
export type SearchForecast = NonNullable<Awaited<ReturnType<typeof forecast>>>;

/** With fewer passages a search takes less than a millisecond, and no trial is needed. */
const MIN_FORECAST_ROWS = 10_000;
/** The batches in which a server under load searches. */
const SERVED_BATCH = 64;

interface ForecastRows {
  /** For a plan of a build both, because only the vectors decide whether there is a prefilter; else the one of the index. */
  readonly rows: 'with prefilters' | 'without prefilters' | 'this index';
  readonly searched: SearchedRows;
}

/** The rows of an index that is not built yet, in `shards` equal shards, with and without prefilters. @internal Exported for tests. */
export function plannedRows(
  rows: number,
  { dimension, shards }: { readonly dimension: number; readonly shards: number },
): ForecastRows[] {
  const none = { rows: 0, bytes: 0 };
  const perShard = Math.ceil(rows / Math.max(1, shards));
  const coded = { rows, bytes: shards * codesBytes(perShard, dimension) };
  const without: ForecastRows = { rows: 'without prefilters', searched: { prefiltered: none, coded } };
  if (maxPrefilterBytes(perShard, dimension) === 0) return [without];
  const components = Math.max(64, Math.round((dimension * COMPONENTS_SHARE) / 64) * 64);
  const bytes = shards * (codesBytes(perShard, components) + 4 * components * dimension);
  return [{ rows: 'with prefilters', searched: { prefiltered: { rows, bytes }, coded: none } }, without];
}

interface ForecastMeans {
  readonly kernel?: Kernel;
  readonly encoder?: TextEncoder;
  readonly signal?: AbortSignal;
}

/** Runs the trial and computes from it how fast searches should be; null with fewer passages than MIN_FORECAST_ROWS. */
export async function forecast(
  parts: readonly ForecastRows[],
  dimension: number,
  { kernel, encoder, signal }: ForecastMeans & { readonly kernel: Kernel },
) {
  const indexRows = Math.max(...parts.map(({ searched: { prefiltered, coded } }) => prefiltered.rows + coded.rows));
  if (indexRows < MIN_FORECAST_ROWS) return null;
  const trial = await trySpeed(kernel, { dimension, rows: indexRows }, signal);
  // What an endpoint can do is not a matter of this machine.
  const isLocal = encoder !== undefined && encoder.identity.endpoint === undefined;
  const encoded = isLocal ? await tryEncoder(encoder, signal) : null;
  const expected = parts.map(({ rows, searched }) => {
    const searches = expectedSearch(trial, searched);
    const batch = searches.find(({ queries }) => queries === SERVED_BATCH);
    const queriesPerS =
      encoded === null || batch === undefined ? null : combinedRate(encoded.queriesPerS, batch.queriesPerS);
    /** `queriesPerS`: with many clients, if encoder and engine share the cores; null without an encoder on this machine. */
    return { rows, searches, queriesPerS };
  });
  /** `encoder`: null without an encoder on this machine. */
  return { trial, expected, encoder: encoded };
}

/** The forecast for the planned index. Null without vectors or the native engine, and for few passages. */
export async function buildForecast(
  plan: BuildPlan | UpdatePlan,
  { kernel, encoder, signal }: ForecastMeans,
): Promise<SearchForecast | null> {
  const rows = 'update' in plan ? plan.update.rowsAfter : plan.rows;
  if (kernel === undefined || plan.dimension === 0 || rows === 0) return null;
  const { dimension, shards } = plan;
  return forecast(plannedRows(rows, { dimension, shards: Math.max(1, shards) }), dimension, {
    kernel,
    encoder,
    signal,
  });
}

/** Like the queries of agents: short, with names. */
const QUERIES = [
  'designer of the Eiffel Tower',
  'birthplace of the architect of the Sydney Opera House',
  'when was the treaty that ended the war signed',
  'population of the capital of Iceland in 2010',
  'who directed the 1994 film about the filmmaker Ed Wood',
  'river that flows through the city where the composer was born',
  'first woman to win a Nobel Prize in physics',
  'which band released the album before its singer left',
] as const;
const BATCH = 64;
const LONE_RUNS = 5;
/** Longest time of the batches, in milliseconds. */
const TRIAL_MS = 1_000;

/** How fast an encoder embeds queries on this machine: tries it for about a second, after a first call that is not timed. */
async function tryEncoder(encoder: TextEncoder, signal: AbortSignal | undefined) {
  const encode = async (texts: readonly string[]): Promise<{ ms: number; tokens: number }> => {
    const begun = performance.now();
    const { outcomes } = await encoder.encode(texts, { inputType: 'query', signal });
    const ms = performance.now() - begun;
    return { ms, tokens: outcomes.reduce((sum, outcome) => sum + (outcome.ok ? (outcome.tokens ?? 0) : 0), 0) };
  };
  const varied = (i: number): string => `${QUERIES[i % QUERIES.length]!} ${i}`;
  await encode([varied(0)]);
  let loneMs = Number.POSITIVE_INFINITY;
  for (let i = 1; i <= LONE_RUNS; i++) loneMs = Math.min(loneMs, (await encode([varied(i)])).ms);
  let [queries, ms, tokens] = [0, 0, 0];
  while (ms < TRIAL_MS) {
    const texts = Array.from({ length: BATCH }, (_, i) => varied(queries + i));
    const batch = await encode(texts);
    queries += BATCH;
    ms += batch.ms;
    tokens += batch.tokens;
  }
  return {
    /** Milliseconds of a query that is embedded alone; the fastest of some. */
    loneMs,
    /** Queries a second with many at once. */
    queriesPerS: queries / (ms / 1000),
    tokensPerQuery: tokens / queries,
  };
}

/**
 * The expected time of searches over rows that are in memory: of each part the longer of the time in which the processor scans it, and the
 * time in which its bytes are read once; and the fixed time of a search once. Parts without a cost in the trial count as codes.
 * @internal Exported for tests.
 */
export function expectedSearch(trial: SpeedTrial, { prefiltered, coded }: SearchedRows) {
  return trial.codes.map((codes, i) => {
    const { queries } = codes;
    const prefilter = trial.prefilter?.[i] ?? codes;
    let ms = prefiltered.rows > 0 ? prefilter.fixedMs : codes.fixedMs;
    let [processorMs, memoryMs] = [0, 0];
    for (const [{ msPerRow }, { rows, bytes }] of [
      [prefilter, prefiltered],
      [codes, coded],
    ] as const) {
      const [scanMs, readMs] = [rows * msPerRow, (bytes / trial.readBytesPerS) * 1000];
      ms += Math.max(scanMs, readMs);
      processorMs += scanMs;
      memoryMs += readMs;
    }
    /** What limits the search. */
    const limit = memoryMs > processorMs ? ('memory' as const) : ('processor' as const);
    return { queries, ms, queriesPerS: queries / (ms / 1000), limit };
  });
}

/**
 * The queries a second of a server whose encoder and engine share the same cores, at `queries` queries a batch. Larger than the truth where
 * the HTTP layer or reading passages takes part of the cores. @internal Exported for tests.
 */
export function combinedRate(encodedPerS: number, searchedPerS: number): number {
  return 1 / (1 / encodedPerS + 1 / searchedPerS);
}
