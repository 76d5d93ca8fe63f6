import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { before, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import type { JsonObject } from '../../src/encoder/model/json-file.ts';
import { TextTokenizer } from '../../src/encoder/tokenizer/tokenizer.ts';
import { collectGarbage } from '../helpers/collect-garbage.ts';
import { runs } from '../helpers/runs.ts';
import { fixture } from './model-fixtures.ts';

const ALL = Number.POSITIVE_INFINITY;
/** Random texts. */
const COUNT = runs(150, 600);
const ARCHITECTURES = ['roberta', 'xlm-roberta', 'qwen3', 'modernbert', 't5'] as const;

interface Golden {
  readonly texts: readonly string[];
  readonly [key: string]: readonly unknown[];
}

function unpacked(name: string): JsonObject {
  return JSON.parse(gunzipSync(readFileSync(fixture(name))).toString()) as JsonObject;
}

/** Texts and their ids from the reference tokeniser; `fixtures/make_tokenizers.py` wrote these and the tokenizers. */
const golden = unpacked('golden-subwords.json.gz') as unknown as Golden;
const tokenizers = new Map<string, TextTokenizer>();

before(() => {
  for (const architecture of ARCHITECTURES)
    tokenizers.set(architecture, new TextTokenizer(unpacked(`${architecture}-tokenizer.json.gz`), architecture));
});

for (const architecture of ARCHITECTURES) {
  test(`difficult texts have the ids of the reference tokeniser: ${architecture}`, () => {
    const tokenizer = tokenizers.get(architecture)!;
    assert.ok(golden.texts.length > 1000);
    for (const [i, text] of golden.texts.entries()) {
      assert.deepEqual(
        tokenizer.frame(tokenizer.contentIds(text, ALL)),
        golden[architecture]![i],
        JSON.stringify(text),
      );
    }
  });

  test(`pairs of texts have the ids and token types of the reference tokeniser: ${architecture}`, () => {
    const tokenizer = tokenizers.get(architecture)!;
    const pairs = golden[`${architecture}-pairs`] as [number[], number[]][];
    assert.equal(pairs.length, 100);
    for (const [i, [ids, types]] of pairs.entries()) {
      const [first, second] = [golden.texts[2 * i]!, golden.texts[2 * i + 1]!].map((text) =>
        tokenizer.contentIds(text, ALL),
      );
      assert.deepEqual(tokenizer.framePair(first!, second!), { ids, types });
      assert.equal(ids.length, first!.length + second!.length + tokenizer.pairFramingTokens);
    }
  });

  test(`reading only the head of a text does not change its first ids: ${architecture}`, () => {
    const tokenizer = tokenizers.get(architecture)!;
    const word = fc.oneof(
      { arbitrary: fc.constantFrom('Vienna', '1889', 'is', 'the', 'a'), weight: 9 },
      fc.constantFrom(...golden.texts),
      fc.string({ unit: 'grapheme', maxLength: 8 }),
      fc.constantFrom(
        'Vienna',
        '1889',
        'is',
        '漢字',
        '\n',
        '  ',
        '<mask>',
        '</s>',
        '<|endoftext|>',
        '<extra_id_0>',
        '   ',
        "don't",
        'ﬁ',
      ),
    );
    const text = fc
      .array(fc.tuple(word, fc.constantFrom(' ', ' ', ' ', '  ', '', '\n')), { maxLength: 60 })
      .map((parts) => parts.flat().join(''));
    let shortened = 0;
    fc.assert(
      fc.property(text, fc.integer({ min: 0, max: 20 }), (whole, atMost) => {
        const all = tokenizer.contentIds(whole, ALL);
        const head = tokenizer.contentIds(whole, atMost);
        if (head.length < all.length) shortened++;
        assert.deepEqual(head.slice(0, atMost), all.slice(0, atMost));
        assert.equal(head.length > atMost, all.length > atMost);
      }),
      { numRuns: COUNT },
    );
    assert.ok(shortened > COUNT / 30, `${shortened} texts were shortened`);
  });
}

// ModernBERT has RoBERTa's words after Qwen3's normaliser.
for (const architecture of ['roberta', 'xlm-roberta', 'qwen3', 't5']) {
  test(`the time to tokenise a text is proportional to its length: ${architecture}`, () => {
    const tokenizer = tokenizers.get(architecture)!;
    const units = [
      'x',
      '!',
      '漢',
      '\u0301',
      'e\u0301\u0323',
      '👨\u200d',
      '\r\n',
      ' ',
      '▁',
      '🇺',
      '\u1100\u1161',
      '\u0600',
      '<',
      '\u200b',
    ];
    for (const unit of units) {
      const text = unit.repeat(Math.floor(100_000 / unit.length));
      const before = process.cpuUsage();
      tokenizer.contentIds(text, 510);
      // CPU time: at most about 0.8 s; a quadratic algorithm takes 8 s or more.
      const { user, system } = process.cpuUsage(before);
      assert.ok(user + system < 6e6, JSON.stringify(unit));
    }
  });
}

test('100,000 more Unigram pieces take less than 25 MB of the heap', () => {
  const file = unpacked('xlm-roberta-tokenizer.json.gz') as { model: { vocab: [string, number][] } };
  const random = Array.from({ length: 100_000 }, (_, i) => [`▁${i.toString(36)}x`, -9 - (i % 7)] as [string, number]);
  const vocab = [...file.model.vocab.slice(0, -1), ...random];
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  const tokenizer = new TextTokenizer(
    { ...file, added_tokens: [], model: { ...file.model, vocab } } as unknown as JsonObject,
    'big',
  );
  collectGarbage();
  const growth = (process.memoryUsage().heapUsed - before) / 1e6;
  assert.ok(growth < 25, `${growth} MB`);
  const [id] = tokenizer.contentIds('2pxx', ALL);
  assert.equal(vocab[id!]![0], '▁2pxx');
});

test('an invalid charsmap and a Unigram model with byte_fallback are refused', () => {
  const file = unpacked('xlm-roberta-tokenizer.json.gz') as { model: object };
  for (const charsmap of ['', 'AAAA', '/////w==', 'not base64']) {
    const normalizer = { type: 'Precompiled', precompiled_charsmap: charsmap };
    assert.throws(() => new TextTokenizer({ ...file, normalizer } as JsonObject, 'some.json'), /some\.json.*charsmap/);
  }
  const model = { ...file.model, byte_fallback: true };
  assert.throws(() => new TextTokenizer({ ...file, model } as JsonObject, 'some.json'), /byte_fallback/);
});

test('null in a Metaspace means the default, as in the reference', () => {
  const file = unpacked('xlm-roberta-tokenizer.json.gz');
  const settings = { type: 'Metaspace', replacement: '▁' };
  const idsOf = (pre_tokenizer: object) =>
    new TextTokenizer({ ...file, pre_tokenizer }, 'xlm-roberta').contentIds('two words', ALL);
  assert.deepEqual(
    idsOf({ ...settings, add_prefix_space: null, split: null }),
    idsOf({ ...settings, prepend_scheme: 'always', split: true }),
  );
});
