import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setImmediate as nextIteration } from 'node:timers/promises';
import { RecordFile } from '../../../src/server/recording/record-file.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

interface Opened {
  readonly file: RecordFile;
  readonly path: string;
  /** How often the file was found removed. */
  removals(): number;
}

async function openFile(t: TestContext, maxFileBytes = Number.POSITIVE_INFINITY): Promise<Opened> {
  const folder = join(await tempFolder(t), 'records');
  await mkdir(folder);
  const path = join(folder, 'record.jsonl');
  let removals = 0;
  const file = await RecordFile.open({ path, maxFileBytes, keep: 2, onRemoved: () => void removals++ });
  t.after(() => file.close());
  return { file, path, removals: () => removals };
}

const textOf = (path: string): string => readFileSync(path, 'utf8');

test('when the file is renamed the next lines go to a new file, or to the one created in its place', async (t) => {
  const { file, path, removals } = await openFile(t);
  await file.append('a\n');
  await rename(path, `${path}.2`);
  await file.append('b\n');
  await rename(path, `${path}.1`);
  writeFileSync(path, '');
  await file.append('c\n');
  await file.append('d\n');
  assert.deepEqual([`${path}.2`, `${path}.1`, path].map(textOf), ['a\n', 'b\n', 'c\nd\n']);
  assert.equal(removals(), 0);
  assert.equal(statSync(`${path}.1`).mode & 0o777, 0o600);
});

test('reopening creates a file at the path at once', async (t) => {
  const { file, path } = await openFile(t);
  await rename(path, `${path}.1`);
  await file.reopen();
  assert.equal(textOf(path), '');
});

test('the file stays in use if its folder is renamed or its path is taken', async (t) => {
  const { file, path } = await openFile(t);
  const folder = join(path, '..');
  await rename(folder, `${folder}.old`);
  await file.append('moved\n');
  assert.equal(textOf(join(`${folder}.old`, 'record.jsonl')), 'moved\n');
  await rename(`${folder}.old`, folder);
  await file.append('back\n');
  assert.equal(textOf(path), 'moved\nback\n');
  await rename(path, `${path}.old`);
  await mkdir(path);
  await assert.rejects(file.reopen(), trawlError('OUTPUT_NOT_WRITABLE', /record\.jsonl/));
  await file.append('taken\n');
  assert.equal(textOf(`${path}.old`), 'moved\nback\ntaken\n');
});

test('a deleted file is created again, and no later line is lost', async (t) => {
  const { file, path, removals } = await openFile(t);
  for (const line of ['a\n', 'b\n', 'c\n']) {
    await rm(path);
    assert.equal(await file.append(line), true);
    assert.equal(textOf(path), line);
  }
  assert.equal(removals(), 3);
});

test('lines are reported as lost if the file is deleted while they are written', async (t) => {
  const { file, path, removals } = await openFile(t);
  const line = `${'x'.repeat(64 * 1024 * 1024)}\n`;
  const appending = file.append(line);
  while (statSync(path).size === 0) await nextIteration();
  await rm(path);
  assert.equal(await appending, false);
  assert.deepEqual([textOf(path), removals()], ['', 1]);
  assert.equal(await file.append('next\n'), true);
  assert.equal(textOf(path), 'next\n');
});

test('appending fails while the folder is missing, and creates the file again once it is back', async (t) => {
  const { file, path, removals } = await openFile(t);
  const folder = join(path, '..');
  await rm(folder, { recursive: true });
  for (const line of ['a\n', 'b\n']) await assert.rejects(file.append(line), { code: 'ENOENT' });
  assert.equal(removals(), 0);
  await mkdir(folder);
  assert.equal(await file.append('c\n'), true);
  assert.deepEqual([textOf(path), removals()], ['c\n', 1]);
});

test('a file that another program truncated is rotated by its new size', async (t) => {
  const { file, path } = await openFile(t, 10);
  await file.append('1234567\n');
  truncateSync(path);
  await file.append('abcdefg\n');
  assert.deepEqual([textOf(path), existsSync(`${path}.1`)], ['abcdefg\n', false]);
});
