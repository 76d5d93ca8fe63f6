import { setTimeout as sleep } from 'node:timers/promises';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { median, percentile, sortedSamples } from '../../src/base/statistics.ts';
import { EngineUnavailable } from '../script-process.ts';
import type { LexicalEngine, QueryFiles } from './lexical-engine.ts';
import type { Hits } from './text-file.ts';

/** One list of queries over one corpus, with one k and one number of threads. */
export interface LexicalCase {
  readonly corpus: string;
  readonly queries: QueryFiles;
  readonly k: number;
  readonly threads: number;
  /** Timed rounds of each engine, after the warm-up. */
  readonly runs: number;
  /** Time limit of a pass over the queries. */
  readonly limitMs: number;
}

/** The search figures of an engine; bench/bm25.md defines the fields. Null: does not apply to this engine. */
export interface LexicalRecord {
  readonly case: string;
  readonly engine: string;
  readonly version: string;
  readonly k: number;
  readonly threads: number;
  readonly runs: number;
  readonly queries: number;
  readonly loneQueries: number | null;
  readonly meanMs: number | null;
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
  readonly queriesPerS: number;
  readonly ratioToTrawl: number;
  readonly analysisMs: number | null;
  readonly postingsReadShare: number | null;
  readonly agreement: number | null;
}

export interface LexicalRunContext {
  readonly signal: AbortSignal;
  /** Pause before each pass. Default 50. */
  readonly pauseMs?: number;
  /** Called when a baseline stops working. It has no further records. */
  onLost(engine: string, reason: string): void;
}

interface Measurement {
  analysisMs: number | null;
  /** Mean of each pass, and all times. */
  readonly means: number[];
  readonly times: number[];
  readonly queriesPerS: number[];
  postings: { all: number; read: number } | undefined;
  answer: readonly Hits[];
}

/** Rounds that are not timed: Java compiles its hot code in them. */
const WARM_UP_ROUNDS = 3;
/** Limit of a pass in the warm-up. */
const WARM_UP_LIMIT_MS = 2_000;

/** @param engines Trawl first; the others are compared with it. An engine that is lost is left out of the records. */
export async function runLexicalCase(
  lexicalCase: LexicalCase,
  engines: readonly LexicalEngine[],
  context: LexicalRunContext,
): Promise<LexicalRecord[]> {
  const measured = await measure(lexicalCase, engines, context);
  const trawl = measured.get(engines[0]!)!;
  return Array.from(measured, ([engine, measurement]) => recordOf(lexicalCase, engine, measurement, trawl));
}

/** Each round measures every engine, so that other work on the machine disturbs all of them. */
async function measure(
  { queries, k, threads, runs, limitMs }: LexicalCase,
  engines: readonly LexicalEngine[],
  { signal, pauseMs = 50, onLost }: LexicalRunContext,
): Promise<Map<LexicalEngine, Measurement>> {
  const measured = new Map<LexicalEngine, Measurement>();
  /** If `ask` ends a baseline, the baseline is left out from then on. */
  const orDropped = async (engine: LexicalEngine, ask: () => Promise<void>): Promise<void> => {
    throwIfCancelled(signal);
    try {
      await ask();
    } catch (error) {
      if (!(error instanceof EngineUnavailable)) throw error;
      onLost(engine.name, error.message);
      measured.delete(engine);
    }
  };
  for (const engine of engines) {
    const measurement = { analysisMs: null, means: [], times: [], queriesPerS: [], postings: undefined, answer: [] };
    measured.set(engine, measurement);
    await orDropped(engine, async () => {
      measured.get(engine)!.analysisMs = await engine.useQueries(queries);
    });
  }
  for (let round = -WARM_UP_ROUNDS; round < runs; round++) {
    const isTimed = round >= 0;
    const limit = isTimed ? limitMs : Math.min(limitMs, WARM_UP_LIMIT_MS);
    for (const [engine, measurement] of measured) {
      await orDropped(engine, async () => {
        // Only Trawl searches for one query with several threads.
        if (threads === 1 || engine.name === 'trawl') {
          await sleep(pauseMs);
          const times = await engine.lone(k, threads, limit);
          if (isTimed) {
            measurement.times.push(...times);
            measurement.means.push(times.reduce((sum, ms) => sum + ms, 0) / times.length);
          } else {
            measurement.answer = await engine.answer();
          }
        }
        await sleep(pauseMs);
        const { queries: done, ms, postings } = await engine.batch(k, threads, limit);
        measurement.postings = postings;
        if (isTimed) measurement.queriesPerS.push(done / (ms / 1000));
      });
    }
  }
  return measured;
}

function recordOf(
  { corpus, queries, k, threads, runs }: LexicalCase,
  engine: LexicalEngine,
  { analysisMs, means, times, queriesPerS, postings, answer }: Measurement,
  trawl: Measurement,
): LexicalRecord {
  const samples = times.length === 0 ? undefined : sortedSamples(times);
  const speed = median(sortedSamples(queriesPerS));
  return {
    case: `bm25/${corpus}/${queries.name}/k${k}/t${threads}`,
    engine: engine.name,
    version: engine.version,
    k,
    threads,
    runs,
    queries: queries.queries.length,
    loneQueries: samples === undefined ? null : samples.length,
    meanMs: samples === undefined ? null : median(sortedSamples(means)),
    p50Ms: samples === undefined ? null : median(samples),
    p99Ms: samples === undefined ? null : percentile(samples, 99),
    queriesPerS: speed,
    ratioToTrawl: median(sortedSamples(trawl.queriesPerS)) / speed,
    analysisMs: analysisMs === null ? null : analysisMs / queries.queries.length,
    postingsReadShare: postings === undefined || postings.all === 0 ? null : postings.read / postings.all,
    agreement: engine.name === 'trawl' || samples === undefined ? null : agreement(trawl.answer, answer),
  };
}

/**
 * Share of the queries with the same rows and score bits; of those that both engines answered.
 *
 * @internal Exported for tests.
 */
export function agreement(ours: readonly Hits[], theirs: readonly Hits[]): number | null {
  const count = Math.min(ours.length, theirs.length);
  if (count === 0) return null;
  let same = 0;
  for (let q = 0; q < count; q++) {
    const [a, b] = [ours[q]!, theirs[q]!];
    const isSame =
      a.rows.length === b.rows.length &&
      a.rows.every((row, i) => row === b.rows[i] && a.scoreBits[i] === b.scoreBits[i]);
    if (isSame) same++;
  }
  return same / count;
}
