import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClusterFigures, ClusterRate } from '../../../bench/tables/cluster-figures.ts';
import { clusterSizing } from '../../../bench/tables/cluster-sizing.ts';

const rate = (name: string, queriesPerS: number): ClusterRate => ({
  ...{ name, queriesPerS, load: 1, seconds: 10, clients: 1, answers: 10, refused: 0, wrong: 0 },
  ...{ medianMs: 1, p99Ms: 1, slowestMs: 1, refusedUntilMs: null, longestSilenceMs: 1 },
});
const figures: ClusterFigures = {
  ...{ engine: 'an engine', cores: 2, rows: 50_000, dimension: 256, k: 10, nodes: 2, shards: 1, copies: 2 },
  ...{ publishMs: 1, dialects: { requests: 1, answered: 1 }, memory: [], events: [] },
  rates: [rate('dense: one client', 10), rate('dense: four clients', 40), rate('bm25: one client', 900)],
};

test('the work of a search is computed from the fastest dense searches, not from searches of words', () => {
  const slower = { ...figures, rates: figures.rates.filter(({ queriesPerS }) => queriesPerS !== 40) };
  const secondsOf = (of: ClusterFigures): number => Number(clusterSizing(of)[2]![4]);
  assert.equal(secondsOf(figures), 63);
  assert.equal(secondsOf(slower), 250);
});

test('larger corpora need nodes for two copies in half of their memory, and time in proportion to rows × dimension', () => {
  const [, , ...lines] = clusterSizing(figures);
  assert.deepEqual(lines[0], ['21,000,000', '768', '65 GB', '2', '63', '1']);
  assert.deepEqual(lines.at(-1), ['1,000,000,000', '768', '3,072 GB', '48', '3,000', '0.51']);
});
