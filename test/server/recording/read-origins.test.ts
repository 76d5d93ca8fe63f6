import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { QueryOrigin } from '../../../src/server/recording/query-origin.ts';
import {
  type OriginSources,
  readBaggage,
  readOrigins,
  readTraceparent,
} from '../../../src/server/recording/read-origins.ts';

const TRACE = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

function read(sources: Partial<OriginSources>, queries = 1) {
  const { origins, ignored } = readOrigins({ body: undefined, headers: {}, parameters: {}, ...sources }, queries);
  return { origins, ignored: ignored.map(({ name, fault, count }) => [name, fault, count]) };
}

test('headers give the values of all queries of a request', () => {
  const headers = {
    'x-trawl-trajectory': 't-1',
    'x-trawl-turn': '2',
    'x-trawl-question-id': 'train_7',
    'x-trawl-dataset': 'hotpotqa',
    'x-trawl-policy': 'run-3',
    'x-trawl-step': '120',
    'x-trawl-split': 'train',
    'x-trawl-tags': 'arm=b, node=4',
    'x-trawl-question': 'Wer hat die Br%C3%BCcke entworfen?',
  };
  const origin: QueryOrigin = {
    trajectory: 't-1',
    turn: 2,
    questionId: 'train_7',
    dataset: 'hotpotqa',
    policy: 'run-3',
    step: 120,
    split: 'train',
    tags: { arm: 'b', node: '4' },
    question: 'Wer hat die Brücke entworfen?',
  };
  assert.deepEqual(read({ headers }, 2), { origins: [origin, origin], ignored: [] });
});

test('a header with a percent sign that is no encoding is taken as it is', () => {
  assert.equal(read({ headers: { 'x-trawl-policy': '100%' } }).origins[0]!.policy, '100%');
});

test('the body has one value, or one per query; null means none', () => {
  const body = { trajectory: ['a', null, 7], turn: [1, 2, 3], question_id: 'q', questionId: null, step: 5 };
  assert.deepEqual(read({ body }, 3), {
    origins: [
      { trajectory: 'a', turn: 1, questionId: 'q', step: 5 },
      { turn: 2, questionId: 'q', step: 5 },
      { trajectory: '7', turn: 3, questionId: 'q', step: 5 },
    ],
    ignored: [],
  });
});

test('the body counts before the header, this before baggage and URL; tags are joined', () => {
  const sources = {
    body: { turn: 4, tags: { a: '4' } },
    headers: {
      'x-trawl-turn': '3',
      'x-trawl-step': '3',
      'x-trawl-tags': 'a=3,b=3',
      baggage: 'trawl-turn=2,trawl-step=2,trawl-split=two%20words;kind=x, other=1,trawl-tags=c%3D2',
    },
    parameters: { 'trawl-turn': '1', 'trawl-step': '1', 'trawl-split': '1', 'trawl-policy': ['0', '1'] },
  };
  assert.deepEqual(read(sources), {
    origins: [{ turn: 4, step: 3, split: 'two words', policy: '1', tags: { a: '4', b: '3', c: '2' } }],
    ignored: [],
  });
});

test('values that cannot be used are left out and listed, and the others are kept', () => {
  const long = 'x'.repeat(300);
  const found = read(
    {
      body: { trajectory: ['a'], turn: ['x', 1], step: -1, split: {}, policy: [long, long], other: 1, dataset: 'd' },
      headers: { 'x-trawl-split': long, 'x-trawl-question-id': '\u0007' },
      parameters: { 'trawl-step': 'x' },
    },
    2,
  );
  assert.deepEqual(found.origins, [{ dataset: 'd' }, { dataset: 'd', turn: 1 }]);
  assert.deepEqual(found.ignored, [
    ['x-trawl-question-id', 'characters', 1],
    ['URL.trawl-step', 'type', 1],
    ['x-trawl-split', 'too-long', 1],
    ['record.trajectory', 'length', 1],
    ['record.turn.0', 'type', 1],
    ['record.step', 'type', 1],
    ['record.split', 'type', 1],
    ['record.policy.0', 'too-long', 2],
    ['record.other', 'unknown', 1],
  ]);
  for (const body of ['x', 7, ['a']]) assert.deepEqual(read({ body }).ignored, [['record', 'type', 1]]);
  assert.deepEqual(read({ body: null }), { origins: [{}], ignored: [] });
});

test('traceparent gives trace and span, unless the standard says that it is invalid', () => {
  const ids = { traceId: '4bf92f3577b34da6a3ce929d0e0e4736', spanId: '00f067aa0ba902b7' };
  assert.deepEqual(readTraceparent(TRACE), ids);
  assert.deepEqual(readTraceparent(TRACE.replace(/^00/, '01').concat('-more')), ids);
  for (const bad of [
    undefined,
    '',
    TRACE.toUpperCase(),
    TRACE.replace(/^00/, 'ff'),
    `${TRACE}-more`,
    TRACE.replace(/4bf\w+/, '0'.repeat(32)),
    TRACE.replace('00f067aa0ba902b7', '0'.repeat(16)),
    TRACE.slice(1),
    [TRACE, TRACE],
  ]) {
    assert.equal(readTraceparent(bad), undefined, String(bad));
  }
  assert.deepEqual(read({ headers: { traceparent: TRACE } }).origins, [ids]);
});

test('baggage that cannot be read is left out', () => {
  assert.deepEqual(
    [...readBaggage('a=1, b = x%20y ;p=q,no,=z,bad=%zz,c=')],
    [
      ['a', '1'],
      ['b', 'x y'],
      ['c', ''],
    ],
  );
  assert.equal(readBaggage(`a=${'x'.repeat(9000)}`).size, 0);
  assert.equal(readBaggage(undefined).size, 0);
});

test('no request fails because of what it says about itself', () => {
  const names = ['turn', 'trajectory', 'tags', 'question_id', 'question', 'x', '__proto__'];
  fc.assert(
    fc.property(
      fc.dictionary(fc.constantFrom(...names), fc.anything()),
      fc.dictionary(fc.constantFrom('x-trawl-turn', 'x-trawl-tags', 'traceparent', 'baggage'), fc.string()),
      fc.nat(4),
      (body, headers, queries) => {
        const { origins, ignored } = readOrigins({ body, headers, parameters: headers }, queries);
        assert.equal(origins.length, queries);
        for (const { name, count } of ignored) assert.ok(name !== '' && count > 0);
      },
    ),
  );
});
