import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Fingerprints } from '../../../training/records/fingerprints.ts';
import { RecordSummary } from '../../../training/records/record-statistics.ts';
import { recordLine } from '../../helpers/record-lines.ts';
import { parseRecord } from './parse-record.ts';

function statisticsOf(lines: readonly string[]) {
  const summary = new RecordSummary();
  for (const line of lines) {
    const parsed = parseRecord(line);
    assert.ok(parsed.ok);
    summary.add(parsed.query);
  }
  return summary.statistics();
}

test('queries, trajectories, turns, repeated queries and retries are counted', () => {
  const statistics = statisticsOf([
    recordLine('a', { trajectory: 't', turn: 1 }),
    recordLine('a', { trajectory: 't', turn: 1 }),
    recordLine('a', { trajectory: 't', turn: 2 }),
    recordLine('a', { question: 'Q', trajectory: 't', turn: 2 }),
    recordLine('b', { trajectory: 'u' }),
    recordLine('b', { trajectory: 'u' }),
    recordLine('c', { trajectory: 'v', trajectoryFrom: 'guess', turn: 1 }),
    recordLine('c', { trajectory: 'w', trajectoryFrom: 'traceparent' }),
    recordLine('d'),
  ]);
  assert.deepEqual(statistics.trajectories, { named: 2, fromTraces: 1, guessed: 1, queriesWithout: 1, turns: 3 });
  assert.deepEqual([statistics.queries, statistics.distinctQueries, statistics.repeatedQueries], [9, 5, 4]);
  assert.equal(statistics.retries, 1, 'without a turn, an agent may have asked again');
  assert.deepEqual(statistics.turns, { 1: 3, 2: 2 });
});

test('counts by name have the largest first, and the range of times does not need an order', () => {
  const statistics = statisticsOf([
    recordLine('a', { time: '2026-11-23T02:00:00.000Z', dialect: 'native', mode: 'bm25', policy: 'p', split: 'train' }),
    recordLine('b', { time: '2026-11-23T01:00:00.000Z', generation: 'g2', cut: 'tail', k: 5, dataset: 'd' }),
    recordLine('c', { time: '2026-11-23T01:30:00.000Z', error: 'ENCODING_FAILED', rows: [], scores: [], ids: [] }),
  ]);
  assert.deepEqual([statistics.from, statistics.to], ['2026-11-23T01:00:00.000Z', '2026-11-23T02:00:00.000Z']);
  assert.deepEqual(Object.entries(statistics.dialects), [
    ['search-r1', 2],
    ['native', 1],
  ]);
  assert.deepEqual(
    [statistics.generations, statistics.modes, statistics.k, statistics.errors, statistics.cut],
    [{ g1: 2, g2: 1 }, { '(default)': 2, bm25: 1 }, { 2: 2, 5: 1 }, { ENCODING_FAILED: 1 }, { tail: 1 }],
  );
  assert.deepEqual([statistics.policies, statistics.datasets, statistics.splits], [{ p: 1 }, { d: 1 }, { train: 1 }]);
});

test('names beyond a thousand are counted together', () => {
  const { generations } = statisticsOf(
    Array.from({ length: 1010 }, (_, i) => recordLine('q', { generation: `g${i}` })),
  );
  assert.equal(Object.keys(generations).length, 1001);
  assert.equal(generations['(others)'], 10);
});

test('no records give statistics too', () => {
  const { queries, from, to, trajectories } = statisticsOf([]);
  assert.deepEqual([queries, from, to, trajectories.queriesWithout], [0, null, null, 0]);
});

test('fingerprints tell texts and their order apart', () => {
  const seen = new Fingerprints();
  assert.deepEqual(
    [seen.add('a', 'b'), seen.add('ab'), seen.add('b', 'a'), seen.add('a', 'b')],
    [true, true, true, false],
  );
  for (let i = 0; i < 5000; i++) seen.add(`text ${i}`);
  assert.equal(seen.size, 5003);
});
