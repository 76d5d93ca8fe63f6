import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { writeJsonDurably } from '../../../src/base/system/durable-file.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';

test('a JSON file is written indented, with a newline at the end, and no temporary file stays', async (t) => {
  const folder = await tempFolder(t);
  const path = join(folder, 'a.json');
  await writeJsonDurably(path, { a: [1, 'ü\u2028'], b: null });
  assert.equal(readFileSync(path, 'utf8'), '{\n  "a": [\n    1,\n    "ü\u2028"\n  ],\n  "b": null\n}\n');
  assert.deepEqual(readdirSync(folder), ['a.json']);
});

test('a reader sees the old file or the new one, never a partial one', async (t) => {
  const path = join(await tempFolder(t), 'a.json');
  const value = (version: number): unknown => ({ version, filler: Array(20_000).fill(version) });
  await writeJsonDurably(path, value(0));
  let writing = true;
  const seen = new Set<number>();
  const reader = (async () => {
    while (writing) {
      const read = JSON.parse(readFileSync(path, 'utf8')) as { version: number; filler: number[] };
      assert.equal(read.filler.length, 20_000);
      assert.ok(read.filler.every((entry) => entry === read.version));
      seen.add(read.version);
      await new Promise((resolve) => setImmediate(resolve));
    }
  })();
  for (let version = 1; version <= 10; version++) await writeJsonDurably(path, value(version));
  writing = false;
  await reader;
  assert.ok(seen.size > 2, `${seen.size} versions were seen`);
});

test('a failed write leaves the old file unchanged and no temporary file', async (t) => {
  const folder = await tempFolder(t);
  const path = join(folder, 'a.json');
  await writeJsonDurably(path, { version: 1 });
  const circular: Record<string, unknown> = {};
  circular.self = circular;
  await assert.rejects(writeJsonDurably(path, circular), TypeError);
  assert.deepEqual(JSON.parse(readFileSync(path, 'utf8')), { version: 1 });
  assert.deepEqual(readdirSync(folder), ['a.json']);

  // A file cannot replace a folder: the rename fails after everything was written.
  mkdirSync(join(folder, 'b.json'));
  await assert.rejects(writeJsonDurably(join(folder, 'b.json'), {}));
  assert.deepEqual(readdirSync(folder).sort(), ['a.json', 'b.json']);
});

test('a temporary file of an earlier crash is replaced', async (t) => {
  const folder = await tempFolder(t);
  const path = join(folder, 'a.json');
  writeFileSync(`${path}.tmp`, 'a longer text than what is written now');
  await writeJsonDurably(path, 1);
  assert.equal(readFileSync(path, 'utf8'), '1\n');
  assert.deepEqual(readdirSync(folder), ['a.json']);
});

test('a missing folder is an error', async (t) => {
  await assert.rejects(writeJsonDurably(join(await tempFolder(t), 'gone', 'a.json'), 1), /ENOENT/);
});
