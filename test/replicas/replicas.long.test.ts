import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileFolder } from '../cli/run-trawl.ts';
import { buildSampleIndex } from '../helpers/sample-index.ts';
import { replicas } from './replicas.ts';

const folder = await fileFolder();

test('three servers under load lose and mix no answer while one is killed and an index is swapped', async () => {
  const index = await buildSampleIndex(folder);
  const result = await replicas({ folder, index, answers: 1_500, clients: 2 });
  assert.deepEqual(result.failed, []);
  assert.deepEqual(result.mixed, []);
  assert.equal(result.oldAfterSwap, 0);
  assert.ok(result.ofOld > 0 && result.ofNew > 0 && result.afterSwap > 0, JSON.stringify(result));
  assert.ok(result.changedQueries > result.queries / 4, `${result.changedQueries} queries have another answer`);
  assert.ok(result.repeatedTries > 0, 'the killed server was noticed');
});
