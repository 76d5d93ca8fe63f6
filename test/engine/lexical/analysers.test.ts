import assert from 'node:assert/strict';
import { test } from 'node:test';
import { analyser } from '../../../src/engine/lexical/analysis/analysers.ts';
import { ANALYSERS, type AnalyserName } from '../../../src/engine/lexical/lexical-settings.ts';

/** Terms that Lucene 9.12.3 gives. */
const CASES: readonly (readonly [AnalyserName, string, readonly string[]])[] = [
  [
    'standard',
    "don’t O'Neil U.S.A. 1,000,000.50 foo@bar.com",
    ['don’t', "o'neil", 'u.s.a', '1,000,000.50', 'foo', 'bar.com'],
  ],
  ['standard', 'foo_bar _foo __ x² ½ ① Ⅷ', ['foo_bar', '_foo', 'x', 'ⅷ']],
  ['standard', '我爱北京 東京タワーは 서울시123', ['我', '爱', '北', '京', '東', '京', 'タワー', 'は', '서울시123']],
  ['standard', 'hello😀world 🇺🇸🇬🇧 🇺 1️⃣ ™ צה"ל', ['hello', '😀', 'world', '🇺🇸', '🇬🇧', '1️⃣', '™', 'צה"ל']],
  ['standard', 'ΣΑΣ İ', ['σασ', 'i']],
  ['english', 'The Running of O’Neil’S dogs', ['run', 'o’neil', 'dog']],
  ['english', 'ies eed eeds sses byyed yyyed skyyed', ['i', 'eed', 'eed', 'ss', 'by', 'yy', 'sky']],
  ['english', 'the of and', []],
  ['anserini', 'generalizations', ['gener']],
  ['whitespace', ' a\tB\u3000c\u00a0d ', ['a', 'B', 'c\u00a0d']],
  ['cjk', '北京天 x 北', ['北京', '京天', 'x', '北']],
  ['cjk', 'ｶﾞﾗｽ ＡＢＣ', ['ガラ', 'ラス', 'abc']],
];

for (const [name, text, terms] of CASES) {
  test(`${name} makes the terms of Lucene from ${JSON.stringify(text)}`, () => {
    assert.deepEqual(analyser(name)(text), terms);
  });
}

test('a word of more than 255 UTF-16 units is split, never within a surrogate pair', () => {
  const standard = analyser('standard');
  assert.deepEqual(
    standard('x'.repeat(300)).map((term) => term.length),
    [255, 45],
  );
  assert.deepEqual(
    standard('𝒳'.repeat(200)).map((term) => term.length),
    [254, 146],
  );
});

test('no text makes an analyser fail', () => {
  for (const name of ANALYSERS) {
    for (const text of ['', '\ud800', 'a\udc00b', '\0', 'y'.repeat(100_000)]) {
      assert.ok(Array.isArray(analyser(name)(text)), name);
    }
  }
});
