import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readlinkSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { IterationsFolder } from '../../../training/iteration/iterations-folder.ts';
import { readJournal, writeHistory } from '../../../training/iteration/records.ts';
import { goBack } from '../../../training/iteration/serve-iteration.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { changeIndex, FakeLoop, makeIndex } from './fake-loop.ts';

test('a lost link is never led to the first index by itself once another was published', async (t) => {
  const temp = await tempFolder(t);
  const [start, root] = [join(temp, 'start'), join(temp, 'loop')];
  makeIndex(start);
  changeIndex(start, 'c'.repeat(32));
  const begun = await IterationsFolder.begin(root, start);
  // Killed before the link was made.
  rmSync(begun.link);
  assert.equal((await IterationsFolder.begin(root, start)).current().number, 0);
  const { history } = begun;
  const second = { ...history.iterations[0]!, number: 1, index: 'iterations/0001/index', base: 0 };
  makeIndex(join(root, 'iterations', '0001', 'index'));
  await writeHistory(root, { ...history, next: 2, iterations: [...history.iterations, second] });
  rmSync(begun.link);
  const lost = await IterationsFolder.begin(root, start);
  assert.throws(
    () => lost.current(),
    trawlError('CONFIG_INVALID', /current does not exist\. Choose what is served: .*--back --to NUMBER/),
  );
  assert.equal((await goBack(lost, 1, [])).to.number, 1);
  rmSync(begun.link);
  mkdirSync(begun.link);
  assert.throws(() => lost.current(), trawlError('CONFIG_INVALID', /current is not a link: .*Move it away/));
  await assert.rejects(goBack(lost, 1, []), trawlError('CONFIG_INVALID', /is not a link/));
});

test('the first index may be moved: --from names its new place, if it is the same index', async (t) => {
  const temp = await tempFolder(t);
  const [start, moved, root] = [join(temp, 'start'), join(temp, 'moved'), join(temp, 'loop')];
  makeIndex(start);
  changeIndex(start, 'c'.repeat(32));
  const folder = await IterationsFolder.begin(root, start);
  cpSync(start, moved, { recursive: true });
  await assert.rejects(
    IterationsFolder.begin(root, moved),
    trawlError('USAGE', /began with \S+start, not with \S+moved\. Omit --from/),
  );
  rmSync(start, { recursive: true });
  assert.throws(
    () => folder.iteration(0),
    trawlError('INDEX_NOT_FOUND', /iteration 0 is not in \S+start any more\. .*--from INDEX/),
  );
  const other = join(temp, 'other');
  makeIndex(other);
  changeIndex(other, 'd'.repeat(32));
  await assert.rejects(IterationsFolder.begin(root, other), trawlError('USAGE', /which has another generation/));
  await IterationsFolder.begin(root, moved);
  assert.deepEqual([folder.iteration(0).index, readlinkSync(folder.link)], [moved, moved]);
});

test('folders that Trawl did not make are neither taken for finished steps nor for a loop', async (t) => {
  const loop = await FakeLoop.make(t);
  loop.checkpoint('one');
  const foreign = join(loop.folder.root, 'iterations', '0001');
  mkdirSync(join(foreign, 'model'), { recursive: true });
  await assert.rejects(loop.run('one'), trawlError('CONFIG_INVALID', /0001 exists, but no iteration 1 was begun/));
  assert.equal(readJournal(loop.folder.root), undefined);
  const other = await tempFolder(t);
  const start = join(other, 'start');
  makeIndex(start);
  changeIndex(start, 'c'.repeat(32));
  mkdirSync(join(other, 'loop', 'iterations', '0007'), { recursive: true });
  await assert.rejects(
    IterationsFolder.begin(join(other, 'loop'), start),
    trawlError('CONFIG_INVALID', /iterations is not empty, but .* has no iterations\.json/),
  );
  rmSync(join(other, 'loop', 'iterations', '0007'), { recursive: true });
  assert.equal((await IterationsFolder.begin(join(other, 'loop'), start)).current().generation, 'c'.repeat(32));
});
