import * as figure from '../report/figures.ts';
import type { ClusterFigures } from './cluster-figures.ts';
import { rule } from './table-maker.ts';

const CORPORA = [
  { rows: 21_000_000, dimension: 768 },
  { rows: 100_000_000, dimension: 768 },
  { rows: 1_000_000_000, dimension: 256 },
  { rows: 1_000_000_000, dimension: 768 },
];
const BYTES_OF_VALUE = 4;
const COPIES = 2;
/** Half of the memory for vectors: docs/cluster.md measures what a store needs besides. */
const NODE = { memoryBytes: 256e9, share: 0.5, cores: 32 };

/** Dense searches that were measured: the others score no vectors, or words too. */
const isDense = ({ name }: { readonly name: string }): boolean => !/^(bm25|hybrid)/.test(name);

/** Values of vectors that a core scores in a second, with the fastest kind of search. */
function valuesPerSecondAndCore({ rates, rows, dimension, cores }: ClusterFigures): number {
  const fastest = Math.max(...rates.filter(isDense).map(({ queriesPerS }) => queriesPerS));
  return (fastest * rows * dimension) / cores;
}

/** What larger corpora need; nobody measured it. Every search scores every row, so all grows with rows × dimension. */
export function clusterSizing(figures: ClusterFigures): string[][] {
  const perCore = valuesPerSecondAndCore(figures);
  return [
    [
      'rows',
      'dimension',
      'vectors of one copy',
      'nodes of 256 GB for two copies',
      'core seconds a query',
      'queries/s with 32 cores a node',
    ],
    rule(6),
    ...CORPORA.map(({ rows, dimension }) => {
      const bytes = rows * dimension * BYTES_OF_VALUE;
      const nodes = Math.max(COPIES, Math.ceil((COPIES * bytes) / (NODE.memoryBytes * NODE.share)));
      const coreSeconds = (rows * dimension) / perCore;
      return [
        figure.count(rows),
        String(dimension),
        `${figure.count(bytes / 1e9)} GB`,
        figure.count(nodes),
        twoDigits(coreSeconds),
        twoDigits((nodes * NODE.cores) / coreSeconds),
      ];
    }),
  ];
}

function twoDigits(value: number): string {
  return Number(value.toPrecision(2)).toLocaleString('en-US');
}
