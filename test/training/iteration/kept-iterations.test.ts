import assert from 'node:assert/strict';
import { existsSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { discardIteration } from '../../../training/iteration/claim-iteration.ts';
import { pruneIterations } from '../../../training/iteration/iterations-folder.ts';
import { readJournal } from '../../../training/iteration/records.ts';
import { goBack } from '../../../training/iteration/serve-iteration.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { FakeLoop, killedBehindLink } from './fake-loop.ts';

test('an iteration is discarded with its files, unless it is served already', async (t) => {
  const loop = await FakeLoop.make(t);
  assert.equal(await discardIteration(loop.folder), undefined);
  loop.checkpoint('one');
  assert.equal((await loop.run('one', { until: 'measures' })).state, 'stopped');
  assert.deepEqual(loop.folders, ['0001']);
  assert.equal(await discardIteration(loop.folder), 1);
  assert.deepEqual(loop.folders, []);
  loop.checkpoint('two');
  await loop.run('two', { until: 'model' });
  assert.equal((await loop.run('one', { restart: true })).number, 3);
  assert.deepEqual(loop.folders, ['0003']);
  // Killed between the link and the last record.
  await killedBehindLink(loop, 'three');
  await assert.rejects(discardIteration(loop.folder), trawlError('USAGE', /Iteration 4 is served already.*--back/));
  assert.equal((await loop.run('three')).state, 'published');
  assert.equal(readJournal(loop.folder.root), undefined);
});

test('the served iteration, the one before and the newest are kept', async (t) => {
  const loop = await FakeLoop.make(t);
  for (const name of ['one', 'two', 'three', 'four']) await loop.publish(name);
  // Without a server nobody knows what is in use. What a killed discard left belongs to nobody.
  await loop.run('one', { restart: true, until: 'model' });
  await discardIteration(loop.folder);
  symlinkSync(loop.corpus, join(loop.folder.root, 'iterations', '0005'));
  mkdirSync(join(loop.folder.root, 'iterations', '0009'));
  assert.deepEqual(loop.folders, ['0001', '0002', '0003', '0004', '0005', '0009']);
  await goBack(loop.folder, 2, []);
  assert.deepEqual(await pruneIterations(loop.folder, 3), [3]);
  assert.deepEqual(loop.folders, ['0001', '0002', '0004', '0009'], 'a number that was never given is not ours');
  rmSync(join(loop.folder.root, 'iterations', '0009'), { recursive: true });
  assert.ok(existsSync(loop.corpus), 'a link is removed, not what it points to');
  await assert.rejects(
    goBack(loop.folder, 3, []),
    trawlError('USAGE', /no index of iteration 3 any more\. It has 0, 1, 2, 4\./),
  );
  // 4 was left for 2.
  assert.deepEqual(await pruneIterations(loop.folder, 2), []);
  loop.checkpoint('unfinished');
  await loop.run('unfinished', { until: 'index' });
  // It is compared with 2, also if another is served meanwhile.
  await goBack(loop.folder, 1, []);
  await goBack(loop.folder, 0, []);
  assert.deepEqual(await pruneIterations(loop.folder, 2), [4]);
  assert.deepEqual(loop.folders, ['0001', '0002', '0006']);
  assert.deepEqual(
    loop.folder.history.iterations.map(({ kept }) => kept),
    [true, true, true, false, false],
  );
});

test('after another iteration is published, the one that was left may be removed', async (t) => {
  const loop = await FakeLoop.make(t);
  for (const name of ['one', 'two', 'three']) await loop.publish(name);
  await goBack(loop.folder, 1, []);
  assert.equal(loop.folder.history.left, 3);
  await loop.publish('four');
  assert.equal(loop.folder.history.left, undefined);
  assert.deepEqual(await pruneIterations(loop.folder, 2), [2, 3]);
});

test('going back to the iteration that is served changes nothing', async (t) => {
  const loop = await FakeLoop.make(t);
  await loop.publish('one');
  const { from, to } = await goBack(loop.folder, 1, []);
  assert.deepEqual([from, to.number, loop.folder.history.left], [null, 1, undefined]);
});
