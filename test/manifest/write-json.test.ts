import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { generationOf } from '../../src/manifest/generation.ts';
import { writeJsonDurably } from '../../src/manifest/write-json.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

test('a JSON file is written indented, with a last line end, and nothing is left beside it', async (t) => {
  const folder = await tempFolder(t);
  const path = join(folder, 'a.json');
  await writeJsonDurably(path, { a: [1, 'ü\u2028'], b: null });
  assert.equal(readFileSync(path, 'utf8'), '{\n  "a": [\n    1,\n    "ü\u2028"\n  ],\n  "b": null\n}\n');
  assert.deepEqual(readdirSync(folder), ['a.json']);
});

test('a reader sees the old file or the new one, never a part', async (t) => {
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

test('a write that fails leaves the old file as it was, and nothing beside it', async (t) => {
  const folder = await tempFolder(t);
  const path = join(folder, 'a.json');
  await writeJsonDurably(path, { version: 1 });
  const circular: Record<string, unknown> = {};
  circular.self = circular;
  await assert.rejects(writeJsonDurably(path, circular), TypeError);
  assert.deepEqual(JSON.parse(readFileSync(path, 'utf8')), { version: 1 });
  assert.deepEqual(readdirSync(folder), ['a.json']);

  // A folder cannot be replaced by a file: the rename fails, after everything was written.
  mkdirSync(join(folder, 'b.json'));
  await assert.rejects(writeJsonDurably(join(folder, 'b.json'), {}));
  assert.deepEqual(readdirSync(folder).sort(), ['a.json', 'b.json']);
});

test('what an earlier crash left beside the file is replaced', async (t) => {
  const folder = await tempFolder(t);
  const path = join(folder, 'a.json');
  writeFileSync(`${path}.tmp`, 'a longer text than what is written now');
  await writeJsonDurably(path, 1);
  assert.equal(readFileSync(path, 'utf8'), '1\n');
  assert.deepEqual(readdirSync(folder), ['a.json']);
});

test('a folder that is missing is an error', async (t) => {
  await assert.rejects(writeJsonDurably(join(await tempFolder(t), 'gone', 'a.json'), 1), /ENOENT/);
});

test('equal facts have equal generations, others have others', () => {
  const facts = [10, 'x', { a: 1 }];
  assert.match(generationOf(facts), /^[0-9a-f]{32}$/);
  assert.equal(generationOf(facts), generationOf([10, 'x', { a: 1 }]));
  for (const other of [
    [10, 'x', { a: 2 }],
    [10, 'x'],
    ['10', 'x', { a: 1 }],
    [10, 'x', { b: 1 }],
  ]) {
    assert.notEqual(generationOf(facts), generationOf(other));
  }
});

test('the generation of known facts does not change from one program to the next', () => {
  assert.equal(generationOf(['index', 'abc']), '9fdc696cec06364e7ad9abc2ff0cdd43');
});
