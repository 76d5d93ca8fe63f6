import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { before, test } from 'node:test';
import fc from 'fast-check';
import type { JsonObject } from '../../src/embedding/json-file.ts';
import type { EncoderInput, TruncateSide } from '../../src/embedding/text-encoder.ts';
import { TextTokenizer } from '../../src/embedding/tokenizer.ts';
import { tokenizeInput } from '../../src/embedding/truncation.ts';
import { fixture } from './model-fixtures.ts';

const CLS = 2;
const SEP = 3;
let tokenizer: TextTokenizer;
/** The same vocabulary under a pre-tokeniser whose texts may not be cut. */
let uncut: TextTokenizer;

before(async () => {
  tokenizer = await TextTokenizer.load(fixture('tokenizer.json'));
  const file = JSON.parse(await readFile(fixture('tokenizer.json'), 'utf8')) as JsonObject;
  uncut = new TextTokenizer(
    { ...file, pre_tokenizer: { type: 'Sequence', pretokenizers: [{ type: 'BertPreTokenizer' }] } },
    'uncut',
  );
  assert.equal(uncut.splitsAtWhitespace, false);
});

const ids = (text: string) => tokenizer.contentIds(text, Number.POSITIVE_INFINITY);
const tokenize = (input: EncoderInput, maxTokens: number, truncate: TruncateSide = 'tail', prefix = '') =>
  tokenizeInput(tokenizer, input, { prefix, maxTokens, truncate });

test('the limit counts special tokens and the prefix, and the last special token stays', () => {
  const result = tokenize('a b c d e', 6, 'tail', 'query: ');
  assert.deepEqual(result.ids, [CLS, ...ids('query: a b'), SEP]);
  assert.equal(result.cut, 'tail');
});

test('a text that just fits is not truncated, whatever white space follows', () => {
  const result = tokenize(`a b c${' '.repeat(10_000)}`, 5);
  assert.deepEqual(result.ids, [CLS, ...ids('a b c'), SEP]);
  assert.equal(result.cut, 'nothing');
});

test('an empty text is its special tokens', () => {
  assert.deepEqual(tokenize('', 8), { ids: [CLS, SEP], cut: 'nothing' });
});

test('question and query become one text around the separator', () => {
  const composed = tokenize({ question: 'who is a', query: 'b' }, 32, 'tail', 'query: ');
  assert.deepEqual(composed.ids, tokenize('query: who is a [SEP] b', 32).ids);
  assert.equal(composed.cut, 'nothing');
  for (const question of ['', ' \n'])
    assert.deepEqual(tokenize({ question, query: 'b' }, 32).ids, tokenize('b', 32).ids);
});

test('tail truncation of a pair may lose the query', () => {
  const result = tokenize({ question: 'a b c d e f', query: 'x y' }, 6);
  assert.deepEqual(result.ids, [CLS, ...ids('a b c d'), SEP]);
  assert.equal(result.cut, 'tail');
});

test('question truncation shortens the question and keeps the query whole', () => {
  const result = tokenize({ question: 'a b c d e f', query: 'x y' }, 8, 'question', 'q ');
  assert.deepEqual(result.ids, [CLS, ...ids('q a b [SEP] x y'), SEP]);
  assert.equal(result.cut, 'question');
});

test('with no room for one token of the question it goes with its separator', () => {
  const result = tokenize({ question: 'a b c d', query: 'v w x y' }, 7, 'question', 'q ');
  assert.deepEqual(result.ids, [CLS, ...ids('q v w x y'), SEP]);
  assert.equal(result.cut, 'question');
  const longQuery = tokenize({ question: 'a b', query: 'u v w x y z' }, 6, 'question', 'q ');
  assert.deepEqual(longQuery.ids, [CLS, ...ids('q u v w'), SEP]);
  assert.equal(longQuery.cut, 'question-and-tail');
});

test('question truncation of a plain text keeps its head', () => {
  assert.deepEqual(tokenize('a b c d e', 5, 'question'), tokenize('a b c d e', 5, 'tail'));
});

test('separators that the parts hold themselves do not confuse the cut', () => {
  const input = { question: 'a [SEP] b c d e', query: 'x [SEP] y' };
  for (const each of [tokenizer, uncut]) {
    const result = tokenizeInput(each, input, { prefix: '', maxTokens: 9, truncate: 'question' });
    assert.deepEqual(result.ids, [CLS, ...ids('a [SEP] b [SEP] x [SEP] y'), SEP]);
  }
});

test('cut or tokenised whole, the result is the same', () => {
  const words = fc
    .array(fc.constantFrom('a', 'bc', 'the', '[SEP]', '.', ' ', 'def', '漢'), { maxLength: 30 })
    .map((w) => w.join(' '));
  const limits = fc.record({
    maxTokens: fc.integer({ min: 3, max: 30 }),
    truncate: fc.constantFrom('tail' as const, 'question' as const),
    prefix: fc.constantFrom('', 'query: '),
  });
  fc.assert(
    fc.property(words, words, limits, (question, query, limit) => {
      const result = tokenizeInput(tokenizer, { question, query }, limit);
      assert.deepEqual(result, tokenizeInput(uncut, { question, query }, limit));
      assert.ok(result.ids.length <= limit.maxTokens);
    }),
    { numRuns: 1000 },
  );
});

test('a text without end is looked at no further than 200,000 characters, and it is said', () => {
  for (const text of [
    'a'.repeat(3e6),
    '😀'.repeat(3e5),
    `a${'\u0301\u0323'.repeat(3e5)}`,
    ' '.repeat(1e6),
    'é'.repeat(1e6),
  ]) {
    const result = tokenize(text, 16);
    assert.notEqual(result.cut, 'nothing', JSON.stringify(text.slice(0, 4)));
    assert.ok(result.ids.length <= 16);
    assert.notEqual(tokenize({ question: text, query: 'b' }, 16, 'question').cut, 'nothing');
    assert.notEqual(tokenize({ question: 'a', query: text }, 16, 'question').cut, 'nothing');
  }
  assert.equal(tokenize(`a b c${' '.repeat(199_000)}`, 16).cut, 'nothing');
});

test('an endless run of combining marks costs no more than a short one, and the text stays what it is', () => {
  const marks = '\u0301\u0323'.repeat(90_000);
  assert.deepEqual(tokenize(`a${marks} b`, 16).ids, tokenize('a\u0301 b', 16).ids);
});
