import { setTimeout as sleep } from 'node:timers/promises';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { median, percentile, sortedSamples } from '../../src/base/statistics.ts';
import { EngineUnavailable } from '../script-process.ts';
import { agreement } from './agreement.ts';
import type { FlatEngine } from './flat-engine.ts';

/** The most queries at once with which an engine is measured; engines without an entry always are. */
export type MostQueries = Readonly<Partial<Record<FlatEngine['name'], number>>>;

/** Exact top-k over one set of rows, for several batch sizes. */
export interface FlatCase {
  readonly rows: number;
  readonly dimension: number;
  readonly dtype: string;
  readonly k: number;
  readonly threads: number;
  /** Timed searches of each engine for each batch size, after a warm-up. */
  readonly runs: number;
  /** Queries per search: the batch sizes. */
  readonly queryCounts: readonly number[];
  readonly mostQueries?: MostQueries;
  /** Number of loaded queries. Each run uses different ones if there are enough. */
  readonly queries: number;
}

/** The result of an engine; bench/search.md defines the fields. Null: does not apply to this engine. */
export interface FlatRecord {
  readonly case: string;
  readonly engine: string;
  readonly version: string;
  readonly rows: number;
  readonly dimension: number;
  readonly dtype: string;
  readonly k: number;
  readonly queries: number;
  readonly threads: number;
  readonly runs: number;
  readonly medianMs: number;
  readonly p95Ms: number;
  readonly dotsPerS: number;
  readonly ratioToTrawl: number;
  readonly candidatesMedian: number | null;
  readonly candidatesP95: number | null;
  readonly candidatesMax: number | null;
  readonly fullScans: number | null;
  readonly residentBytes: number;
  readonly agreement: number | null;
}

export interface FlatRunContext {
  readonly signal: AbortSignal;
  /** Pause before each search. Default 150: threads of BLAS and OpenMP spin for up to 100 ms after their work. */
  readonly pauseMs?: number;
  /** Called when a baseline stops working. It gets no further records. */
  onLost(engine: string, reason: string): void;
  /** Called with each step that has been measured. */
  onStep(step: string): void;
}

interface Measurement {
  readonly ms: number[];
  readonly agreements: number[];
  readonly candidates: number[];
  fullScans: number;
  residentBytes: number;
}

/** @param engines Trawl first; the others are compared with it. */
export async function runFlatCase(
  flatCase: FlatCase,
  engines: readonly FlatEngine[],
  context: FlatRunContext,
): Promise<FlatRecord[]> {
  const records: FlatRecord[] = [];
  let running = engines;
  for (const count of flatCase.queryCounts) {
    const asked = running.filter(({ name }) => count <= (flatCase.mostQueries?.[name] ?? count));
    const measured = await measure(flatCase, asked, count, context);
    context.onStep(`searches of ${count} ${count === 1 ? 'query' : 'queries'}`);
    running = running.filter((engine) => measured.has(engine) || !asked.includes(engine));
    for (const [engine, measurement] of measured) {
      records.push(recordOf(flatCase, engine, count, measurement, measured.get(running[0]!)!));
    }
  }
  return records;
}

/** Each run measures every engine, so that other work on the machine slows all of them alike. */
async function measure(
  { runs, k, queries }: FlatCase,
  engines: readonly FlatEngine[],
  count: number,
  { signal, pauseMs = 150, onLost }: FlatRunContext,
): Promise<Map<FlatEngine, Measurement>> {
  const measured = new Map<FlatEngine, Measurement>(
    engines.map((engine) => [engine, { ms: [], agreements: [], candidates: [], fullScans: 0, residentBytes: 0 }]),
  );
  /** Calls `ask`. If the baseline stops working, it is no longer measured. */
  const orDropped = async (engine: FlatEngine, ask: () => Promise<void>): Promise<void> => {
    try {
      await ask();
    } catch (error) {
      if (!(error instanceof EngineUnavailable)) throw error;
      onLost(engine.name, error.message);
      measured.delete(engine);
    }
  };
  for (let run = -1; run < runs; run++) {
    const first = ((run + 1) * count) % (queries - count + 1);
    let trawlAnswer: Awaited<ReturnType<FlatEngine['search']>> | undefined;
    for (const [engine, measurement] of measured) {
      throwIfCancelled(signal);
      await sleep(pauseMs);
      await orDropped(engine, async () => {
        const answer = await engine.search(first, count, k);
        trawlAnswer ??= answer;
        // Run -1 is the warm-up.
        if (run < 0) return;
        measurement.ms.push(answer.ms);
        measurement.agreements.push(agreement(trawlAnswer, answer, count, k));
        if (answer.candidates !== undefined) measurement.candidates.push(...Array.from(answer.candidates));
        measurement.fullScans += answer.fullScans ?? 0;
      });
    }
  }
  for (const [engine, measurement] of measured) {
    await orDropped(engine, async () => {
      measurement.residentBytes = await engine.residentBytes();
    });
  }
  return measured;
}

function recordOf(
  { rows, dimension, dtype, k, threads, runs }: FlatCase,
  engine: FlatEngine,
  queries: number,
  { ms, agreements, candidates, fullScans, residentBytes }: Measurement,
  trawl: Measurement,
): FlatRecord {
  const samples = sortedSamples(ms);
  const medianMs = median(samples);
  const rescored = candidates.length === 0 ? undefined : sortedSamples(candidates);
  return {
    case: `flat/${rows}x${dimension}/${dtype}/k${k}/q${queries}`,
    engine: engine.name,
    version: engine.version,
    rows,
    dimension,
    dtype,
    k,
    queries,
    threads,
    runs,
    medianMs,
    p95Ms: percentile(samples, 95),
    dotsPerS: (queries * rows) / (medianMs / 1000),
    ratioToTrawl: medianMs / median(sortedSamples(trawl.ms)),
    candidatesMedian: rescored === undefined ? null : median(rescored),
    candidatesP95: rescored === undefined ? null : percentile(rescored, 95),
    candidatesMax: rescored === undefined ? null : percentile(rescored, 100),
    fullScans: rescored === undefined ? null : fullScans,
    residentBytes,
    agreement: engine.name === 'trawl' ? null : agreements.reduce((sum, share) => sum + share, 0) / agreements.length,
  };
}
