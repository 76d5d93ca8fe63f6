import assert from 'node:assert/strict';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { loadQueries } from '../../../training/mining/load-queries.ts';
import type { MiningQuery } from '../../../training/mining/mined-query.ts';
import { WorkFile } from '../../../training/mining/work-file.ts';
import { KnownQuestions } from '../../../training/records/known-questions.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { miningQuery } from './mining-fixtures.ts';

async function workFile(t: TestContext): Promise<WorkFile> {
  const work = new WorkFile(join(await tempFolder(t), 'x.work'));
  t.after(() => work.close());
  work.clear();
  return work;
}

async function* streamOf(queries: readonly MiningQuery[]): AsyncGenerator<MiningQuery, void> {
  yield* queries;
}

test('queries come back in their order, from any place', async (t) => {
  const work = await workFile(t);
  const asked = ['a', 'b', 'c'].map((question) => miningQuery({ question }));
  for (const query of asked) assert.ok(work.addQuery(query));
  assert.equal(work.queryCount, 3);
  assert.deepEqual(
    work.queries(1, 5).map(({ place, query }) => [place, query]),
    [
      [1, asked[1]],
      [2, asked[2]],
    ],
  );
  assert.deepEqual(
    work.queries(0, 1).map(({ query }) => query.question),
    ['a'],
  );
});

test('a query that is asked again adds its positives and answers to the first', async (t) => {
  const work = await workFile(t);
  assert.ok(work.addQuery(miningQuery({ id: '1', query: 'x', positiveIds: ['p1', 'p2'], answers: ['a'] })));
  assert.ok(!work.addQuery(miningQuery({ id: '2', query: 'x', positiveIds: ['p2', 'p3'], answers: ['b'] })));
  assert.ok(work.addQuery(miningQuery({ id: '3', query: 'y' })));
  const [first] = work.queries(0, 1);
  assert.deepEqual(
    [first!.query.id, first!.query.positiveIds, first!.query.answers],
    ['1', ['p1', 'p2', 'p3'], ['a', 'b']],
  );
});

test('siblings are the queries with the same question, or with the same text for another question', async (t) => {
  const work = await workFile(t);
  work.addQuery(miningQuery({ question: 'Who?', query: 'first hop', positiveIds: ['p1'] }));
  work.addQuery(miningQuery({ question: ' who? ', query: 'second hop', positiveIds: ['p2', 'p1'] }));
  work.addQuery(miningQuery({ question: 'Where?', query: 'First hop', positiveIds: ['p3'] }));
  work.addQuery(miningQuery({ question: 'When?', query: 'another', positiveIds: ['p4'] }));
  const siblings = work.queries(0, 4).map(({ siblingIds }) => siblingIds);
  assert.deepEqual(siblings, [['p2', 'p3'], [], ['p1'], []]);
  const [first, second, third] = work.queries(0, 3);
  assert.equal(first!.group, second!.group);
  assert.notEqual(first!.group, third!.group);
});

test('queries without a question are no siblings, unless they have the same text', async (t) => {
  const work = await workFile(t);
  work.addQuery(miningQuery({ question: '', query: 'first hop', positiveIds: ['p1'] }));
  work.addQuery(miningQuery({ question: ' “” ', query: 'second hop', positiveIds: ['p2'] }));
  work.addQuery(miningQuery({ question: '', query: 'First hop', positiveIds: ['p3'] }));
  work.addQuery(miningQuery({ question: '', query: '', positiveIds: ['p4'] }));
  work.addQuery(miningQuery({ question: '', positiveIds: ['p5'] }));
  const stored = work.queries(0, 5);
  assert.deepEqual(
    stored.map(({ siblingIds }) => siblingIds),
    [['p3'], [], ['p1'], [], []],
  );
  assert.equal(new Set(stored.map(({ group }) => group)).size, 4);
});

test('a new file has the permissions that are asked for', async (t) => {
  const path = join(await tempFolder(t), 'x.work');
  const work = new WorkFile(path, 0o600);
  t.after(() => work.close());
  work.clear();
  await work.fill(async () => {
    work.addQuery(miningQuery());
    for (const file of [path, `${path}-journal`]) assert.equal(statSync(file).mode & 0o777, 0o600, file);
  });
});

test('a judged question is found by the rule of known questions', async (t) => {
  const work = await workFile(t);
  const judged = [
    miningQuery({ id: '1', dataset: 'nq', question: 'Who?' }),
    miningQuery({ id: '1', dataset: 'hotpotqa', question: 'Where?' }),
    miningQuery({ id: '2', question: 'When?' }),
    miningQuery({ id: '3', question: 'Why?' }),
    miningQuery({ id: '3', question: 'How?' }),
    miningQuery({ id: '4', dataset: 'nq', question: 'when?', positiveIds: ['p4'] }),
  ];
  for (const question of judged) work.addJudged(question);
  const known = new KnownQuestions(judged);
  const ids = ['1', '2', '3', '4', '5', '', undefined];
  const datasets = ['nq', 'hotpotqa', 'musique', undefined];
  const texts = ['Who?', ' who ', 'where', ' how? ', 'WHEN?', 'asked', '', undefined];
  let found = 0;
  for (const id of ids) {
    for (const dataset of datasets) {
      for (const text of texts) {
        for (const query of ['a query', 'Why?']) {
          const wanted = { id, dataset, text, query };
          const question = work.judged(wanted)?.question;
          assert.equal(question?.toLowerCase(), known.find(wanted)?.question.toLowerCase(), JSON.stringify(wanted));
          if (question !== undefined) found++;
        }
      }
    }
  }
  assert.ok(found > 100, `${found} found`);
  assert.equal(work.judged({ id: '1', dataset: 'hotpotqa', text: 'asked' })?.question, 'Where?');
  assert.equal(work.judged({ id: '2', dataset: 'nq', text: 'asked' }), undefined);
  assert.equal(work.judged({ id: '2', dataset: 'nq', text: undefined })?.question, 'When?');
  assert.deepEqual(
    work.judged({ id: '4', dataset: 'nq', text: undefined })?.positiveIds,
    ['p1', 'p4'],
    'of equal questions',
  );
});

test('what is left out is counted by its reason', async (t) => {
  const work = await workFile(t);
  const queries = [miningQuery(), miningQuery(), miningQuery({ question: 'b', positiveIds: [] })];
  const counts = await loadQueries(work, { queries: streamOf(queries), excluded: [] });
  assert.deepEqual(counts, { read: 3, excluded: 0, unjudged: 1, failed: 0, other_split: 0, merged: 1 });
});

test('a value is there after a reopening, an unfinished filling is not', async (t) => {
  const path = join(await tempFolder(t), 'x.work');
  const work = new WorkFile(path);
  assert.equal(work.load('settings'), undefined);
  work.clear();
  work.save('progress', { next: 3 });
  const failing = work.fill(async () => {
    work.addQuery(miningQuery());
    throw new Error('stopped');
  });
  await assert.rejects(failing, /stopped/);
  work.close();
  const again = new WorkFile(path);
  assert.deepEqual([again.load('progress'), again.queryCount], [{ next: 3 }, 0]);
  again.remove();
  assert.ok(!existsSync(path));
});

test('two runs cannot have one work file open', async (t) => {
  const path = join(await tempFolder(t), 'x.work');
  const first = new WorkFile(path);
  assert.throws(() => new WorkFile(path), trawlError('OUTPUT_EXISTS', /Another run has .*x\.work open/));
  first.close();
  new WorkFile(path).close();
});

test('a folder that does not exist is named', async (t) => {
  const path = join(await tempFolder(t), 'no', 'x.work');
  assert.throws(() => new WorkFile(path), trawlError('OUTPUT_NOT_WRITABLE', /x\.work cannot be written/));
});
