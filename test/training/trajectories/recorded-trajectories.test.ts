import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { RecordLine } from '../../../training/records/read-records.ts';
import type { RecordedQuery } from '../../../training/records/recorded-query.ts';
import {
  openRecordedTrajectories,
  type RecordedOptions,
} from '../../../training/trajectories/recorded-trajectories.ts';
import type { Trajectory } from '../../../training/trajectories/trajectory.ts';

type MadeQuery = Partial<RecordedQuery>;

/** Lines in their order, a second apart. */
function lines(queries: readonly MadeQuery[]): RecordLine[] {
  return queries.map((made, i) => {
    const query: RecordedQuery = {
      time: new Date(1_700_000_000_000 + 1000 * i).toISOString(),
      requestId: `r${i}`,
      dialect: 'search-r1',
      index: 'wiki',
      generation: 'g',
      place: 0,
      query: `query ${i}`,
      k: 3,
      rows: [i],
      scores: [1],
      ids: [String(i)],
      ...made,
    };
    return { file: 'calls.jsonl', line: i + 1, text: JSON.stringify(query), query };
  });
}

async function read(queries: readonly MadeQuery[], options: RecordedOptions = {}) {
  const all = lines(queries);
  const recorded = await openRecordedTrajectories(async function* () {
    yield* all;
  }, options);
  const trajectories: Trajectory[] = [];
  for await (const trajectory of recorded.read(0, () => undefined)) trajectories.push(trajectory);
  return { ...recorded, trajectories };
}

function shape({ id, searches }: Trajectory): unknown {
  return [id, ...searches.map(({ query, turn }) => `${turn} ${query}`)];
}

test('queries are put together by trajectory, in the order of their turns', async () => {
  const { trajectories, counts } = await read([
    { trajectory: 'a', turn: 4, query: 'third' },
    { trajectory: 'b', turn: 1, query: 'other' },
    { trajectory: 'a', turn: 0, query: 'first' },
    { trajectory: 'a', turn: 2, query: 'second' },
    { query: 'of nobody' },
    { trajectory: 'b', turn: 2, query: 'failed', error: 'OVERLOADED', rows: [], ids: [], scores: [] },
    { trajectory: 'c', trajectoryFrom: 'guess', turn: 1, query: 'guessed' },
  ]);
  assert.deepEqual(trajectories.map(shape), [
    ['a', '1 first', '2 second', '3 third'],
    ['b', '1 other'],
    ['c', '1 guessed'],
  ]);
  assert.deepEqual(counts, { queries: 7, withoutTrajectory: 1, failed: 1, guessed: 1 });
});

test('a search has the fields of `Search` alone', async () => {
  const { trajectories } = await read([{ trajectory: 'a', question: 'Who?', query: 'x' }]);
  assert.deepEqual(trajectories[0]!.searches, [
    {
      query: 'x',
      searchedText: 'Who? [SEP] x',
      turn: 1,
      truncated: false,
      shown: [{ id: '0', contents: undefined }],
    },
  ]);
});

test('without turns, each request is a turn, in the order of time', async () => {
  const { trajectories } = await read([
    { trajectory: 'a', requestId: 'x', place: 1, query: 'two', time: '2026-01-01T00:00:02.000Z' },
    { trajectory: 'a', requestId: 'x', place: 0, query: 'one', time: '2026-01-01T00:00:02.000Z' },
    { trajectory: 'a', requestId: 'w', query: 'zero', time: '2026-01-01T00:00:01.000Z' },
    { trajectory: 'a', requestId: '', query: 'three', time: '2026-01-01T00:00:03.000Z' },
  ]);
  assert.deepEqual(trajectories.map(shape), [['a', '1 zero', '2 one', '2 two', '3 three']]);
});

test('a query that a turn has twice counts once, in another turn it is a repetition', async () => {
  const { trajectories } = await read([
    { trajectory: 'a', turn: 1, query: 'x' },
    { trajectory: 'a', turn: 1, query: 'x' },
    { trajectory: 'a', turn: 2, query: 'x' },
  ]);
  assert.deepEqual(trajectories.map(shape), [['a', '1 x', '2 x']]);
});

test('equal trajectory ids of other steps, policies and data sets are other trajectories', async () => {
  const { trajectories } = await read([
    { trajectory: '0_1', step: 5 },
    { trajectory: '0_1', step: 6 },
    { trajectory: '0_1', step: 5, policy: 'run-2' },
    { trajectory: '0_1', dataset: 'hotpotqa' },
  ]);
  assert.deepEqual(
    trajectories.map(({ id }) => id),
    [
      'step=5/trajectory=0_1',
      'step=6/trajectory=0_1',
      'policy=run-2/step=5/trajectory=0_1',
      'dataset=hotpotqa/trajectory=0_1',
    ],
  );
});

test('trajectories whose names are composed of the same parts are different, and so are their ids', async () => {
  const origins: readonly MadeQuery[] = [
    { dataset: 'x', trajectory: '1' },
    { policy: 'x', trajectory: '1' },
    { trajectory: 'x/1' },
    { trajectory: 'dataset=x/trajectory=1' },
    { trajectory: 'trajectory=dataset=x/trajectory=1' },
    { dataset: 'x', policy: 'y', trajectory: '1' },
    { dataset: 'x/policy=y', trajectory: '1' },
    { dataset: 'x%2Fpolicy=y', trajectory: '1' },
    { dataset: 'x', trajectory: 'policy=y/trajectory=1' },
  ];
  const { trajectories } = await read(origins);
  assert.equal(new Set(trajectories.map(({ id }) => id)).size, origins.length);
});

test('a sub-query is what follows the recorded question, whatever separators the question has', async () => {
  const { trajectories } = await read([
    { trajectory: 'a', question: 'Q?', query: 'Q? [SEP] sub', template: 'query' },
    { trajectory: 'b', question: 'A [SEP] B?', query: 'A [SEP] B? [SEP] sub', template: 'query' },
  ]);
  assert.deepEqual(
    trajectories.map(({ question, searches: [search] }) => [question, search!.query, search!.searchedText]),
    [
      ['Q?', 'sub', 'Q? [SEP] sub'],
      ['A [SEP] B?', 'sub', 'A [SEP] B? [SEP] sub'],
    ],
  );
});

test('the searched text is that of the template, and a composed text is cut at its first separator', async () => {
  const { trajectories } = await read([
    { trajectory: 'a', turn: 1, query: 'Q? [SEP] sub [SEP] rest' },
    { trajectory: 'b', turn: 1, query: 'sub', question: 'Q?' },
    { trajectory: 'c', turn: 1, query: 'sub', question: 'Q?', template: 'query' },
    { trajectory: 'd', turn: 1, query: 'sub', question: 'Q?', history: ['h'], template: 'question-history-query' },
    { trajectory: 'e', turn: 1, query: 'sub' },
  ]);
  assert.deepEqual(
    trajectories.map(({ question, searches: [search] }) => [question, search!.query, search!.searchedText]),
    [
      ['Q?', 'sub [SEP] rest', 'Q? [SEP] sub [SEP] rest'],
      ['Q?', 'sub', 'Q? [SEP] sub'],
      ['Q?', 'sub', 'sub'],
      ['Q?', 'sub', 'Q? [SEP] h [SEP] sub'],
      [undefined, 'sub', 'sub'],
    ],
  );
});

test('ids, rows of passages without id, and truncation are those of the record', async () => {
  const { trajectories } = await read([
    { trajectory: 'a', rows: [7, 8], ids: ['p', null], scores: [2, 1], cut: 'tail' },
  ]);
  const [search] = trajectories[0]!.searches;
  assert.deepEqual(search!.shown, [
    { id: 'p', contents: undefined },
    { id: 'row:8', contents: undefined },
  ]);
  assert.equal(search!.truncated, true);
});

test('golden answers come from the questions, by id, else by text', async () => {
  const questions = [
    { id: 'q1', question: 'One?', goldenAnswers: ['1'] },
    { id: 'q2', question: 'Two?', goldenAnswers: ['2'] },
  ];
  const { trajectories } = await read(
    [
      { trajectory: 'a', questionId: 'q1', question: 'one' },
      { trajectory: 'b', question: ' Two? ' },
      { trajectory: 'c', questionId: 'q2' },
      { trajectory: 'd', question: 'Unknown?' },
    ],
    { questions },
  );
  assert.deepEqual(
    trajectories.map(({ question, questionId, goldenAnswers }) => [question, questionId, goldenAnswers]),
    [
      ['one', 'q1', ['1']],
      [' Two? ', 'q2', ['2']],
      ['Two?', 'q2', ['2']],
      ['Unknown?', undefined, []],
    ],
  );
});

test('read in several passes, and skipped, the trajectories are the same', async () => {
  const query = fc.record({ trajectory: fc.constantFrom('a', 'b', 'c', 'd', 'e'), turn: fc.nat(5) });
  await fc.assert(
    fc.asyncProperty(fc.array(query, { maxLength: 30 }), fc.integer({ min: 1, max: 10 }), async (made, atOnce) => {
      const whole = await read(made);
      const parts = await read(made, { queriesInMemory: atOnce });
      const sorted = (list: readonly Trajectory[]): unknown[] => list.toSorted((a, b) => (a.id < b.id ? -1 : 1));
      assert.deepEqual(sorted(parts.trajectories), sorted(whole.trajectories));
      assert.equal(parts.sha256, whole.sha256);
      for (let skip = 0; skip <= parts.trajectories.length; skip++) {
        const left: Trajectory[] = [];
        for await (const trajectory of parts.read(skip, () => undefined)) left.push(trajectory);
        assert.deepEqual(left, parts.trajectories.slice(skip));
      }
    }),
    { numRuns: 50 },
  );
});

test('other records have another checksum', async () => {
  const one = await read([{ trajectory: 'a', time: '2026-01-01T00:00:01.000Z' }]);
  const other = await read([{ trajectory: 'a', time: '2026-01-01T00:00:02.000Z' }]);
  assert.notEqual(one.sha256, other.sha256);
});
