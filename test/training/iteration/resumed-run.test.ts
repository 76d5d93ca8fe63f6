import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readJournal } from '../../../training/iteration/records.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { FakeLoop } from './fake-loop.ts';

test('an iteration resumes behind its finished steps, and with other inputs it is refused with what differs', async (t) => {
  const loop = await FakeLoop.make(t);
  loop.checkpoint('one');
  loop.during.index = () => Promise.reject(new Error('killed'));
  await assert.rejects(loop.run('one'), /killed/);
  loop.during = {};
  loop.checkpoint('two');
  const differs = (expected: RegExp) =>
    trawlError(
      'BUILD_DIFFERS',
      new RegExp(`Iteration 1 of .* is unfinished and has other inputs: .*${expected.source}`),
    );
  await assert.rejects(loop.run('two'), differs(/checkpoint: \S+one, now \S+two/));
  await assert.rejects(loop.run('one', { settings: { dimension: 8 } }), differs(/dimension was not set and is 8/));
  writeFileSync(loop.corpus, '{"id": 1, "contents": "y"}\n');
  await assert.rejects(loop.run('one'), differs(/corpus\.jsonl changed/));
  writeFileSync(loop.corpus, '{"id": 1, "contents": "x"}\n');
  writeFileSync(join(loop.checkpoints, 'one', 'model.safetensors'), 'weights');
  await assert.rejects(loop.run('one'), differs(/checkpoint \S+one: model\.safetensors changed/));
  // The model is made, so the trainer may remove the checkpoint.
  rmSync(join(loop.checkpoints, 'one'), { recursive: true });
  assert.equal((await loop.run('one')).state, 'published');
  assert.deepEqual(loop.steps, ['model', 'index', 'index', 'measure 1 against 0']);
});

test('a checkpoint that is gone before its model is made is named with the way out, and nothing is discarded', async (t) => {
  const loop = await FakeLoop.make(t);
  loop.checkpoint('one');
  loop.during.model = () => Promise.reject(new Error('killed'));
  await assert.rejects(loop.run('one'), /killed/);
  loop.during = {};
  rmSync(join(loop.checkpoints, 'one'), { recursive: true });
  await assert.rejects(
    loop.run('one'),
    trawlError(
      'MODEL_NOT_FOUND',
      /There is no checkpoint \S+one\. .*Iteration 1 of \S+ is unfinished\. Its model was not made yet, so \S+one is needed: restore it, or discard .*--discard --root/,
    ),
  );
  // Also one whose model was made for another iteration.
  const other = await FakeLoop.make(t);
  await other.publish('one');
  rmSync(join(other.checkpoints, 'one'), { recursive: true });
  await assert.rejects(other.run('one', { settings: { dimension: 8 } }), trawlError('MODEL_NOT_FOUND', /There is no/));
  assert.equal(readJournal(other.folder.root), undefined);
  // A mistyped path of --restart does not cost what was done.
  loop.checkpoint('two');
  await assert.rejects(
    loop.run('three', { restart: true }),
    trawlError('MODEL_NOT_FOUND', /There is no checkpoint \S+three/),
  );
  assert.equal(readJournal(loop.folder.root)?.number, 1);
  assert.equal((await loop.run('two', { restart: true, until: 'model' })).number, 2);
  await assert.rejects(
    loop.run('four'),
    trawlError('MODEL_NOT_FOUND', /Iteration 2 .* Its model was made of \S+two: give that path, which may be gone/),
  );
});

test('what a trainer leaves of an imported checkpoint resumes; another file in it does not', async (t) => {
  const loop = await FakeLoop.make(t);
  const checkpoint = loop.checkpoint('one');
  writeFileSync(join(checkpoint, 'model.safetensors'), 'weights');
  await loop.run('one', { until: 'model' });
  rmSync(join(checkpoint, 'model.safetensors'));
  assert.equal((await loop.run('one', { until: 'index' })).state, 'stopped');
  writeFileSync(join(checkpoint, 'model.safetensors'), 'other weights');
  await assert.rejects(loop.run('one'), trawlError('BUILD_DIFFERS', /model\.safetensors changed/));
  rmSync(join(checkpoint, 'model.safetensors'));
  assert.equal((await loop.run('one')).state, 'published');
  assert.equal((await loop.run('one')).state, 'current');
});

test('a second run beside a running one is refused', async (t) => {
  const loop = await FakeLoop.make(t);
  loop.checkpoint('one');
  let second: unknown;
  loop.during.model = async () => {
    second = await loop.run('one').catch((error: unknown) => error);
  };
  await loop.run('one');
  assert.ok(trawlError('BUILD_LOCKED', /Another trawl iterate works in/)(second));
});

test('a stopped run resumes, whatever it was doing', async (t) => {
  const loop = await FakeLoop.make(t);
  loop.checkpoint('one');
  const stop = new AbortController();
  loop.during.model = () => stop.abort();
  const error = await loop.run('one', { signal: stop.signal }).catch((reason: unknown) => reason);
  assert.ok(trawlError('CANCELLED')(error));
  assert.equal((error as { details: { resumable: boolean } }).details.resumable, true);
  loop.during = {};
  assert.equal((await loop.run('one')).state, 'published');
});
