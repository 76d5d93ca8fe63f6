import { rolloutServer } from '../../report/load-names.ts';
import type { BenchServeResult } from '../../serve/bench-serve.ts';
import type { ClusterFigures } from '../../tables/cluster-figures.ts';
import type { MilvusSizeResult } from '../../tables/milvus-size-result.ts';
import type { SoakFigures, TrialsResult } from '../../tables/trials-result.ts';
import { type Expectation, RATIO } from '../expectation.ts';

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

/** Figures of scripts/checks/replicas.mjs that are never more than 0. */
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

export function milvusSizeExpectations({ sizes }: MilvusSizeResult): Expectation[] {
  return sizes.flatMap(({ rows, beforeLoadingBytes, afterSearchesBytes }) =>
    Object.entries({ beforeLoadingBytes, afterSearchesBytes }).map(([name, value]) => ({
      name: `Milvus, ${rows} rows: ${name}`,
      value,
      tolerance: RATIO,
    })),
  );
}

/** Which trials passed: neither failed nor were skipped. */
export function trialsExpectations({ results }: TrialsResult): Expectation[] {
  return results.map(({ name, outcome }) => ({
    name: `${name}: passed`,
    value: Number(outcome === 'passed'),
    tolerance: { difference: 0 },
  }));
}

export function soakExpectations({ rows }: SoakFigures): Expectation[] {
  return rows.map(([what, outcome]) => ({
    name: `${what}: failed`,
    value: Number(outcome === 'failed'),
    tolerance: { difference: 0 },
  }));
}
