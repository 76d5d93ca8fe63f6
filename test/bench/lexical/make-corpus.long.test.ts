import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { generatePassages, readSentences } from '../../../bench/lexical/make-corpus.ts';
import { packageRoot } from '../../../src/base/package-root.ts';
import { runTrawl } from '../../cli/run-trawl.ts';
import { sharedData, withoutSharedData } from '../../helpers/shared-data.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { writeCorpus } from '../../indexer/build.ts';

const SAMPLE = join(packageRoot, 'corpus', 'sample', 'passages.jsonl');
const POOL = 'pool_wiki_dev/corpus.jsonl';

const words = (text: string): string[] => text.match(/[\p{L}\p{N}]+/gu) ?? [];

test('the same source, seed and number of rows give the same passages', async () => {
  const source = await readSentences([SAMPLE]);
  const passages = [...generatePassages(source, { rows: 200, seed: 1 })];
  assert.equal(passages.length, 200);
  assert.deepEqual(
    passages.map(({ id }) => id),
    Array.from({ length: 200 }, (_, i) => String(i)),
  );
  assert.deepEqual([...generatePassages(source, { rows: 200, seed: 1 })], passages);
  assert.deepEqual([...generatePassages(source, { rows: 100, seed: 1 })], passages.slice(0, 100));
  assert.notDeepEqual([...generatePassages(source, { rows: 200, seed: 2 })], passages);
});

test('passages consist of sentences of the source, with rare words changed', async (t) => {
  const folder = await tempFolder(t);
  const contents = ['"A"\nThe cat sat. The dog ran! The "Cat" slept? yes.', '"B"\nThe cat ran. The dog slept.'];
  const corpus = writeCorpus(folder, { 'c.jsonl': contents.map((text, id) => ({ id, contents: text })) });
  const source = await readSentences(corpus);
  assert.deepEqual(
    source.passages.map(({ title, sentences }) => [title, ...sentences]),
    [
      ['A', 'The cat sat.', 'The dog ran!', 'The "Cat" slept? yes.'],
      ['B', 'The cat ran.', 'The dog slept.'],
    ],
  );
  assert.deepEqual([...source.rareWords].sort(), ['Cat', 'cat', 'dog', 'ran', 'sat', 'slept', 'yes']);
  const sentences = new Set(source.passages.flatMap((passage) => passage.sentences));
  for (const passage of generatePassages({ ...source, rareWords: new Set() }, { rows: 50, seed: 3 })) {
    const [title, text] = passage.contents.split('\n') as [string, string];
    assert.match(title, /^"[AB]"$/);
    for (const sentence of text.split(/(?<=[.!]|yes\.) (?=The)/)) assert.ok(sentences.has(sentence), sentence);
  }
  const changed = [...generatePassages(source, { rows: 50, seed: 3 })].flatMap((passage) => words(passage.contents));
  assert.ok(changed.includes('cat') && changed.some((word) => /^cat[bfkpvwxz]+$/.test(word)));
  assert.ok(!changed.some((word) => /^The.+/.test(word)), 'a frequent word was changed');
});

test('a corpus without words is refused', async (t) => {
  const corpus = writeCorpus(await tempFolder(t), { 'c.jsonl': [{ id: 1, contents: '"..."\n...' }] });
  await assert.rejects(readSentences(corpus), /no passage with words/);
});

test('lengths and the growth of the vocabulary are those of Wikipedia', { skip: withoutSharedData(POOL) }, async () => {
  const source = await readSentences([sharedData(POOL)]);
  const real = source.passages.map(({ length }) => length).sort((a, b) => a - b);
  const lengths: number[] = [];
  const vocabulary = new Set<string>();
  const sizes: number[] = [];
  const rows = source.passages.length;
  for (const { contents } of generatePassages(source, { rows, seed: 1 })) {
    const found = words(contents.slice(contents.indexOf('\n')));
    lengths.push(found.length);
    for (const word of found) vocabulary.add(word.toLowerCase());
    if (lengths.length === rows >> 1 || lengths.length === rows >> 2) sizes.push(vocabulary.size);
  }
  lengths.sort((a, b) => a - b);
  for (const share of [0.1, 0.5, 0.9, 0.99]) {
    const [a, b] = [lengths[Math.floor(share * lengths.length)]!, real[Math.floor(share * rows)]!];
    assert.ok(Math.abs(a / b - 1) < 0.15, `${share}: ${a} words, really ${b}`);
  }
  const exponent = Math.log2(sizes[1]! / sizes[0]!);
  assert.ok(exponent > 0.5 && exponent < 0.68, `the vocabulary grows with an exponent of ${exponent}`);
});

test('bench make-corpus writes a new file of JSON lines', async (t) => {
  const path = join(await tempFolder(t), 'made.jsonl');
  const args = ['bench', 'make-corpus', path, '--corpus', SAMPLE, '--rows', '1500'];
  const ended = await runTrawl(args);
  assert.equal(ended.code, 0, ended.stderr);
  const again = await readSentences([path]);
  assert.equal(again.passages.length, 1500);
  const refused = await runTrawl(args);
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /exists already/);
  assert.equal((await runTrawl(['bench', 'make-corpus'])).code, 2);
});
