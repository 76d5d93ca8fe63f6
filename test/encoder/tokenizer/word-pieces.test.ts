import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { Tokenizer } from '@huggingface/tokenizers';
import fc from 'fast-check';
import { packageRoot } from '../../../src/base/package-root.ts';
import { type WordPieceModel, wordPieceEncoder } from '../../../src/encoder/tokenizer/word-pieces.ts';
import { runs } from '../../helpers/runs.ts';
import { fixture } from '../model-fixtures.ts';

type LibraryModel = WordPieceModel & { encode(words: string[]): string[] };

const BERT_TOKENIZER = join(packageRoot, 'models', 'token-average-256', 'tokenizer.json');

async function libraryModel(path: string): Promise<LibraryModel> {
  const tokenizer = new Tokenizer(JSON.parse(await readFile(path, 'utf8')), {});
  return (tokenizer as unknown as { model: LibraryModel }).model;
}

test('words are split into the same pieces as by the library', async () => {
  const word = fc.oneof(
    fc.string({ unit: fc.constantFrom(...'abcdeginorst', 'é', '漢', '😀', '\u{20000}', 'ᴐ'), maxLength: 30 }),
    fc.constantFrom('', '##', '##ing', 'unbelievably', '[UNK]', '[SEP]', 'tokenization', '😀'.repeat(100)),
    fc.integer({ min: 95, max: 105 }).map((length) => 'qzxj'.repeat(30).slice(0, length)),
  );
  for (const path of [fixture('tokenizer.json'), BERT_TOKENIZER].filter(existsSync)) {
    const model = await libraryModel(path);
    const encode = wordPieceEncoder(model);
    fc.assert(
      fc.property(fc.array(word, { maxLength: 8 }), (words) => {
        assert.deepEqual(encode(words), model.encode(words));
      }),
      { numRuns: runs(150, 500) },
    );
  }
});
