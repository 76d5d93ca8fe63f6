import { setTimeout as sleep } from 'node:timers/promises';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { median, percentile, sortedSamples } from '../../src/base/statistics.ts';
import { EngineUnavailable } from '../script-process.ts';
import type { EmbedEngine, TimedEncoding } from './embed-engine.ts';
import { type EncoderShape, operations } from './encoder-operations.ts';

export interface EmbedCase {
  readonly threads: number;
  /** Timed encodings of all passages by each engine, after a warm-up. */
  readonly runs: number;
  readonly passages: number;
  /** Queries that each run encodes one by one. */
  readonly queriesPerRun: number;
  /** Texts in a batch of the baseline. */
  readonly batch: number;
  /** Null: unknown, so operations are not counted. */
  readonly shape: EncoderShape | null;
}

/** The result of an engine; bench/encoder.md defines the fields. Null: unknown. */
export interface EmbedRecord {
  readonly case: 'embed';
  readonly engine: string;
  readonly precision: string;
  readonly version: string;
  readonly texts: number;
  readonly tokens: number;
  readonly threads: number;
  readonly runs: number;
  readonly medianMs: number;
  readonly fastestMs: number;
  readonly p95Ms: number;
  readonly textsPerS: number;
  readonly tokensPerS: number;
  readonly ratioToBaseline: number | null;
  readonly gflopPerS: number | null;
  readonly queryP50Ms: number;
  readonly queryP99Ms: number;
  readonly residentBytes: number;
  readonly cosineToBaseline: number | null;
}

export interface EmbedRunContext {
  readonly signal: AbortSignal;
  /** Pause before each measurement. Default 150, as in flat-case.ts: threads of OpenMP spin after their work. */
  readonly pauseMs?: number;
  /** Called when a baseline stops working. It gets no record. */
  onLost(engine: string, reason: string): void;
  /** Called with each step that has been measured. */
  onStep(step: string): void;
}

const WARM_UP_TEXTS = 32;
const WARM_UP_QUERIES = 5;
/** Passages whose vectors are compared with the baseline's. */
const COMPARED_TEXTS = 32;

interface Measurement {
  readonly encodings: TimedEncoding[];
  readonly queryMs: number[];
  residentBytes: number;
  vectors: readonly number[];
}

/** Each run measures every engine, so that other work on the machine slows all of them alike. */
export async function runEmbedCase(
  embedCase: EmbedCase,
  engines: readonly EmbedEngine[],
  { signal, pauseMs = 150, onLost, onStep }: EmbedRunContext,
): Promise<EmbedRecord[]> {
  const { runs, passages, queriesPerRun } = embedCase;
  const measured = new Map<EmbedEngine, Measurement>(
    engines.map((engine) => [engine, { encodings: [], queryMs: [], residentBytes: 0, vectors: [] }]),
  );
  /** Calls `ask` for each engine. A baseline that stops working is no longer measured. */
  const forEachEngine = async (
    ask: (engine: EmbedEngine, measurement: Measurement) => Promise<void>,
  ): Promise<void> => {
    for (const [engine, measurement] of measured) {
      throwIfCancelled(signal);
      await sleep(pauseMs);
      try {
        await ask(engine, measurement);
      } catch (error) {
        throwIfCancelled(signal);
        if (!(error instanceof EngineUnavailable) || engine.name === 'trawl') throw error;
        onLost(engine.name, error.message);
        measured.delete(engine);
      }
    }
  };
  await forEachEngine(async (engine, measurement) => {
    await engine.encode(0, Math.min(passages, WARM_UP_TEXTS));
    await engine.query(0, Math.min(queriesPerRun, WARM_UP_QUERIES));
    measurement.vectors = await engine.vectors(Math.min(passages, COMPARED_TEXTS));
    await engine.residentBytes();
  });
  for (let run = 0; run < runs; run++) {
    await forEachEngine(async (engine, { encodings }) => {
      encodings.push(await engine.encode(0, passages));
    });
    await forEachEngine(async (engine, { queryMs }) => {
      queryMs.push(...(await engine.query(run * queriesPerRun, queriesPerRun)));
    });
    onStep(`run ${run + 1} of ${runs}`);
  }
  await forEachEngine(async (engine, measurement) => {
    measurement.residentBytes = await engine.residentBytes();
  });
  const baseline = [...measured].find(([engine]) => engine.name !== 'trawl')?.[1];
  return Array.from(measured, ([engine, measurement]) => recordOf(embedCase, engine, measurement, baseline));
}

function recordOf(
  { passages, threads, runs, shape }: EmbedCase,
  engine: EmbedEngine,
  measurement: Measurement,
  baseline: Measurement | undefined,
): EmbedRecord {
  const times = sortedSamples(measurement.encodings.map(({ ms }) => ms));
  const queryTimes = sortedSamples(measurement.queryMs);
  const medianMs = median(times);
  const { tokens, squaredTokens } = measurement.encodings[0]!;
  const baselineMs = baseline === undefined ? null : median(sortedSamples(baseline.encodings.map(({ ms }) => ms)));
  return {
    case: 'embed',
    engine: engine.name,
    precision: engine.precision,
    version: engine.version,
    texts: passages,
    tokens,
    threads,
    runs,
    medianMs,
    fastestMs: times[0],
    p95Ms: percentile(times, 95),
    textsPerS: passages / (medianMs / 1000),
    tokensPerS: tokens / (medianMs / 1000),
    ratioToBaseline: baselineMs === null ? null : baselineMs / medianMs,
    gflopPerS: shape === null ? null : operations(shape, tokens, squaredTokens) / medianMs / 1e6,
    queryP50Ms: median(queryTimes),
    queryP99Ms: percentile(queryTimes, 99),
    residentBytes: measurement.residentBytes,
    cosineToBaseline:
      baseline === undefined || baseline === measurement
        ? null
        : smallestCosine(measurement.vectors, baseline.vectors, Math.min(passages, COMPARED_TEXTS)),
  };
}

/**
 * The smallest cosine between row i of `vectors` and row i of `others`, row-major. Null if their dimensions differ.
 *
 * @internal Exported for tests.
 */
export function smallestCosine(vectors: readonly number[], others: readonly number[], rows: number): number | null {
  if (vectors.length !== others.length) return null;
  const width = vectors.length / rows;
  let smallest = 1;
  for (let row = 0; row < rows; row++) {
    let [product, squares, otherSquares] = [0, 0, 0];
    for (let at = row * width; at < (row + 1) * width; at++) {
      product += vectors[at]! * others[at]!;
      squares += vectors[at]! ** 2;
      otherSquares += others[at]! ** 2;
    }
    smallest = Math.min(smallest, product / Math.sqrt(squares * otherSquares));
  }
  return smallest;
}
