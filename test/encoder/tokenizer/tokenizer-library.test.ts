import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { Tokenizer } from '@huggingface/tokenizers';
import { packageRoot } from '../../../src/base/package-root.ts';
import type { LibraryTokenizer } from '../../../src/encoder/tokenizer/tokenizer-rules.ts';
import { fixture } from '../model-fixtures.ts';

/**
 * The library version that src/encoder/tokenizer/tokenizer-rules.ts and the files beside it correct. Before changing this
 * number, compare the new version's code with those files, and run this test and `npm run check -- peers`.
 */
const CORRECTED_VERSION = '0.2.0';

type Part = (text: string) => unknown;
type Sequence = Part & { normalizers?: { normalize: Part }[]; tokenizers?: { pre_tokenize: Part }[] };
type Library = LibraryTokenizer & { normalizer: Sequence; pre_tokenizer: Sequence };

function openLibrary(name: string): Library {
  const bytes = readFileSync(fixture(name));
  const text = name.endsWith('.gz') ? gunzipSync(bytes) : bytes;
  return new Tokenizer(JSON.parse(text.toString()) as object, {}) as unknown as Library;
}

const bert = () => openLibrary('tokenizer.json');
const roberta = () => openLibrary('roberta-tokenizer.json.gz');
const xlmRoberta = () => openLibrary('xlm-roberta-tokenizer.json.gz');

const idsOf = (tokenizer: Library, text: string) => tokenizer.encode(text, { add_special_tokens: false }).ids;

test('the corrections were written for the installed version, which package.json pins', () => {
  const { dependencies } = readJson(join(packageRoot, 'package.json')) as { dependencies: Record<string, string> };
  assert.equal(dependencies['@huggingface/tokenizers'], CORRECTED_VERSION);
  // Its exports do not include its package.json.
  let folder = dirname(createRequire(import.meta.url).resolve('@huggingface/tokenizers'));
  while (!folder.endsWith('tokenizers')) folder = dirname(folder);
  const { version } = readJson(join(folder, 'package.json')) as { version: string };
  assert.equal(version, CORRECTED_VERSION);
});

test('the library calls a replaced normaliser, pre-tokenizer and model', () => {
  for (const open of [bert, roberta, xlmRoberta]) {
    const tokenizer = open();
    const calls: unknown[] = [];
    const recording =
      <T>(name: string, result: T) =>
      (argument: unknown): T => {
        calls.push([name, argument]);
        return result;
      };
    tokenizer.normalizer = recording('normalize', 'b');
    tokenizer.pre_tokenizer = recording('split', ['c', 'd']);
    tokenizer.model.encode = recording('encode', ['piece']);
    tokenizer.model.tokens_to_ids.set('piece', 7);
    assert.deepEqual(idsOf(tokenizer, 'a'), [7]);
    assert.deepEqual(calls, [
      ['normalize', 'a'],
      ['split', 'b'],
      ['encode', ['c', 'd']],
    ]);
  }
});

test('the library calls the parts of a sequence from its list, so that one can be replaced', () => {
  const sequence = { normalizer: { type: 'Sequence', normalizers: [{ type: 'NFC' }, { type: 'Lowercase' }] } };
  const split = { pre_tokenizer: { type: 'Sequence', pretokenizers: [{ type: 'WhitespaceSplit' }] } };
  const file = readJson(fixture('tokenizer.json')) as object;
  const tokenizer = new Tokenizer({ ...file, ...sequence, ...split }, {}) as unknown as Library;
  assert.equal(tokenizer.normalizer('A'), 'a');
  tokenizer.normalizer.normalizers![1] = { normalize: (text) => `${text}!` };
  assert.equal(tokenizer.normalizer('A'), 'A!');
  assert.deepEqual(tokenizer.pre_tokenizer('a b'), ['a', 'b']);
  tokenizer.pre_tokenizer.tokenizers![0] = { pre_tokenize: (texts) => [texts].flat() };
  assert.deepEqual(tokenizer.pre_tokenizer('a b'), ['a b']);
});

test('the models have the fields that the corrections read and set', () => {
  const wordPiece = bert().model;
  assert.equal(wordPiece.config.continuing_subword_prefix, '##');
  assert.equal(wordPiece.unk_token, '[UNK]');
  assert.equal(typeof wordPiece.max_input_chars_per_word, 'number');
  const unknown = wordPiece.tokens_to_ids.get('[UNK]')!;
  assert.equal(wordPiece.vocab[unknown], '[UNK]');
  assert.equal(wordPiece.unk_token_id, unknown);

  const tokenizer = xlmRoberta();
  const { model } = tokenizer;
  assert.equal(model.fuse_unk, true);
  assert.equal(model.vocab[model.unk_token_id!], '<unk>');
  // Pieces outside the vocabulary are unknown; fuse_unk merges adjacent unknown pieces into one.
  model.encode = () => ['not a piece', 'nor this'];
  assert.deepEqual(idsOf(tokenizer, 'a'), [model.unk_token_id]);
  model.fuse_unk = false;
  assert.deepEqual(idsOf(tokenizer, 'a'), [model.unk_token_id, model.unk_token_id]);
  assert.equal(tokenizer.id_to_token(5), model.vocab[5]);
  assert.equal(tokenizer.token_to_id(model.vocab[5]!), 5);
});

test('the library still has the differences from the reference tokeniser that Trawl corrects', () => {
  // The reference uses Unicode 8: it keeps a mark of Unicode 9, and splits at a character that is no longer punctuation.
  assert.equal(bert().normalizer('a\u{1e944}'), 'a');
  assert.deepEqual(bert().pre_tokenizer('b\u166dc'), ['b\u166dc']);
  // The reference removes white space before `<mask>`; JavaScript's trim does not count U+0085 as white space.
  assert.equal(idsOf(xlmRoberta(), 'a\u0085<mask>').length, 3);
  // The reference gives all tokens of RoBERTa's pairs the type 0.
  const pair = roberta().encode('a', { text_pair: 'a', add_special_tokens: true, return_token_type_ids: true });
  assert.ok(pair.token_type_ids!.includes(1));
});

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(path, 'utf8'));
}
