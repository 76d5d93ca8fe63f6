import assert from 'node:assert/strict';
import { truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { readTexts, writeTexts } from '../../../bench/lexical/text-file.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';

async function read(path: string): Promise<string[]> {
  const texts: string[] = [];
  for await (const block of readTexts(path)) texts.push(...block);
  return texts;
}

test('texts are read as they were written, whatever their length', async (t) => {
  const path = join(await tempFolder(t), 'texts');
  const texts = [
    '',
    'é\n',
    'x'.repeat(3_000_000),
    '漢字',
    ...Array.from({ length: 5_000 }, (_, i) => 'ab'.repeat(i % 700)),
  ];
  const { texts: count, bytes } = await writeTexts(path, texts);
  assert.equal(count, texts.length);
  assert.equal(bytes, Buffer.byteLength(texts.join('')));
  assert.deepEqual(await read(path), texts);
  await writeTexts(path, []);
  assert.deepEqual(await read(path), []);
});

test('a file that ends within a text is refused', async (t) => {
  const path = join(await tempFolder(t), 'texts');
  await writeTexts(path, ['abc', 'defg']);
  await truncate(path, 12);
  await assert.rejects(read(path), /ends within a text/);
});
