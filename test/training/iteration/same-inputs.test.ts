import assert from 'node:assert/strict';
import { renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { goBack } from '../../../training/iteration/serve-iteration.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { FakeLoop } from './fake-loop.ts';

test('the same inputs again have nothing to do, and after going back they are refused unless they are made anew', async (t) => {
  const loop = await FakeLoop.make(t);
  await loop.publish('one');
  assert.equal((await loop.run('one')).state, 'current');
  assert.deepEqual(await goBack(loop.folder, undefined, []).then(({ from, to }) => [from?.number, to.number]), [1, 0]);
  await assert.rejects(
    loop.run('one'),
    trawlError('USAGE', /Iteration 1 was made from the same inputs, .*--back --to 1/),
  );
  assert.equal((await loop.run('one', { restart: true })).number, 2);
});

test('an iteration that --restart made anew from the inputs of a kept one has nothing to do when it is served', async (t) => {
  const loop = await FakeLoop.make(t);
  await loop.publish('one');
  await goBack(loop.folder, undefined, []);
  assert.equal((await loop.run('one', { restart: true })).number, 2);
  const again = await loop.run('one');
  assert.deepEqual([again.state, again.number], ['current', 2]);
  assert.equal((await loop.run('one', { restart: true })).state, 'current');
  // Of two that are not served, the newer one is named.
  await goBack(loop.folder, 0, []);
  await assert.rejects(loop.run('one'), trawlError('USAGE', /Iteration 2 was made from the same inputs/));
});

test('settings whose members are in another order are the same', async (t) => {
  const loop = await FakeLoop.make(t);
  loop.checkpoint('one');
  await loop.run('one', { settings: { overrides: { pooling: 'cls', dimension: 4 } }, until: 'model' });
  await loop.run('one', { settings: { overrides: { dimension: 4, pooling: 'cls' } }, until: 'index' });
  assert.deepEqual(loop.steps, ['model', 'index']);
  await assert.rejects(
    loop.run('one', { settings: { overrides: { dimension: 8, pooling: 'cls' } } }),
    trawlError('BUILD_DIFFERS', /overrides was \{"dimension":4.* and is \{"dimension":8/),
  );
});

test('no summary shares its lists with another one', async (t) => {
  const loop = await FakeLoop.make(t);
  const { refusals, removed } = await loop.publish('one');
  const current = await loop.run('one');
  assert.ok(current.refusals !== refusals && current.removed !== removed);
  assert.ok((await loop.run('one')).refusals !== current.refusals);
});

test('a checkpoint and a corpus that were moved are the same, for an unfinished iteration and for the one that is served', async (t) => {
  const loop = await FakeLoop.make(t);
  loop.checkpoint('one');
  await loop.run('one', { until: 'model' });
  renameSync(join(loop.checkpoints, 'one'), join(loop.checkpoints, 'moved'));
  const elsewhere = join(loop.checkpoints, 'corpus.jsonl');
  renameSync(loop.corpus, elsewhere);
  const inputs = (name: string, corpus: string) => ({
    inputs: { checkpoint: join(loop.checkpoints, name), corpus: [corpus], corpusFormat: undefined, settings: {} },
  });
  await loop.run('moved', { ...inputs('moved', elsewhere), until: 'index' });
  assert.deepEqual(loop.steps, ['model', 'index']);
  // Known by its new path once it is gone.
  rmSync(join(loop.checkpoints, 'moved'), { recursive: true });
  assert.equal((await loop.run('moved', inputs('moved', elsewhere))).state, 'published');
  assert.equal((await loop.run('moved', inputs('moved', elsewhere))).state, 'current');
  renameSync(elsewhere, loop.corpus);
  assert.equal((await loop.run('moved')).state, 'current');
  // Its name decides the format, so a renamed file is another one.
  const renamed = join(loop.checkpoints, 'corpus.tsv');
  renameSync(loop.corpus, renamed);
  loop.checkpoint('two');
  await loop.run('two', { ...inputs('two', renamed), until: 'model' });
  renameSync(renamed, loop.corpus);
  await assert.rejects(loop.run('two'), trawlError('BUILD_DIFFERS', /corpus: \S+corpus\.tsv, now \S+corpus\.jsonl/));
});
