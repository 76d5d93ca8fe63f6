import type { BenchModesResult } from '../../modes/bench-modes.ts';
import type { EvalResult } from '../../tables/eval-result.ts';
import type { PrecisionResult } from '../../tables/precision-result.ts';
import type { SystemsResult } from '../../tables/systems-result.ts';
import type { TriageErrorsResult } from '../../tables/triage-errors-result.ts';
import { type Expectation, GRAPH_RECALL, QUALITY } from '../expectation.ts';

export function evalExpectations({ rows }: EvalResult): Expectation[] {
  return rows.flatMap(({ name, metrics }) =>
    Object.entries(metrics).map(([metric, value]) => ({ name: `${name}: ${metric}`, value, tolerance: QUALITY })),
  );
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

/** Recall, and the errors of its estimates. */
export function triageExpectations({ sets }: TriageErrorsResult): Expectation[] {
  return sets.flatMap(({ name, records }) =>
    records
      .filter(({ k }) => k === 10)
      .flatMap(({ tried, depth, sampleShare, whole, errors }) => {
        const trial = `${name}, ${tried}, depth ${depth}, ${100 * sampleShare} %`;
        return [
          { name: `${trial}: recall@10`, value: whole, tolerance: QUALITY },
          { name: `${trial}: error of the estimate`, value: errors.tail.mean, tolerance: { difference: 0.01 } },
        ];
      }),
  );
}
