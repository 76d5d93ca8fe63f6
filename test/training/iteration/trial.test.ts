import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { goBack } from '../../../training/iteration/serve-iteration.ts';
import { FakeLoop, generation } from './fake-loop.ts';

test('a model whose estimated recall is below a limit is refused before the index is built, and built when it is accepted', async (t) => {
  const loop = await FakeLoop.make(t);
  loop.checkpoint('one');
  const trial = { estimate: { value: 0.4, low: 0.3, high: 0.5 } };
  const { state, refusals, generation: built, trial: found } = await loop.run('one', { trial });
  assert.deepEqual([state, built, found!.estimate!.value], ['refused', null, 0.4]);
  assert.deepEqual(
    refusals.map(({ value, limit, accept }) => [value, limit, accept]),
    [[0.4, 0.5, '--triage-max-drop 0.1']],
  );
  assert.match(
    refusals[0]!.text,
    /^recall@10 of the new model is estimated as 0\.4000, and 0\.5000 in the served index; at least 0\.5000 is required\. The same estimate of the present encoder is wrong by \+0\.0150\. --triage-max-drop 0\.1 accepts it\.$/,
  );
  assert.deepEqual(loop.steps, ['model', 'triage 1 against 0']);
  assert.deepEqual(readdirSync(join(loop.folder.root, 'iterations', '0001')), ['model']);
  // The same trial is not made again.
  const accepted = { trial, trialGates: { minRecall: undefined, maxDrop: 0.1 } };
  assert.equal((await loop.run('one', { ...accepted, until: 'triage' })).state, 'stopped');
  assert.equal((await loop.run('one', accepted)).state, 'published');
  assert.deepEqual(loop.steps, ['model', 'triage 1 against 0', 'index', 'measure 1 against 0']);
  // Without a trial a refused model is built, too, and what a killed one left is removed.
  loop.checkpoint('two');
  assert.equal((await loop.run('two', { trial })).state, 'refused');
  mkdirSync(join(loop.folder.root, 'iterations', '0002', 'triage'));
  assert.equal((await loop.run('two')).state, 'published');
  assert.deepEqual(readdirSync(join(loop.folder.root, 'iterations', '0002')), ['index', 'model']);
});

test('a trial is made again for another sample, and for another index that is served meanwhile', async (t) => {
  const loop = await FakeLoop.make(t);
  await loop.publish('one');
  loop.checkpoint('two');
  loop.during['triage 2 against 1'] = () => Promise.reject(new Error('killed'));
  await assert.rejects(loop.run('two', { trial: {} }), /killed/);
  // What it embedded stays for the next run.
  assert.ok(existsSync(join(loop.folder.root, 'iterations', '0002', 'triage', 'vectors')));
  loop.during = {};
  loop.steps.length = 0;
  await loop.run('two', { trial: {}, until: 'triage' });
  await loop.run('two', { trial: {}, until: 'triage' });
  await loop.run('two', { trial: { sample: 200 }, until: 'triage' });
  await goBack(loop.folder, 0, []);
  const summary = await loop.run('two', { trial: { sample: 200 } });
  assert.deepEqual([summary.state, summary.base, summary.trial!.against], ['published', 0, generation(0)]);
  assert.deepEqual(loop.steps, [
    ...['triage 2 against 1', 'triage 2 against 1', 'triage 2 against 0'],
    ...['index', 'measure 2 against 0'],
  ]);
});
