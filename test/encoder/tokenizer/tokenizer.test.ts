import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { packageRoot } from '../../../src/base/package-root.ts';
import type { JsonObject } from '../../../src/encoder/model/json-file.ts';
import { TextTokenizer } from '../../../src/encoder/tokenizer/tokenizer.ts';
import { runs } from '../../helpers/runs.ts';
import { sharedData, withoutSharedData } from '../../helpers/shared-data.ts';
import { fixture } from '../model-fixtures.ts';

const ALL = Number.POSITIVE_INFINITY;
const BERT_TOKENIZER = join(packageRoot, 'models', 'token-average-256', 'tokenizer.json');
const withoutBert = existsSync(BERT_TOKENIZER) ? false : 'models/token-average-256 does not exist';

/** Pieces that tokenisers treat in special ways, for random texts. */
const piece = fc.oneof(
  fc.constantFrom(
    ' ',
    '  ',
    '\t',
    '\n',
    '\u3000',
    '\u2028',
    '\u000b',
    '\u0085',
    '\u0000',
    '\u200d',
    '\ud800',
    '\udc00',
  ),
  fc.constantFrom('[SEP]', '[sep]', '[SEP', 'SEP]', '[CLS]', '##', '.', ',', '-', "'", '[', ']'),
  fc.constantFrom('é', 'e\u0301', '\u0301', '\u0323', 'Σ', 'ΑΣ', 'İ', 'ß', '漢', '字', '\u{20000}', '😀', 'ש', 'ب'),
  fc.string({ unit: 'grapheme', maxLength: 6 }),
  fc.string({ unit: fc.constantFrom(...'abcdefgXYZ019'), minLength: 1, maxLength: 12 }),
  fc.constantFrom('x'.repeat(99), 'x'.repeat(101), 'word '.repeat(40)),
);
const roughText = fc.array(piece, { maxLength: 60 }).map((pieces) => pieces.join(''));

test('adversarial texts have the ids of the reference tokeniser', { skip: withoutBert }, async () => {
  const tokenizer = await TextTokenizer.load(BERT_TOKENIZER);
  const golden = JSON.parse(readFileSync(fixture('golden-tokens.json'), 'utf8')) as { text: string; ids: number[] }[];
  assert.ok(golden.length > 100);
  for (const { text, ids } of golden) {
    assert.deepEqual(tokenizer.frame(tokenizer.contentIds(text, ALL)), ids, JSON.stringify(text));
  }
});

test('the committed vocabulary is that of all-MiniLM-L6-v2', {
  skip: withoutBert || withoutSharedData('tokenizer/all-MiniLM-L6-v2/tokenizer.json'),
}, async () => {
  const ours = await TextTokenizer.load(BERT_TOKENIZER);
  const original = await TextTokenizer.load(sharedData('tokenizer/all-MiniLM-L6-v2/tokenizer.json'));
  const texts = JSON.parse(readFileSync(fixture('golden-tokens.json'), 'utf8')) as { text: string }[];
  for (const { text } of texts) assert.deepEqual(ours.contentIds(text, ALL), original.contentIds(text, ALL));
});

test('[SEP] in a text is the special token, in this spelling only', { skip: withoutBert }, async () => {
  const tokenizer = await TextTokenizer.load(BERT_TOKENIZER);
  const separators = (text: string) => tokenizer.contentIds(text, ALL).filter((id) => id === 102).length;
  assert.equal(separators('a [SEP] b[SEP]c'), 2);
  assert.equal(separators('a [sep] b [Sep] [ SEP ]'), 0);
  assert.deepEqual(tokenizer.separator, { text: '[SEP]', id: 102 });
});

test('NUL, control characters, lone surrogates and U+FFFD are dropped', { skip: withoutBert }, async () => {
  const tokenizer = await TextTokenizer.load(BERT_TOKENIZER);
  const plain = tokenizer.contentIds('hello world', ALL);
  for (const text of ['hel\u0000lo world', 'hello\ud800 world', '\udfffhello wo\ufffdrld\u0007']) {
    assert.deepEqual(tokenizer.contentIds(text, ALL), plain);
  }
});

test('reading only the head of a text does not change its first ids', async () => {
  const tokenizers = [await TextTokenizer.load(fixture('tokenizer.json'))];
  if (withoutBert === false) tokenizers.push(await TextTokenizer.load(BERT_TOKENIZER));
  for (const tokenizer of tokenizers) {
    assert.ok(tokenizer.splitsAtWhitespace);
    fc.assert(
      fc.property(roughText, fc.integer({ min: 0, max: 40 }), (text, atMost) => {
        const all = tokenizer.contentIds(text, ALL);
        const head = tokenizer.contentIds(text, atMost);
        assert.deepEqual(head.slice(0, atMost), all.slice(0, atMost));
        assert.equal(head.length > atMost, all.length > atMost);
      }),
      { numRuns: runs(400, 1_500) },
    );
  }
});

test('only the head of a long text is read if few ids are wanted', { skip: withoutBert }, async () => {
  const tokenizer = await TextTokenizer.load(BERT_TOKENIZER);
  for (const sentence of ['The quick brown fox, jumped over it. ', '漢字', 'no-white-space,but-punctuation;']) {
    const text = sentence.repeat(Math.ceil(1e6 / sentence.length));
    const cpuOf = (atMost: number): number => {
      const before = process.cpuUsage();
      assert.ok(tokenizer.contentIds(text, atMost).length > 510);
      const { user, system } = process.cpuUsage(before);
      return user + system;
    };
    cpuOf(510);
    // CPU time: about 2 ms against 0.5 s.
    assert.ok(cpuOf(510) * 5 < cpuOf(Number.POSITIVE_INFINITY));
  }
});

test('with added tokens that contain white space, texts are always read whole', async () => {
  const file = JSON.parse(await readFile(fixture('tokenizer.json'), 'utf8')) as { added_tokens: object[] };
  const token = {
    id: 5,
    content: 'two words',
    special: true,
    normalized: false,
    single_word: false,
    lstrip: false,
    rstrip: false,
  };
  const changed = { ...file, added_tokens: [...file.added_tokens, token] } as JsonObject;
  assert.equal(new TextTokenizer(changed, 'changed').splitsAtWhitespace, false);
});

test('with the tokenizer of RoBERTa, texts are always read whole and the separator is </s>', async () => {
  const file = JSON.parse(await readFile(fixture('tokenizer.json'), 'utf8')) as {
    model: { vocab: Record<string, number> };
  };
  const special = (id: number, content: string) => ({ id, content, special: true, normalized: false });
  const roberta = {
    ...file,
    normalizer: { type: 'Lowercase' },
    pre_tokenizer: { type: 'Whitespace' },
    added_tokens: [special(200, '<s>'), special(201, '</s>')],
    post_processor: {
      type: 'RobertaProcessing',
      cls: ['<s>', 200],
      sep: ['</s>', 201],
      trim_offsets: true,
      add_prefix_space: true,
    },
  } as unknown as JsonObject;
  const tokenizer = new TextTokenizer(roberta, 'roberta');
  assert.deepEqual([tokenizer.leadingIds, tokenizer.trailingIds], [[200], [201]]);
  assert.deepEqual(tokenizer.separator, { text: '</s>', id: 201 });
  assert.equal(tokenizer.splitsAtWhitespace, false);
  assert.ok(tokenizer.contentIds('a </s> b', ALL).includes(201));
});

test('a missing or invalid tokenizer is refused with its path', async () => {
  await assert.rejects(TextTokenizer.load(fixture('nowhere.json')), /nowhere\.json is missing/);
  assert.throws(() => new TextTokenizer({}, 'some/tokenizer.json'), /some\/tokenizer\.json is not a usable tokenizer/);
});
