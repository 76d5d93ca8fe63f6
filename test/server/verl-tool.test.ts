import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TrawlError } from '../../src/base/errors.ts';
import type { RecordedSearch } from '../../src/server/recording/recorded-search.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { build, errorOf, postTo } from './build.ts';

interface Observed {
  readonly observations: readonly (string | { readonly obs: string; readonly invalid_reason: string })[];
  readonly dones: readonly boolean[];
  readonly valids: readonly boolean[];
}

const PATH = '/get_observation';
const information = (text: string): string => `\n\n<information>${text}</information>\n\n`;

test('the last search of an action counts, without the spaces around it, and before an answer', async (t) => {
  const retriever = new FakeRetriever();
  const actions = [
    '<search>first</search> <information></information> <search>\n second\nline </search>',
    '<answer>Oslo</answer><search>third</search>',
    '<search>not closed',
    '</search>fourth<search>',
  ];
  const { json } = await postTo(build(t, retriever), PATH, { trajectory_ids: ['a', 'b', 'c', 'd'], actions });
  const { dones, valids } = json as Observed;
  assert.deepEqual(retriever.calls[0]?.queries, ['second\nline', 'third']);
  assert.deepEqual([dones, valids], [Array(4).fill(false), [true, true, false, false]]);
});

test('an end may also stand in the extra fields, and needs no trajectory in a list', async (t) => {
  const retriever = new FakeRetriever();
  const app = build(t, retriever);
  const ended = { observations: [''], dones: [true], valids: [true], processing_time_ms: 4 };
  for (const body of [
    { trajectory_ids: ['a'], actions: ['<search>x</search>'], extra_fields: [{ finish: 1 }] },
    { trajectory_ids: 'f3a0', actions: [''], finish: [true], is_last_step: [true] },
  ]) {
    assert.deepEqual((await postTo(app, PATH, body)).json, ended, JSON.stringify(body));
  }
  assert.deepEqual(
    retriever.calls.map(({ queries }) => queries),
    [[], []],
  );
  const overridden = { trajectory_ids: ['a'], actions: [''], finish: [false], extra_fields: [{ finish: true }] };
  assert.deepEqual(((await postTo(app, PATH, overridden)).json as Observed).dones, [false]);
});

test('the question of an action is embedded only if the server is started for that', async (t) => {
  const body = {
    trajectory_ids: ['a', 'b', 'c'],
    actions: Array(3).fill('<search>birthplace</search>'),
    extra_fields: [{ question: 'Who?' }, { question: ['not a text'] }, null],
  };
  const asked = { question: 'Who?', query: 'birthplace' };
  for (const [dialects, template] of [
    [[], 'query'],
    [['verl-tool-question'], undefined],
  ] as const) {
    const retriever = new FakeRetriever();
    assert.equal((await postTo(build(t, retriever, { dialects }), PATH, body)).status, 200);
    assert.deepEqual(retriever.calls[0]?.queries, [asked, 'birthplace', 'birthplace']);
    assert.equal(retriever.calls[0]?.template, template);
  }
});

test('searches are recorded with the trajectories that made them', async (t) => {
  const recorded: RecordedSearch[] = [];
  const record = { record: (_request: object, search: RecordedSearch) => void recorded.push(search) };
  await postTo(build(t, new FakeRetriever(), { record }), PATH, {
    trajectory_ids: ['a', 7, { run: 1 }],
    actions: ['<answer>x</answer>', '<search>y</search>', '<search>z</search>'],
    extra_fields: [{}, { index: 12, split: 'train' }, { index: {}, split: 'test' }],
    record: { turn: [1, 2, 3] },
  });
  const [{ queries, origins }] = recorded as [RecordedSearch];
  assert.deepEqual(queries, ['y', 'z']);
  assert.deepEqual(origins, [
    { trajectory: '7', questionId: '12', split: 'train', turn: 2 },
    { trajectory: '{"run":1}', split: 'test', turn: 3 },
  ]);
});

test('a query that fails is a sentence for the policy, while the others are answered', async (t) => {
  const outcome = (_input: unknown, position: number) =>
    position === 1 ? ({ ok: false, error: new TrawlError('ENCODING_FAILED', 'a bug') } as const) : undefined;
  const { status, json } = await postTo(build(t, new FakeRetriever({ outcome })), PATH, {
    trajectory_ids: ['a', 'b'],
    actions: ['<search>x</search>', '<search>y</search>'],
  });
  const { observations, dones, valids } = json as Observed;
  assert.equal(status, 200);
  assert.match(observations[0] as string, /^\n\n<information>Doc 1\(Title: /);
  assert.equal(observations[1], information('Search temporarily unavailable'));
  assert.deepEqual(
    [dones, valids],
    [
      [false, false],
      [true, false],
    ],
  );
});

test('--topk of the server is the number of passages', async (t) => {
  const retriever = new FakeRetriever();
  const body = { trajectory_ids: ['a'], actions: ['<search>x</search>'], topk: 1 };
  const { json } = await postTo(build(t, retriever, { topk: 2 }), PATH, body);
  assert.equal(((json as Observed).observations[0] as string).match(/^(?:<information>)?Doc \d/gm)?.length, 2);
});

test('lists of another length than the actions, and entries of another type, are refused', async (t) => {
  const app = build(t, new FakeRetriever(), { maxQueries: 3 });
  const right = { trajectory_ids: ['a', 'b'], actions: ['', ''] };
  const cases: readonly [body: object, status: number, loc: readonly unknown[]][] = [
    [{ actions: [''] }, 422, ['body', 'trajectory_ids']],
    [{ trajectory_ids: ['a'] }, 422, ['body', 'actions']],
    [{ ...right, actions: ['', 3] }, 422, ['body', 'actions', 1]],
    [{ ...right, trajectory_ids: ['a'] }, 422, ['body', 'trajectory_ids']],
    [{ ...right, trajectory_ids: 'ab' }, 422, ['body', 'trajectory_ids']],
    [{ ...right, finish: [true] }, 422, ['body', 'finish']],
    [{ ...right, is_last_step: [] }, 422, ['body', 'is_last_step']],
    [{ ...right, extra_fields: [{}] }, 422, ['body', 'extra_fields']],
    [{ ...right, extra_fields: [{}, 'x'] }, 422, ['body', 'extra_fields', '1']],
    [{ trajectory_ids: 'a', actions: Array(4).fill('') }, 413, ['body', 'actions']],
  ];
  for (const [body, status, loc] of cases) {
    const answer = await postTo(app, PATH, body);
    assert.equal(answer.status, status, JSON.stringify(body));
    assert.deepEqual((errorOf(answer.json).detail as { loc: unknown[] }[])[0]?.loc, loc, JSON.stringify(body));
  }
  assert.match((await postTo(app, PATH, { ...right, finish: [true] })).text, /got 1 for 2 actions/);
});
