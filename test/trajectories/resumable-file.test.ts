import assert from 'node:assert/strict';
import { appendFile, readdir, readFile, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { ResumableFile } from '../../trajectories/resumable-file.ts';
import { runModule } from '../helpers/run-module.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { trawlError } from '../helpers/trawl-error.ts';

const settings = { input: 'abc', k: 20 };
const fresh = { settings, overwrite: false };

test('a file is resumed at its last checkpoint, and what followed it is written again', async (t) => {
  const path = join(await tempFolder(t), 'out.json');
  const first = await ResumableFile.open(path, fresh);
  assert.equal(first.resumedState, undefined);
  await first.write('one,');
  await first.checkpoint({ done: 1 });
  await first.write('lost');
  await first.close();
  const second = await ResumableFile.open(path, fresh);
  assert.deepEqual(second.resumedState, { done: 1 });
  await second.write('two');
  await second.publish();
  assert.equal(await readFile(path, 'utf8'), 'one,two');
  assert.deepEqual(await readdir(join(path, '..')), ['out.json']);
});

test('a file without a checkpoint begins anew', async (t) => {
  const path = join(await tempFolder(t), 'out.json');
  const first = await ResumableFile.open(path, fresh);
  await first.write('much more text than the second time');
  await first.close();
  const second = await ResumableFile.open(path, fresh);
  await second.write('é');
  await second.publish();
  assert.equal(await readFile(path, 'utf8'), 'é');
});

test('other settings are refused with what differs, an existing file without overwrite', async (t) => {
  const path = join(await tempFolder(t), 'out.json');
  const first = await ResumableFile.open(path, fresh);
  await first.checkpoint({});
  await first.close();
  await assert.rejects(
    ResumableFile.open(path, { settings: { ...settings, k: 10 }, overwrite: false }),
    trawlError('BUILD_DIFFERS', /k was 20 and is now 10.*delete .*out\.json\.progress\.json to begin again/),
  );
  // The refused call holds no lock.
  const second = await ResumableFile.open(path, fresh);
  await second.publish();
  await assert.rejects(ResumableFile.open(path, fresh), trawlError('OUTPUT_EXISTS', /--overwrite/));
  const third = await ResumableFile.open(path, { settings, overwrite: true });
  assert.equal(third.resumedState, undefined);
  await third.write('new');
  assert.equal(await readFile(path, 'utf8'), '', 'the old file stays until the new one is complete');
  await third.publish();
  assert.equal(await readFile(path, 'utf8'), 'new');
});

test('damaged progress is refused, and progress without a partial file is ignored', async (t) => {
  const path = join(await tempFolder(t), 'out.json');
  const first = await ResumableFile.open(path, fresh);
  await first.write('0123456789');
  await first.checkpoint({});
  await first.close();
  await truncate(`${path}.partial`, 4);
  await assert.rejects(ResumableFile.open(path, fresh), trawlError('BUILD_DIFFERS', /4 bytes, fewer than the 10/));
  await writeFile(`${path}.progress.json`, '{"settings"');
  await assert.rejects(ResumableFile.open(path, fresh), trawlError('BUILD_DIFFERS', /not valid JSON/));
  const other = join(path, '..', 'other.json');
  await appendFile(`${other}.progress.json`, JSON.stringify({ settings, bytes: 10, state: {} }));
  const file = await ResumableFile.open(other, fresh);
  assert.equal(file.resumedState, undefined);
  await file.publish();
});

test('a second process is refused while the first one writes', async (t) => {
  const path = join(await tempFolder(t), 'out.json');
  const first = await ResumableFile.open(path, fresh);
  t.after(() => first.close());
  const { stderr } = runModule(
    `import { ResumableFile } from '#root/trajectories/resumable-file.js';
     await ResumableFile.open(${JSON.stringify(path)}, { settings: {}, overwrite: false }).catch((error) => console.error(error.code));`,
  );
  assert.match(stderr, /OUTPUT_EXISTS/);
});

test('a missing folder is named', async (t) => {
  const path = join(await tempFolder(t), 'absent', 'out.json');
  await assert.rejects(ResumableFile.open(path, fresh), trawlError('OUTPUT_NOT_WRITABLE', /absent/));
});

test('a progress file without its partial file is removed, and does not concern the file that begins then', async (t) => {
  const path = join(await tempFolder(t), 'out.json');
  await writeFile(`${path}.progress.json`, JSON.stringify({ settings: { input: 'other' }, bytes: 9, state: {} }));
  const first = await ResumableFile.open(path, fresh);
  assert.equal(first.resumedState, undefined);
  await first.close();
  // Killed before its first checkpoint.
  const second = await ResumableFile.open(path, fresh);
  await second.publish();
  assert.deepEqual(await readdir(join(path, '..')), ['out.json']);
});
