import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EncoderInput } from '../../src/encoder/text-encoder.ts';
import { withOrigins } from '../../src/server/record-search.ts';
import { TrajectoryGuesser } from '../../src/server/recording/guess-trajectories.ts';
import type { OriginSources } from '../../src/server/recording/read-origins.ts';
import type { RecordedSearch } from '../../src/server/recording/recorded-search.ts';

const TRACE = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
const MINUTE = 60_000;

function originated(
  queries: readonly EncoderInput[],
  sources: Partial<OriginSources> = {},
  search: Partial<RecordedSearch> = {},
): RecordedSearch {
  const known = { guesser: new TrajectoryGuesser(), connection: {}, template: undefined };
  const all = { body: undefined, headers: {}, parameters: {}, ...sources };
  return withOrigins({ queries, k: 1, outcomes: [], ...search }, all, known).search;
}

test('what the dialect says counts before what headers say', () => {
  const headers = { 'x-trawl-trajectory': 'header', 'x-trawl-turn': '2' };
  const { origins } = originated(['q'], { headers }, { origins: [{ trajectory: 'dialect' }] });
  assert.deepEqual(origins, [{ trajectory: 'dialect', turn: 2 }]);
});

test('lists of a request in which not every item is a query are read by position', () => {
  const items = { positions: [1, 3], count: 4 };
  const { origins } = originated(['a', 'b'], { body: { turn: [1, 2, 3, 4] } }, { items });
  assert.deepEqual(origins, [{ turn: 2 }, { turn: 4 }]);
});

test('the trace of a single query is its trajectory, marked as such; that of a batch may be one for all', () => {
  const headers = { traceparent: TRACE };
  const ids = { traceId: '4bf92f3577b34da6a3ce929d0e0e4736', spanId: '00f067aa0ba902b7' };
  assert.deepEqual(originated(['q'], { headers }).origins, [
    { ...ids, trajectory: ids.traceId, trajectoryFrom: 'traceparent' },
  ]);
  assert.deepEqual(originated(['q', 'r'], { headers }).origins, [ids, ids]);
  const named = originated(['q'], { headers: { ...headers, 'x-trawl-trajectory': 't' } });
  assert.deepEqual(named.origins, [{ ...ids, trajectory: 't' }]);
});

test('requests with an equal question on one connection are guessed to be turns of one rollout', () => {
  const guesser = new TrajectoryGuesser();
  const [connection, other] = [{}, {}];
  const first = guesser.guess(connection, ['Q', 'R', undefined], 0);
  const second = guesser.guess(connection, ['R', 'Q'], 1);
  const elsewhere = guesser.guess(other, ['Q'], 2);
  assert.deepEqual([first[0]!.trajectory, first[1]!.trajectory], [second[1]!.trajectory, second[0]!.trajectory]);
  assert.deepEqual([first[0]!.turn, second[1]!.turn, first[2]], [1, 2, undefined]);
  assert.equal(new Set([first[0], first[1], elsewhere[0]].map((guess) => guess!.trajectory)).size, 3);
  for (const guess of [...first.slice(0, 2), ...second]) assert.equal(guess!.trajectoryFrom, 'guess');
});

test('a question that a request has twice, or that comes back after a long pause, is not the same rollout', () => {
  const guesser = new TrajectoryGuesser();
  const connection = {};
  assert.deepEqual(guesser.guess(connection, ['Q', 'Q'], 0), [undefined, undefined]);
  const [first] = guesser.guess(connection, ['Q'], 0);
  const [soon] = guesser.guess(connection, ['Q'], 9 * MINUTE);
  const [late] = guesser.guess(connection, ['Q'], 20 * MINUTE);
  assert.equal(soon!.trajectory, first!.trajectory);
  assert.notEqual(late!.trajectory, first!.trajectory);
  assert.equal(late!.turn, 1);
});

test('of more rollouts than a connection may have at once, the one that was used first is forgotten', () => {
  const guesser = new TrajectoryGuesser();
  const connection = {};
  const [first] = guesser.guess(connection, ['first'], 0);
  const [second] = guesser.guess(connection, ['second'], 0);
  const others = Array.from({ length: 1_999 }, (_, i) => `question ${i}`);
  guesser.guess(connection, others, 0);
  assert.equal(guesser.guess(connection, ['second'], 0)[0]!.trajectory, second!.trajectory);
  assert.notEqual(guesser.guess(connection, ['first'], 0)[0]!.trajectory, first!.trajectory);
});

test('a guess needs a question: that of the query, that of a composed text, or that of the record', () => {
  assert.deepEqual(originated(['plain', { question: '', query: 'q' }]).origins, [{}, {}]);
  for (const [query, sources] of [
    [{ question: 'Q', query: 'q' }, {}],
    ['Q [SEP] q', {}],
    ['q', { body: { question: 'Q' } }],
  ] as const) {
    const [origin] = originated([query], sources).origins!;
    assert.deepEqual([origin!.trajectoryFrom, origin!.turn], ['guess', 1]);
  }
  const [named] = originated([{ question: 'Q', query: 'q' }], { headers: { 'x-trawl-trajectory': 't' } }).origins!;
  assert.deepEqual(named, { trajectory: 't' });
  const [counted] = originated([{ question: 'Q', query: 'q' }], { headers: { 'x-trawl-turn': '7' } }).origins!;
  assert.equal(counted!.turn, 7, 'the turn of the client counts');
});
