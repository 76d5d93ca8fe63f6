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
import { assertSameIds, assertSameWords, readComponents } from './components.ts';

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
    id: 119,
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
    added_tokens: [special(119, '<s>'), special(120, '</s>')],
    post_processor: {
      type: 'RobertaProcessing',
      cls: ['<s>', 119],
      sep: ['</s>', 120],
      trim_offsets: true,
      add_prefix_space: true,
    },
  } as unknown as JsonObject;
  const tokenizer = new TextTokenizer(roberta, 'roberta');
  assert.deepEqual([tokenizer.leadingIds, tokenizer.trailingIds], [[119], [120]]);
  assert.deepEqual(tokenizer.separator, { text: '</s>', id: 120 });
  assert.equal(tokenizer.splitsAtWhitespace, false);
  assert.ok(tokenizer.contentIds('a </s> b', ALL).includes(120));
});

test('a missing or invalid tokenizer is refused with its path', async () => {
  await assert.rejects(TextTokenizer.load(fixture('nowhere.json')), /nowhere\.json is missing/);
  assert.throws(() => new TextTokenizer({}, 'some/tokenizer.json'), /some\/tokenizer\.json is not a usable tokenizer/);
});

const components = readComponents();

test('every normaliser and pre-tokenizer makes the words of the reference tokeniser', () => {
  assert.ok(components.words.length > 70);
  for (const { words, ...parts } of components.words) assertSameWords(parts, components.texts, words);
});

test('every model, post-processor and kind of added token gives the ids of the reference tokeniser', () => {
  assert.ok(components.files.length > 50);
  for (const { name, file, ids } of components.files) assertSameIds(name, file, components.texts, ids);
});

test('a component whose ids could differ from the reference tokeniser is refused by its name', () => {
  const { file } = components.files.find(({ name }) => name === 'WordPiece')!;
  const { file: bpe } = components.files.find(({ name }) => name === 'BPE')!;
  const { file: unigram } = components.files.find(({ name }) => name === 'Unigram')!;
  const model = file.model as { vocab: Record<string, number> };
  const token = { content: 'new', id: 77, special: false };
  const size = Object.keys(model.vocab).length;
  const split = { type: 'Split', pattern: { String: ' ' }, behavior: 'Isolated' };
  const text = { Sequence: { id: 'A', type_id: 0 } };
  const template = { type: 'TemplateProcessing', single: [text] };
  const withPattern = (Regex: string) => ({ ...file, pre_tokenizer: { ...split, pattern: { Regex } } });
  const refused: readonly (readonly [JsonObject, RegExp])[] = [
    [{ ...file, normalizer: { type: 'Nmt' } }, /its normalizer Nmt is not supported/],
    [
      { ...file, normalizer: { type: 'Sequence', normalizers: [{ type: 'Unheard' }] } },
      /its normalizer Unheard is not/,
    ],
    [{ ...file, normalizer: { type: 'Replace', pattern: { Regex: 'a.' }, content: '' } }, /normalizer Replace.*"a\."/],
    [{ ...file, pre_tokenizer: { type: 'UnicodeScripts' } }, /its pre-tokenizer UnicodeScripts is not supported/],
    [{ ...file, pre_tokenizer: { type: 'FixedLength', length: 5 } }, /its pre-tokenizer FixedLength is not supported/],
    [{ ...file, pre_tokenizer: { ...split, behavior: 'Unheard' } }, /pre-tokenizer Split.*behavior "Unheard"/],
    [{ ...file, pre_tokenizer: { ...split, pattern: { String: '' } } }, /its pre-tokenizer Split.*pattern/],
    // A boundary, a property, a possessive quantifier, ß for ss, and matches of nothing.
    ...['\\ba', '\\p{Lu}+', ' ?+a', '(?i:ss)', 'a*', '(?=a)', '[z-a]'].map(
      (pattern) => [withPattern(pattern), /its pre-tokenizer Split is not supported with the pattern "/] as const,
    ),
    [
      { ...file, pre_tokenizer: { type: 'Metaspace', prepend_scheme: 'last' } },
      /pre-tokenizer Metaspace.*prepend_scheme/,
    ],
    [
      {
        ...file,
        pre_tokenizer: { type: 'Sequence', pretokenizers: [split, { type: 'Metaspace', prepend_scheme: 'first' }] },
      },
      /Metaspace.*"first" after another one/,
    ],
    [
      {
        ...file,
        pre_tokenizer: {
          type: 'Sequence',
          pretokenizers: [
            split,
            { type: 'Sequence', pretokenizers: [{ type: 'Metaspace', prepend_scheme: 'first' }, split] },
          ],
        },
      },
      /Metaspace.*"first" after another one/,
    ],
    [{ ...file, model: { ...model, type: 'Unheard' } }, /its model Unheard is not supported/],
    [{ ...file, model: { ...model, vocab: {} }, added_tokens: [] }, /its model has no vocabulary/],
    [{ ...file, model: { ...model, vocab: { ...model.vocab, a: '7' } } }, /its token "a" has the id "7"/],
    [{ ...file, model: { ...model, vocab: { ...model.vocab, a: 2 ** 26 } } }, /"a" has the id 67108864/],
    [
      { ...file, model: { ...model, vocab: [['a', -1]] } },
      /its model WordPiece is not supported with such a vocabulary/,
    ],
    [{ ...file, model: { ...model, vocab: { ...model.vocab, a: 1.5 } } }, /its token "a" has the id 1\.5/],
    [{ ...file, model: { ...model, vocab: { ...model.vocab, a: null } } }, /its token "a" has the id null/],
    [{ ...file, model: { ...model, unk_token: '[OTHER]' } }, /its unk_token "\[OTHER\]" is not in its vocabulary/],
    [{ ...bpe, model: { ...(bpe.model as object), continuing_subword_prefix: '##' } }, /model BPE.*continuing_subword/],
    [{ ...bpe, model: { ...(bpe.model as object), dropout: 0.1 } }, /its model BPE is not supported with dropout/],
    [{ ...bpe, model: { ...(bpe.model as object), merges: [['a', 'unheard']] } }, /"unheard", which is not in its voc/],
    [{ ...unigram, model: { ...(unigram.model as object), unk_id: null } }, /its unk_id null is not in its vocabulary/],
    [{ ...file, added_tokens: [{ ...token, content: 'a' }] }, /added token "a" has the id 77, but the reference would/],
    [{ ...file, added_tokens: [token] }, /added token "new" has the id 77, but the reference would give it \d{3}/],
    [
      {
        ...file,
        normalizer: { type: 'Lowercase' },
        added_tokens: [
          { ...token, content: 'New', id: size, normalized: true },
          { ...token, content: 'NEW', id: size + 1 },
        ],
      },
      /its added tokens "NEW" and "New" become equal by its normalizer/,
    ],
    [{ ...file, post_processor: { type: 'Unheard' } }, /its post-processor Unheard is not supported/],
    [{ ...file, post_processor: { ...template, single: [text, text] } }, /post-processor TemplateProcessing.*template/],
    [
      { ...file, post_processor: { ...template, single: [{ Sequence: { id: 'A', type_id: 1 } }] } },
      /TemplateProcessing is not supported: its template of a text/,
    ],
    [
      { ...file, post_processor: { ...template, single: [text, { SpecialToken: { id: '[SEP]', type_id: 0 } }] } },
      /it has no ids of "\[SEP\]"/,
    ],
    [
      { ...file, post_processor: { type: 'Sequence', processors: [template, template] } },
      /two processors that add tokens/,
    ],
  ];
  for (const [changed, message] of refused)
    assert.throws(() => new TextTokenizer(changed, 'some/tokenizer.json'), message);
});

test('a component whose time could grow faster than a text is refused', () => {
  const { file } = components.files.find(({ name }) => name === 'WordPiece')!;
  const { file: unigram } = components.files.find(({ name }) => name === 'Unigram')!;
  const [model, pieces] = [file.model as { vocab: object }, unigram.model as { vocab: object[] }];
  const double = { type: 'Replace', pattern: { String: 'a' }, content: 'aa' };
  const long = 'a'.repeat(600);
  const nested = JSON.parse(
    `${'{"type":"Sequence","normalizers":['.repeat(50_000)}{"type":"NFC"}${']}'.repeat(50_000)}`,
  ) as object;
  const patterns = ['(a+)+b', '(a|a)+', 'a*a*b', 'a+b', 'a+?b', '\\w(?=\\w+)', 'a?a?a', 'a{200}', '\\s*[\\r\\n]+'];
  const refused: readonly (readonly [JsonObject, RegExp])[] = [
    ...patterns.map(
      (Regex) =>
        [
          { ...file, pre_tokenizer: { type: 'Split', pattern: { Regex }, behavior: 'Isolated' } },
          /its pre-tokenizer Split is not supported with the pattern "/,
        ] as const,
    ),
    [
      { ...file, normalizer: { type: 'Sequence', normalizers: Array.from({ length: 40 }, () => double) } },
      /its normalizer Sequence is not supported: it makes a text more than 100 times as long/,
    ],
    [{ ...file, normalizer: nested }, /its components are nested too deeply/],
    [
      { ...file, model: { ...model, vocab: { ...model.vocab, [long]: 9_999 }, max_input_chars_per_word: 1e6 } },
      /WordPiece is not supported with a token of 600 characters and max_input_chars_per_word 1000000/,
    ],
    [
      { ...unigram, model: { ...pieces, vocab: [...pieces.vocab, [long, -1]] } },
      /Unigram is not supported with a piece of 600 characters/,
    ],
  ];
  for (const [changed, message] of refused)
    assert.throws(() => new TextTokenizer(changed, 'some/tokenizer.json'), message);
});

test('a field of another type than the reference tokeniser reads is refused by its name', () => {
  const { file } = components.files.find(({ name }) => name === 'BPE')!;
  const model = file.model as JsonObject;
  const token = { content: '[PAD]', id: 0, special: true };
  const refused: readonly (readonly [JsonObject, RegExp])[] = [
    [{ normalizer: 'NFC' }, /: normalizer must be object/],
    [{ normalizer: { type: 'Strip', strip_left: 'yes' } }, /: normalizer\.strip_left must be boolean/],
    [
      { normalizer: { type: 'Sequence', normalizers: [{ type: 5 }] } },
      /: normalizer\.normalizers\.0\.type must be string/,
    ],
    [
      { pre_tokenizer: { type: 'CharDelimiterSplit', delimiter: 'ab' } },
      /: pre_tokenizer\.delimiter must not have more/,
    ],
    [{ post_processor: { type: 'Sequence', processors: {} } }, /: post_processor\.processors must be array/],
    [{ post_processor: { type: 'BertProcessing', cls: ['[CLS]', 1.5] } }, /: post_processor\.cls\.1 must be integer/],
    [{ added_tokens: [{ ...token, lstrip: 1 }] }, /: added_tokens\.0\.lstrip must be boolean/],
    [{ model: { ...model, fuse_unk: 'no' } }, /: model\.fuse_unk must be boolean/],
    [{ model: { ...model, merges: 5 } }, /its merges are 5, not a list/],
    [{ model: { ...model, merges: [null] } }, /its merge null does not have two parts/],
    [{ model: { type: 'Unigram', vocab: [['a', -1], 'b'], unk_id: 0 } }, /its vocabulary has "b" in place of a piece/],
  ];
  for (const [changed, message] of refused)
    assert.throws(() => new TextTokenizer({ ...file, ...changed }, 'some/tokenizer.json'), message);
});

test('white space that the added token before it takes is not found again', () => {
  const blank = { special: false, lstrip: true, rstrip: true };
  const vocab = { '[UNK]': 0, a: 1, b: 2, ' ': 3 };
  const file = {
    pre_tokenizer: { type: 'WhitespaceSplit' },
    model: { type: 'WordLevel', vocab, unk_token: '[UNK]' },
    added_tokens: [{ ...blank, id: 3, content: ' ', normalized: false }],
  };
  assert.deepEqual(new TextTokenizer(file, 'some/tokenizer.json').contentIds('a    b \n ', ALL), [1, 3, 2, 3]);
});

test('a Metaspace of the beginning marks no text whose first character the normaliser removes', () => {
  const vocab = { '[UNK]': 0, a: 1, '▁a': 2 };
  const file = {
    normalizer: { type: 'BertNormalizer' },
    pre_tokenizer: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'first', split: true },
    model: { type: 'WordLevel', vocab, unk_token: '[UNK]' },
  };
  const tokenizer = new TextTokenizer(file, 'some/tokenizer.json');
  assert.deepEqual(
    ['a', '\u0001a', '\u0301a a'].map((text) => tokenizer.contentIds(text, ALL)),
    [[2], [1], [1, 2]],
  );
});

test('of segmentations that only rounding tells apart, Unigram takes the one of the reference tokeniser', () => {
  const vocab = [
    ['<unk>', 0],
    ['p', -10.498772058213408],
    ['b', -9.611771998286814],
    ['bbb', -10.901487251997061],
  ];
  const tokenizer = new TextTokenizer({ model: { type: 'Unigram', vocab, unk_id: 0 } }, 'some/tokenizer.json');
  assert.deepEqual(tokenizer.contentIds('pbbbb', ALL), [1, 3, 2]);
});
