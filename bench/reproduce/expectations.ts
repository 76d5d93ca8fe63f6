import { type AllResult, resultOf } from '../all/all-result.ts';
import type { BenchEmbedResult } from '../embed/bench-embed.ts';
import type { BenchFilterResult } from '../filter/bench-filter.ts';
import type { BenchFlatResult } from '../flat/bench-flat.ts';
import type { BenchBm25Result } from '../lexical/bench-bm25.ts';
import { isIndexRecord } from '../lexical/bm25-report.ts';
import type { BenchModesResult } from '../modes/bench-modes.ts';
import { rolloutServer } from '../report/load-names.ts';
import type { BenchServeResult } from '../serve/bench-serve.ts';
import type { ClusterFigures } from '../tables/cluster-figures.ts';
import type { EvalResult } from '../tables/eval-result.ts';
import type { FamiliesResult } from '../tables/families-result.ts';
import { type GpuResult, gpuSpeeds } from '../tables/gpu-result.ts';
import type { GpuSearchResult } from '../tables/gpu-search-result.ts';
import type { PrecisionResult } from '../tables/precision-result.ts';
import type { SizeResult } from '../tables/size-figures.ts';
import type { SystemsResult } from '../tables/systems-result.ts';

/** How far a figure may be from the recorded one: by a difference, or by a factor in either direction. */
export type Tolerance = { readonly difference: number } | { readonly factor: number };

/** A figure that a reproduction has to reach. */
export interface Expectation {
  readonly name: string;
  readonly value: number;
  readonly tolerance: Tolerance;
}

export interface ComparedExpectation extends Expectation {
  /** Undefined if the new run has no such figure, as where a baseline is not installed. */
  readonly found: number | undefined;
  readonly within: boolean;
}

/** The same bits everywhere, but for the last bits of float32 in other versions of a library. */
const QUALITY: Tolerance = { difference: 0.002 };
/** Ratios depend on processor, cores and other work; with the same of each they vary by less than half. */
const RATIO: Tolerance = { factor: 2.5 };
const MEMORY: Tolerance = { factor: 1.25 };
/** A graph depends on the order in which threads insert rows. */
const GRAPH_RECALL: Tolerance = { difference: 0.05 };

export function evalExpectations({ rows }: EvalResult): Expectation[] {
  return rows.flatMap(({ name, metrics }) =>
    Object.entries(metrics).map(([metric, value]) => ({ name: `${name}: ${metric}`, value, tolerance: QUALITY })),
  );
}

export function familiesExpectations({ rows }: FamiliesResult): Expectation[] {
  return rows.flatMap(({ family, precision, ratioToBaseline, queryRatioToBaseline }) => {
    if (ratioToBaseline === null || queryRatioToBaseline === null) return [];
    const name = `${family}, ${precision}`;
    return [
      { name: `${name}: passages, × sentence-transformers`, value: ratioToBaseline, tolerance: RATIO },
      { name: `${name}: single queries, × sentence-transformers`, value: queryRatioToBaseline, tolerance: RATIO },
    ];
  });
}

/** The time of each engine divided by Trawl's. */
export function gpuExpectations(result: GpuResult): Expectation[] {
  return gpuSpeeds(result).flatMap(({ model, tokens, ratio }) =>
    ratio === null
      ? []
      : [{ name: `${model}, ${tokens} tokens: texts, × sentence-transformers`, value: ratio, tolerance: RATIO }],
  );
}

/** The time of torch and of the CPU divided by that of the GPU. */
export function gpuSearchExpectations({ searches, baselines, checked }: GpuSearchResult): Expectation[] {
  return [
    { name: 'small indexes with other answers', value: checked.different, tolerance: { difference: 0 } },
    ...searches.flatMap(({ queries, ms, cpuMs, sameBits }) => [
      { name: `${queries} queries: same bits as the CPU`, value: Number(sameBits), tolerance: { difference: 0 } },
      { name: `${queries} queries: CPU / GPU`, value: cpuMs / ms, tolerance: RATIO },
      ...baselines
        .filter((line) => line.queries === queries)
        .map((line) => ({
          name: `${queries} queries: torch, ${line.type} / Trawl`,
          value: line.ms / ms,
          tolerance: RATIO,
        })),
    ]),
  ];
}

export function systemsExpectations({ rows }: SystemsResult): Expectation[] {
  return rows.flatMap(({ set, system, metrics }) =>
    Object.entries(metrics).map(([metric, value]) => ({
      name: `${set}, ${system}: ${metric}`,
      value,
      tolerance: system.includes('HNSW') ? GRAPH_RECALL : QUALITY,
    })),
  );
}

/** Recall, and the passages that a filter keeps. Times are left out. */
export function modesExpectations({ records }: BenchModesResult): Expectation[] {
  return records.flatMap(({ case: name, passing, recallAt10 }) => [
    { name: `${name}: recall@10`, value: recallAt10, tolerance: QUALITY },
    { name: `${name}: passages`, value: passing, tolerance: { difference: 0 } },
  ]);
}

/** Queries with Lucene's rows and score bits, and the time of many queries divided by Trawl's. */
export function bm25Expectations({ records }: BenchBm25Result): Expectation[] {
  return records.flatMap((record): Expectation[] => {
    if (isIndexRecord(record) || record.engine === 'trawl') return [];
    const name = `${record.case}, ${record.engine}`;
    return [
      ...(record.engine === 'lucene' && record.agreement !== null
        ? [{ name: `${name}: same rows and score bits`, value: record.agreement, tolerance: { difference: 0 } }]
        : []),
      { name: `${name}: time / Trawl`, value: record.ratioToTrawl, tolerance: RATIO },
    ];
  });
}

/** The rows that pass. Times are left out. */
export function filterExpectations({ records }: BenchFilterResult): Expectation[] {
  return records.map((record) => ({
    name: `${record.case}: rows that pass`,
    value: record.passing,
    tolerance: { difference: 0 },
  }));
}

export function precisionExpectations({ rows }: PrecisionResult): Expectation[] {
  return rows.flatMap(({ set, passages, queries, overlap10, metrics }) =>
    Object.entries({ ...(overlap10 === null ? {} : { 'overlap@10': overlap10 }), ...metrics }).map(
      ([metric, value]) => ({
        name: `${set}, passages in ${passages}, queries in ${queries}: ${metric}`,
        value,
        tolerance: QUALITY,
      }),
    ),
  );
}

/** Figures of scripts/replicas-test.mjs that are never more than 0. */
export interface ReplicasResult {
  readonly failed: number;
  readonly mixed: number;
  readonly oldAfterSwap: number;
}

export function replicasExpectations({ failed, mixed, oldAfterSwap }: ReplicasResult): Expectation[] {
  return Object.entries({ failed, mixed, oldAfterSwap }).map(([name, value]) => ({
    name: `replicas: ${name}`,
    value,
    tolerance: { difference: 0 },
  }));
}

/** Wrong answers, of which there are none, and the dialects' requests that are answered. Rates, times and memory are left out. */
export function clusterExpectations({ engine, dialects, events }: ClusterFigures): Expectation[] {
  const wrong = events.map((event) => ({
    name: `${engine}, ${event.name}: wrong answers`,
    value: event.wrong + (event.dialects?.wrong ?? 0),
    tolerance: { difference: 0 },
  }));
  const answered = Object.entries(dialects).map(([name, value]) => ({
    name: `${engine}, all dialects: ${name}`,
    value,
    tolerance: { difference: 0 },
  }));
  return [...wrong, ...answered];
}

/** Bytes on disk, and the number of queries that equalled a scan. Times are left out. */
export function sizeExpectations({ bytes, steps: { memory, prefilter } }: SizeResult): Expectation[] {
  const checked = Object.entries({ memory, prefilter }).map(([step, { checkedQueries }]) => ({
    name: `size, ${step}: queries that equal a scan`,
    value: checkedQueries,
    tolerance: { difference: 0 },
  }));
  const sizes = Object.entries(bytes).map(([what, value]) => ({
    name: `size: bytes of ${what}`,
    value,
    tolerance: MEMORY,
  }));
  return [...checked, ...sizes];
}

export function flatExpectations({ records }: Pick<BenchFlatResult, 'records'>): Expectation[] {
  return records.flatMap((record): Expectation[] => {
    const name = `exact search, ${record.engine}, ${record.queries} queries`;
    return record.engine === 'trawl'
      ? [{ name: `${name}: bytes`, value: record.residentBytes, tolerance: MEMORY }]
      : [
          { name: `${name}: time / Trawl`, value: record.ratioToTrawl, tolerance: RATIO },
          { name: `${name}: same lists`, value: record.agreement ?? 0, tolerance: { difference: 0.01 } },
        ];
  });
}

/** Ratios, recall and memory. Times are left out: they are those of a machine. */
export function allExpectations(all: AllResult): Expectation[] {
  const flat = flatExpectations({ records: resultOf(all, 'flat')?.records ?? [] });
  const serve = serverExpectations({ records: resultOf(all, 'serve')?.records ?? [] });
  const embed = encoderExpectations({ records: resultOf(all, 'embed')?.records ?? [] });
  const graphs = (resultOf(all, 'approximate')?.records ?? []).map(({ engine, effort, recall }) => ({
    name: `vectors, ${engine}${effort === null ? '' : `, efSearch ${effort}`}: recall`,
    value: recall,
    tolerance: effort === null ? { difference: 0.001 } : GRAPH_RECALL,
  }));
  const questions = (resultOf(all, 'questions')?.records ?? []).map(
    ({ engine, mode, effort = null, over, recallAt10 }) => ({
      name: `questions, ${engine}${effort === null ? '' : `, efSearch ${effort}`}, ${mode}, ${over}: recall@10`,
      value: recallAt10,
      tolerance: effort === null ? QUALITY : GRAPH_RECALL,
    }),
  );
  return [...flat, ...embed, ...serve, ...graphs, ...questions];
}

/** Compares by name. A figure that the new run lacks is not within its tolerance. */
export function compareExpectations(
  expected: readonly Expectation[],
  found: readonly Expectation[],
): ComparedExpectation[] {
  const byName = new Map(found.map(({ name, value }) => [name, value]));
  return expected.map((expectation) => {
    const value = byName.get(expectation.name);
    return { ...expectation, found: value, within: value !== undefined && isWithin(value, expectation) };
  });
}

function isWithin(found: number, { value, tolerance }: Expectation): boolean {
  if ('difference' in tolerance) return Math.abs(found - value) <= tolerance.difference + 1e-12;
  if (value === 0) return found === 0;
  const factor = found / value;
  return factor <= tolerance.factor && factor >= 1 / tolerance.factor;
}

/** Such as `0.901 ± 0.002` or `10.7, by a factor of at most 2.5`. */
export function describeExpectation({ value, tolerance }: Expectation): string {
  const shown = Number(value.toPrecision(4)).toLocaleString('en-US', { maximumFractionDigits: 4 });
  return 'difference' in tolerance
    ? `${shown} ± ${tolerance.difference}`
    : `${shown}, within a factor of ${tolerance.factor}`;
}

export function serverExpectations({ records }: Pick<BenchServeResult, 'records'>): Expectation[] {
  return records.flatMap(({ engine, load, ratioToBaseline, wrong }): Expectation[] => {
    if (!engine.startsWith('trawl')) return [];
    // Only this load has several servers of Trawl.
    const name = load === 'rollouts' ? `server, ${load}, ${rolloutServer(engine)}` : `server, ${load}`;
    return [
      { name: `${name}: wrong answers`, value: wrong, tolerance: { difference: 0 } },
      ...(ratioToBaseline === null
        ? []
        : [{ name: `${name}: × the baseline`, value: ratioToBaseline, tolerance: RATIO }]),
    ];
  });
}

export function encoderExpectations({ records }: Pick<BenchEmbedResult, 'records'>): Expectation[] {
  return records.flatMap(({ engine, precision, ratioToBaseline }): Expectation[] =>
    engine === 'trawl' && ratioToBaseline !== null
      ? [{ name: `encoder, ${precision}: × the baseline`, value: ratioToBaseline, tolerance: RATIO }]
      : [],
  );
}
