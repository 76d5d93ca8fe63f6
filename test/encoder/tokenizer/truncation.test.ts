import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { before, test } from 'node:test';
import fc from 'fast-check';
import type { JsonObject } from '../../../src/encoder/model/json-file.ts';
import type { EncoderInput, TruncateSide } from '../../../src/encoder/text-encoder.ts';
import { TextTokenizer } from '../../../src/encoder/tokenizer/tokenizer.ts';
import { tokenizeInput } from '../../../src/encoder/tokenizer/truncation.ts';
import { fixture } from '../model-fixtures.ts';

const CLS = 2;
const SEP = 3;
let tokenizer: TextTokenizer;
/** The same vocabulary with a pre-tokeniser for which texts are always read whole. */
let readsWhole: TextTokenizer;

before(async () => {
  tokenizer = await TextTokenizer.load(fixture('tokenizer.json'));
  const file = JSON.parse(await readFile(fixture('tokenizer.json'), 'utf8')) as JsonObject;
  readsWhole = new TextTokenizer(
    { ...file, pre_tokenizer: { type: 'Sequence', pretokenizers: [{ type: 'BertPreTokenizer' }] } },
    'readsWhole',
  );
  assert.equal(readsWhole.splitsAtWhitespace, false);
});

const ids = (text: string) => tokenizer.contentIds(text, Number.POSITIVE_INFINITY);
const tokenize = (input: EncoderInput, maxTokens: number, truncate: TruncateSide = 'tail', prefix = '') =>
  tokenizeInput(tokenizer, input, { prefix, maxTokens, truncate });

test('the token limit includes special tokens and the prefix, and the last special token is kept', () => {
  const result = tokenize('a b c d e', 6, 'tail', 'query: ');
  assert.deepEqual(result.ids, [CLS, ...ids('query: a b'), SEP]);
  assert.equal(result.cut, 'tail');
});

test('a text that just fits is not truncated, however much white space follows', () => {
  const result = tokenize(`a b c${' '.repeat(10_000)}`, 5);
  assert.deepEqual(result.ids, [CLS, ...ids('a b c'), SEP]);
  assert.equal(result.cut, 'nothing');
});

test('an empty text has only special tokens', () => {
  assert.deepEqual(tokenize('', 8), { ids: [CLS, SEP], cut: 'nothing' });
});

test('question and query become one text with the separator between them', () => {
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

test('if no token of the question fits, the question and its separator are left out', () => {
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

test('separators inside question and query do not change where the question is truncated', () => {
  const input = { question: 'a [SEP] b c d e', query: 'x [SEP] y' };
  for (const each of [tokenizer, readsWhole]) {
    const result = tokenizeInput(each, input, { prefix: '', maxTokens: 9, truncate: 'question' });
    assert.deepEqual(result.ids, [CLS, ...ids('a [SEP] b [SEP] x [SEP] y'), SEP]);
  }
});

test('question, history and query become one text, joined by the separator as in the reference', () => {
  const input = { question: 'who is a', history: ['b', 'c d'], query: 'e' };
  const reference = [input.question, ...input.history, input.query].join(' [SEP] ');
  assert.deepEqual(tokenize(input, 32, 'tail', 'query: '), {
    ids: [CLS, ...ids(`query: ${reference}`), SEP],
    cut: 'nothing',
  });
  assert.deepEqual(tokenize({ ...input, question: '' }, 32).ids, tokenize('b [SEP] c d [SEP] e', 32).ids);
  assert.deepEqual(tokenize({ ...input, history: [' ', 'b'] }, 32).ids, tokenize('who is a [SEP] b [SEP] e', 32).ids);
});

test('question truncation removes the oldest history queries, then shortens the question, and keeps the query', () => {
  const input = { question: 'a b c', history: ['d e', 'f g', 'h'], query: 'x y' };
  const cases: [number, string, string][] = [
    [14, 'a b c [SEP] d e [SEP] f g [SEP] h [SEP] x y', 'nothing'],
    [13, 'a b c [SEP] f g [SEP] h [SEP] x y', 'history'],
    [11, 'a b c [SEP] f g [SEP] h [SEP] x y', 'history'],
    [10, 'a b c [SEP] h [SEP] x y', 'history'],
    [7, 'a b c [SEP] x y', 'history'],
    [5, 'a b [SEP] x y', 'question'],
    [3, 'x y', 'question'],
    [1, 'x', 'question-and-tail'],
  ];
  for (const each of [tokenizer, readsWhole]) {
    for (const [room, text, cut] of cases) {
      const options = { prefix: 'q ', maxTokens: room + 3, truncate: 'question' } as const;
      assert.deepEqual(tokenizeInput(each, input, options), { ids: [CLS, ...ids(`q ${text}`), SEP], cut }, `${room}`);
    }
  }
});

test('without a question, question truncation removes history queries and then the end of the query', () => {
  const input = { question: '', history: ['a b', 'c'], query: 'x y z' };
  const result = (maxTokens: number) => tokenize(input, maxTokens, 'question');
  assert.deepEqual(result(7), { ids: [CLS, ...ids('c [SEP] x y z'), SEP], cut: 'history' });
  assert.deepEqual(result(6), { ids: [CLS, ...ids('x y z'), SEP], cut: 'history' });
  assert.deepEqual(result(4), { ids: [CLS, ...ids('x y'), SEP], cut: 'question-and-tail' });
});

test('tail truncation of a query with history keeps the first tokens of the composed text', () => {
  const words = fc.array(fc.constantFrom('a', 'bc', 'the', '.', 'def', '漢'), { minLength: 1, maxLength: 8 });
  const texts = words.map((each) => each.join(' '));
  fc.assert(
    fc.property(
      texts,
      fc.array(texts, { maxLength: 5 }),
      texts,
      fc.integer({ min: 3, max: 40 }),
      (question, history, query, most) => {
        const composed = ids([question, ...history, query].join(' [SEP] ')).slice(0, most - 2);
        assert.deepEqual(tokenize({ question, history, query }, most).ids, [CLS, ...composed, SEP]);
      },
    ),
    { numRuns: 500 },
  );
});

test('question truncation removes no more history queries than it must', () => {
  const words = fc.array(fc.constantFrom('a', 'bc', 'the', '.', 'def', '漢'), { minLength: 1, maxLength: 6 });
  const texts = words.map((each) => each.join(' '));
  fc.assert(
    fc.property(
      texts,
      fc.array(texts, { maxLength: 6 }),
      texts,
      fc.integer({ min: 3, max: 40 }),
      (question, history, query, most) => {
        const wholes = [...history.keys(), history.length].map((removed) =>
          ids([question, ...history.slice(removed), query].join(' [SEP] ')),
        );
        const naive = wholes.find(({ length }) => length <= most - 2);
        const expected = naive ?? tokenize({ question, query }, most, 'question').ids.slice(1, -1);
        assert.deepEqual(tokenize({ question, history, query }, most, 'question').ids, [CLS, ...expected, SEP]);
      },
    ),
    { numRuns: 500 },
  );
});

test('only the first 200,000 characters of a history are read, with question truncation the last ones', () => {
  const history = Array.from({ length: 3_000 }, (_, i) => `${i} ${' '.repeat(400)}`);
  const input = { question: '', history, query: 'x' };
  const last = tokenize(input, 16, 'question');
  assert.deepEqual(last.ids.slice(-4), ids('2999 [SEP] x').concat(SEP).slice(-4));
  assert.equal(last.cut, 'history');
  assert.deepEqual(tokenize(input, 8).ids.slice(1, -1), ids('0 [SEP] 1 [SEP] 2 [SEP] 3').slice(0, 6));
  assert.equal(tokenize({ ...input, history: ['a'.repeat(3e6)] }, 8).cut, 'tail');
});

test('reading only the head of a text gives the same result as reading the whole text', () => {
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
      assert.deepEqual(result, tokenizeInput(readsWhole, { question, query }, limit));
      assert.ok(result.ids.length <= limit.maxTokens);
    }),
    { numRuns: 1000 },
  );
});

test('only the first 200,000 characters of a text are read, and a longer text counts as truncated', () => {
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

test('a long run of combining marks has the tokens of a short one', () => {
  const marks = '\u0301\u0323'.repeat(90_000);
  assert.deepEqual(tokenize(`a${marks} b`, 16).ids, tokenize('a\u0301 b', 16).ids);
});
