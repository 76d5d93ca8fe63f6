import assert from 'node:assert/strict';
import { test } from 'node:test';
import { goBack } from '../../../training/iteration/serve-iteration.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { changeIndex, FakeLoop } from './fake-loop.ts';
import { fakeServer } from './fake-server.ts';

test('going back is possible while an index is built, which is then measured against what is served', async (t) => {
  const loop = await FakeLoop.make(t);
  await loop.publish('one');
  loop.checkpoint('two');
  loop.steps.length = 0;
  loop.during.index = async () => void (await goBack(loop.folder, undefined, []));
  const summary = await loop.run('two');
  assert.deepEqual([summary.state, summary.base], ['published', 0]);
  assert.deepEqual(loop.steps, ['model', 'index', 'measure 2 against 0']);
  // Also between measuring and publishing.
  loop.checkpoint('three');
  loop.steps.length = 0;
  loop.during = {
    'measure 3 against 2': async () => void (await goBack(loop.folder, 1, [])),
  };
  assert.equal((await loop.run('three')).base, 1);
  assert.deepEqual(loop.steps, ['model', 'index', 'measure 3 against 2', 'measure 3 against 1']);
});

test('an index that was changed in place is known by its present generation', async (t) => {
  const loop = await FakeLoop.make(t);
  const fake = await fakeServer(t, loop);
  const changed = 'a'.repeat(32);
  const start = loop.folder.indexOf(loop.folder.current());
  changeIndex(start, changed);
  fake.generation = changed;
  loop.checkpoint('one');
  await loop.run('one', { servers: [fake.server], until: 'measures' });
  // The new index too, before it is published: it is measured again.
  changeIndex(loop.folder.indexOf({ index: 'iterations/0001/index' }), 'b'.repeat(32));
  const summary = await loop.run('one', { servers: [fake.server] });
  assert.deepEqual([summary.state, summary.generation], ['published', 'b'.repeat(32)]);
  assert.equal(summary.measures!.against, changed);
  assert.deepEqual(loop.steps, ['model', 'index', 'measure 1 against 0', 'measure 1 against 0']);
  await goBack(loop.folder, 0, [fake.server]);
  assert.equal(fake.generation, changed);
});

test('an iteration is not measured forever if what is served never stays the same', async (t) => {
  const loop = await FakeLoop.make(t);
  loop.checkpoint('one');
  const start = loop.folder.indexOf(loop.folder.current());
  let changes = 0;
  const gates = {
    minRecall: undefined,
    maxRecallDrop: 0,
    maxChanged: undefined,
    // Read after measuring, before publishing.
    get maxReplaced() {
      changeIndex(start, String(++changes).repeat(32));
      return undefined;
    },
  };
  await assert.rejects(
    loop.run('one', { gates }),
    trawlError('CONFIG_INVALID', /changed 4 times while iteration 1 was compared with it/),
  );
  assert.equal(loop.steps.filter((step) => step.startsWith('measure')).length, 4);
  assert.equal((await loop.run('one')).state, 'published');
});

test('recall 0 in both indexes is refused, unless any recall is accepted', async (t) => {
  const loop = await FakeLoop.make(t);
  loop.checkpoint('one');
  loop.recall = { 0: 0, 1: 0 };
  const { state, refusals } = await loop.run('one');
  assert.equal(state, 'refused');
  assert.deepEqual(
    refusals.map(({ value, accept }) => [value, accept]),
    [[null, '--max-recall-drop 1']],
  );
  assert.match(refusals[0]!.text, /judgements of --eval or --qrels use the ids of the corpus/);
  const gates = { minRecall: undefined, maxRecallDrop: 1, maxChanged: undefined, maxReplaced: undefined };
  assert.equal((await loop.run('one', { gates })).state, 'published');
});
