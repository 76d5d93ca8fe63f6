import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import fc from 'fast-check';
import { ArrayError, JsonArraySplitter } from '../../../training/trajectories/json-array-splitter.ts';
import { readItems } from '../../../training/trajectories/read-items.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

async function written(t: TestContext, content: string | Uint8Array, name = 'items.json'): Promise<string> {
  const path = join(await tempFolder(t), name);
  await writeFile(path, content);
  return path;
}

async function valuesOf(path: string, skip = 0): Promise<unknown[]> {
  const values: unknown[] = [];
  for await (const { value } of readItems(path, { skip })) values.push(value);
  return values;
}

const objects = fc.array(fc.dictionary(fc.string({ unit: 'grapheme' }), fc.jsonValue()), { maxLength: 6 });

test('an array of any objects is read back, however it is indented and cut into chunks', () => {
  fc.assert(
    fc.property(objects, fc.integer({ min: 0, max: 4 }), fc.integer({ min: 1, max: 50 }), (items, indent, size) => {
      const bytes = Buffer.from(` ${JSON.stringify(items, null, indent)}\n`);
      const splitter = new JsonArraySplitter(1_000_000);
      const read: unknown[] = [];
      for (let at = 0; at < bytes.length; at += size) {
        // A buffer of its own, overwritten afterwards: nothing may refer to a chunk that was read.
        const chunk = Buffer.from(bytes.subarray(at, at + size));
        read.push(...splitter.push(chunk).map((item) => JSON.parse(item.toString('utf8')) as unknown));
        chunk.fill(0x7b);
      }
      splitter.end();
      assert.deepEqual(read, JSON.parse(JSON.stringify(items)));
    }),
  );
});

test('an array that ends anywhere before its end is refused', () => {
  const bytes = Buffer.from('[{"a":"]}\\""},{"b":[{"c":1}]}]');
  for (let end = 0; end < bytes.length; end++) {
    const splitter = new JsonArraySplitter(1_000_000);
    splitter.push(bytes.subarray(0, end));
    assert.throws(() => splitter.end(), ArrayError, `the first ${end} bytes`);
  }
});

test('what stands between the objects of an array is checked', () => {
  for (const [text, message] of [
    ['[1]', /found "1" where an object/],
    ['[{}{}]', /found "\{" where "," or the "\]"/],
    ['[{},]', /found "\]" where an object/],
    ['[{}]]', /found "\]" where the end of the file/],
    ['[{} null]', /found "n" where ","/],
    ['[,{}]', /found ","/],
    ['["{}"]', /found "\\""/],
  ] as const) {
    assert.throws(() => new JsonArraySplitter(100).push(Buffer.from(text)), message, text);
  }
  assert.throws(() => new JsonArraySplitter(4).push(Buffer.from('[{"a":1')), /more than 4 bytes/);
});

test('JSON lines, JSON arrays and compressed files give the same objects, without a byte order mark', async (t) => {
  const items = [{ id: 'a' }, { id: 'é\u2028' }, { id: 'c' }];
  const array = JSON.stringify(items, null, 2);
  const lines = `${items.map((item) => JSON.stringify(item)).join('\n\n')}\n`;
  assert.deepEqual(await valuesOf(await written(t, array)), items);
  assert.deepEqual(await valuesOf(await written(t, `\ufeff${array}`)), items);
  assert.deepEqual(await valuesOf(await written(t, lines)), items);
  assert.deepEqual(await valuesOf(await written(t, `\n \n${lines}`)), items);
  assert.deepEqual(await valuesOf(await written(t, gzipSync(array), 'items.json.gz')), items);
  assert.deepEqual(await valuesOf(await written(t, zstdCompressSync(lines), 'items.jsonl.zst')), items);
  assert.deepEqual(await valuesOf(await written(t, array), 2), [{ id: 'c' }]);
  assert.deepEqual(await valuesOf(await written(t, lines), 2), [{ id: 'c' }]);
  assert.deepEqual(await valuesOf(await written(t, '')), []);
  assert.deepEqual(await valuesOf(await written(t, '[]')), []);
});

test('skipped items are not parsed', async (t) => {
  assert.deepEqual(await valuesOf(await written(t, '[{"a": oops}, {"b":1}]'), 1), [{ b: 1 }]);
});

test('unusable items are refused with their place', async (t) => {
  for (const [text, message] of [
    ['[{"a":1},{"b":oops}]', /items\.json, item 2: not valid JSON \(/],
    ['{"a":1}\n\n{"b":', /items\.json:3: not valid JSON \(/],
    ['{"a":1}\n[1]', /items\.json:2: expected a JSON object\./],
    ['"text"', /items\.json:1: expected a JSON object\./],
    ['[{"a":1},', /items\.json, after item 1: the file ends before the end of its JSON array/],
    ['[{"a":NaN}]', /item 1: not valid JSON \(it has NaN, which JSON lacks; write null/],
    ['{"a": -Infinity}', /:1: not valid JSON \(it has -Infinity/],
  ] as const) {
    await assert.rejects(valuesOf(await written(t, text)), trawlError('CORPUS_BAD_LINE', message), text);
  }
  await assert.rejects(
    valuesOf(await written(t, Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]))),
    trawlError('CORPUS_BAD_LINE', /not valid UTF-8/),
  );
  await assert.rejects(
    valuesOf(await written(t, gzipSync('[{"a":1},{"b":2}]').subarray(0, 20), 'items.json.gz')),
    trawlError('CORPUS_BAD_LINE', /truncated or damaged/),
  );
  await assert.rejects(
    valuesOf(join(await tempFolder(t), 'absent.json')),
    trawlError('CORPUS_NOT_FOUND', /Cannot read .*absent\.json: no such file/),
  );
});

test('an aborted signal ends the reading', async (t) => {
  const path = await written(t, '[{"a":1},{"a":2}]');
  const read = async (): Promise<void> => {
    for await (const _ of readItems(path, { signal: AbortSignal.abort() }));
  };
  await assert.rejects(read(), trawlError('CANCELLED'));
});
