import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { benchQueries, samplePassages } from '../../../bench/embed/embed-texts.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

const { signal } = new AbortController();

async function corpusOf(t: Parameters<typeof tempFolder>[0], rows: number): Promise<string> {
  const file = join(await tempFolder(t), 'corpus.jsonl');
  const lines = Array.from({ length: rows }, (_, i) => `${JSON.stringify({ id: i, contents: `text ${i}` })}\n`);
  writeFileSync(file, lines.join(''));
  return file;
}

test('a sample depends on the seed and has no text twice', async (t) => {
  const file = await corpusOf(t, 1000);
  const one = await samplePassages(file, { count: 50, seed: 1, signal });
  assert.equal(new Set(one).size, 50);
  assert.deepEqual(await samplePassages(file, { count: 50, seed: 1, signal }), one);
  assert.notDeepEqual(await samplePassages(file, { count: 50, seed: 2, signal }), one);
  const numbers = one.map((text) => Number(text.slice(5)));
  assert.ok(numbers.some((n) => n < 300) && numbers.some((n) => n > 700), 'it comes from the whole file');
});

test('a small corpus is sampled whole, an empty one is refused', async (t) => {
  const all = await samplePassages(await corpusOf(t, 7), { count: 50, seed: 1, signal });
  assert.deepEqual(
    [...all].sort(),
    [0, 1, 2, 3, 4, 5, 6].map((i) => `text ${i}`),
  );
  await assert.rejects(samplePassages(await corpusOf(t, 0), { count: 5, seed: 1, signal }), trawlError('USAGE'));
});

test('queries repeat if there are too few, and a sub-query is preferred to its question', async (t) => {
  const file = join(await tempFolder(t), 'q.jsonl');
  writeFileSync(file, '{"id":1,"question":"a"}\n{"id":2,"question":"b","query":"c"}\n');
  assert.deepEqual(await benchQueries(file, 5), ['a', 'c', 'a', 'c', 'a']);
  assert.equal((await benchQueries(undefined, 40)).length, 40);
  writeFileSync(file, '\n');
  await assert.rejects(benchQueries(file, 5), trawlError('USAGE'));
});
