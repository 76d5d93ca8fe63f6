import { setTimeout as sleep } from 'node:timers/promises';
import { throwIfCancelled } from '../src/abort.ts';
import { agreement } from './agreement.ts';

import type { BenchEngine } from './bench-engine.ts';
import { EngineUnavailable } from './script-process.ts';
import { median, percentile, sortedSamples } from './statistics.ts';

/** Exact top-k over one set of rows, for several numbers of queries at once. */
export interface FlatCase {
  readonly rows: number;
  readonly dimension: number;
  readonly dtype: string;
  readonly k: number;
  readonly threads: number;
  /** Timed searches of each engine for each number of queries, after one that is not timed. */
  readonly runs: number;
  readonly queryCounts: readonly number[];
  /** Queries loaded; runs take different ones as far as they reach. */
  readonly queries: number;
}

/** A line of the result; bench/README.md defines the fields. Null: does not apply to this engine. */
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
  /** Idle time before each search. Default 150: threads of BLAS and OpenMP go on spinning for up to some 100 ms. */
  readonly settleMs?: number;
  /** Told when a baseline stops working; its records end there. */
  onLost(engine: string, reason: string): void;
}

interface Measurement {
  readonly ms: number[];
  readonly agreements: number[];
  readonly candidates: number[];
  fullScans: number;
  residentBytes: number;
}

/** @param engines Trawl first: the others are compared with it. */
export async function runFlatCase(
  flatCase: FlatCase,
  engines: readonly BenchEngine[],
  context: FlatRunContext,
): Promise<FlatRecord[]> {
  const records: FlatRecord[] = [];
  let running = engines;
  for (const count of flatCase.queryCounts) {
    const measured = await measure(flatCase, running, count, context);
    running = running.filter((engine) => measured.has(engine));
    for (const engine of running) {
      records.push(recordOf(flatCase, engine, count, measured.get(engine)!, measured.get(running[0]!)!));
    }
  }
  return records;
}

/** Every engine in turn, and again for every run, so that what disturbs the machine disturbs all. */
async function measure(
  { runs, k, queries }: FlatCase,
  engines: readonly BenchEngine[],
  count: number,
  { signal, settleMs = 150, onLost }: FlatRunContext,
): Promise<Map<BenchEngine, Measurement>> {
  const measured = new Map<BenchEngine, Measurement>(
    engines.map((engine) => [engine, { ms: [], agreements: [], candidates: [], fullScans: 0, residentBytes: 0 }]),
  );
  /** Runs what may end a baseline; a baseline that ends is measured no more. */
  const guarded = async (engine: BenchEngine, ask: () => Promise<void>): Promise<void> => {
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
    let ours: Awaited<ReturnType<BenchEngine['search']>> | undefined;
    for (const [engine, measurement] of measured) {
      throwIfCancelled(signal);
      await sleep(settleMs);
      await guarded(engine, async () => {
        const answer = await engine.search(first, count, k);
        ours ??= answer;
        // The first is the warm-up.
        if (run < 0) return;
        measurement.ms.push(answer.ms);
        measurement.agreements.push(agreement(ours, answer, count, k));
        if (answer.candidates !== undefined) measurement.candidates.push(...Array.from(answer.candidates));
        measurement.fullScans += answer.fullScans ?? 0;
      });
    }
  }
  for (const [engine, measurement] of measured) {
    await guarded(engine, async () => {
      measurement.residentBytes = await engine.residentBytes();
    });
  }
  return measured;
}

function recordOf(
  { rows, dimension, dtype, k, threads, runs }: FlatCase,
  engine: BenchEngine,
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
