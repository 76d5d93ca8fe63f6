import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { readTexts, writeTexts } from '../../bench/lexical/text-file.ts';
import { COMPARED_LUCENE, openLucene, withoutLucene } from '../../bench/lucene.ts';
import type { ScriptProcess } from '../../bench/script-process.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import { analyser } from '../../src/engine/lexical/analysis/analysers.ts';
import { SNOWBALL_ANALYSERS, type SnowballAnalyser } from '../../src/engine/lexical/lexical-settings.ts';
import { CLIENTS, peerCache } from '../helpers/peers.ts';
import { seededRandom } from '../helpers/seeded-random.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const MADE_UP = 15_000;

/** One Java process for all tests. */
let process: ScriptProcess<{ terms: number }> | undefined;
after(() => process?.close());
const lucene = (): ScriptProcess<{ terms: number }> =>
  (process ??= openLucene(peerCache(), { version: COMPARED_LUCENE, maxHeap: '1g' }));

function realWords(): string[] {
  const text = readFileSync(join(packageRoot, 'corpus', 'sample', 'passages.jsonl'), 'utf8');
  return [...new Set(Array.from(text.toLowerCase().matchAll(/\p{L}+/gu), ([word]) => word))];
}

const LATIN = 'abcdefghijklmnopqrstuvwxyzäöüßéèêàâçîïôûùñóíáúãõåæøőűșțşţğıčšžąęėįųū';
const CYRILLIC = 'абвгдежзийклмнопрстуфхцчшщъыьэюяёђјљњћџ';
const DEVANAGARI = `अआइईउऊएऐओऔकखगघचछजझटठडढणतथदधनपफबभमयरलवशषसह${'\u093e\u093f\u0940\u0941\u0942\u0947\u0948\u094b\u094c\u094d\u0902'}`;
const LETTERS: Readonly<Partial<Record<SnowballAnalyser, string>>> = {
  arabic: 'ابتثجحخدذرزسشصضطظعغفقكلمنهويةىءأإآؤئ',
  armenian: 'աբգդեզէըթժիլխծկհձղճմյնշոչպջռսվտրցւփքօֆ',
  greek: 'αβγδεζηθικλμνξοπρστυφχψωάέήίόύώϊϋς',
  hindi: DEVANAGARI,
  nepali: DEVANAGARI,
  russian: CYRILLIC,
  serbian: LATIN + CYRILLIC,
  tamil: `அஆஇஈஉஊஎஏஐஒஓகஙசஞடணதநபமயரலவழளறன${'\u0bbe\u0bbf\u0bc0\u0bc1\u0bc2\u0bc6\u0bc7\u0bc8\u0bca\u0bcb\u0bcd'}`,
};

/** Words of random letters, and real words with random letters appended, which meet the rules for endings. */
function madeUpWords(language: SnowballAnalyser, real: readonly string[], count: number): string[] {
  const random = seededRandom(language.length);
  const letters = [...(LETTERS[language] ?? LATIN)];
  const below = (limit: number): number => Math.floor(random() * limit);
  return Array.from({ length: count }, (_, i) => {
    const stem = i % 3 === 0 ? real[below(real.length)]! : '';
    const more = Array.from({ length: 1 + below(stem === '' ? 12 : 5) }, () => letters[below(letters.length)]!);
    // A word begins with a letter: a mark alone is not a token.
    return stem + more.join('').replace(/^\p{M}+/u, '');
  }).filter((word) => word !== '');
}

function wordsOf(language: SnowballAnalyser): string[] {
  const real = realWords();
  return [...real, ...madeUpWords(language, real, MADE_UP)];
}

for (const language of SNOWBALL_ANALYSERS) {
  test(`${language}: the stems are those of the Snowball project`, { skip: CLIENTS.missing() }, async (t) => {
    const terms = analyser(language);
    // A word of several scripts may be several tokens, and stop words have no term.
    const tokens = analyser('standard');
    const words = wordsOf(language).filter((word) => tokens(word).length === 1 && terms(word).length === 1);
    const stems = (await CLIENTS.run('snowball_stem.py', { language, words })) as string[];
    const differing = words.filter((word, i) => terms(word)[0] !== stems[i]);
    assert.ok(words.length > MADE_UP, `${words.length} words`);
    assert.deepEqual(differing.slice(0, 5), [], `${differing.length} of ${words.length} words differ`);
    t.diagnostic(`${words.length} words`);
  });
}

/** The texts for which a chain of Lucene's parts, or an analyser of Lucene, has other terms. */
async function differingFrom(
  t: TestContext,
  chain: { analyser: string; language?: string },
  language: SnowballAnalyser,
  texts: readonly string[],
): Promise<string[]> {
  const folder = await tempFolder(t);
  const [path, out] = [join(folder, 'texts'), join(folder, 'terms')];
  await writeTexts(path, texts);
  await lucene().ask({ do: 'terms', ...chain, texts: path, out });
  const ours = analyser(language);
  const differing: string[] = [];
  let i = 0;
  for await (const block of readTexts(out)) {
    for (const expected of block) {
      const text = texts[i++]!;
      // Greek and Nepali have words with an empty stem, which Lucene keeps as an empty term.
      const terms = expected.split('\u001f').filter((term) => term !== '');
      if (!isDeepStrictEqual(ours(text), terms)) differing.push(`${text}: ${ours(text)}, Lucene ${expected}`);
    }
  }
  assert.equal(i, texts.length);
  return differing;
}

/** Sentences of the words, of sentences in several languages, and of what the tokenizer has rules for. */
function sentencesOf(language: SnowballAnalyser): string[] {
  const random = seededRandom(3);
  const words = wordsOf(language);
  const capital = (word: string): string => word.slice(0, 1).toUpperCase() + word.slice(1);
  const sentences = Array.from({ length: Math.ceil(words.length / 10) }, (_, i) =>
    words
      .slice(10 * i, 10 * i + 10)
      .map((word) => (random() < 0.1 ? word.toUpperCase() : random() < 0.3 ? capital(word) : word))
      .map((word) =>
        random() < 0.1 ? `${['l’', "d'", 'Qu’', "dell'", "O'"][Math.floor(5 * random())]!}${word}` : word,
      )
      .join([' ', ' ', ', ', ' 12.5 ', '-', '\n'][Math.floor(6 * random())]!),
  );
  return [...sentences, ...SENTENCES];
}

const SENTENCES = [
  'Die Häuser der größeren Städte und ihre Straßen, nicht aber das Dorf, wurden 1893 gebaut.',
  "L'été, j'avais été à l'Opéra ; qu’il s'agisse d'une aujourd'hui célèbre œuvre ou non.",
  "Dell'arte italiana nell’Ottocento: gli anni c'erano, un'altra volta.",
  'Los niños hablábamos rápidamente de las canciones españolas. As crianças falávamos português.',
  'De kinderen liepen naar huizen. Børnene løb. Barnen sprang. Talojen lapset juoksivat.',
  'Красивые дома в больших городах были построены; он был там ещё вчера.',
  'İstanbul’da IŞIK ve ılık sular, çocukların kitapları. Az iskolák diákjai.',
  'المدارس الكبيرة في المدن والكتب',
  'Τα μεγάλα σπίτια ΤΩΝ ΠΌΛΕΩΝ της Ελλάδας',
  'लड़कियों की किताबें और स्कूलों के बच्चे',
  '',
  "' l' L’ d'' x".repeat(30),
  'x'.repeat(600),
];

for (const language of SNOWBALL_ANALYSERS) {
  test(`${language}: the terms are those of Lucene's tokenizer, lower case, stop words and Snowball filter`, {
    skip: withoutLucene(peerCache()),
  }, async (t) => {
    const sentences = sentencesOf(language);
    const differing = await differingFrom(t, { analyser: 'snowball', language }, language, sentences);
    assert.deepEqual(differing.slice(0, 3), [], `${differing.length} of ${sentences.length} sentences differ`);
  });
}

test("the terms of Lucene's own GermanAnalyzer and FrenchAnalyzer differ, because they have other stemmers", {
  skip: withoutLucene(peerCache()),
}, async (t) => {
  for (const [language, name] of [
    ['german', 'GermanAnalyzer'],
    ['french', 'FrenchAnalyzer'],
  ] as const) {
    const words = wordsOf(language);
    const differing = await differingFrom(t, { analyser: name }, language, words);
    t.diagnostic(`${name}: ${differing.length} of ${words.length} words have another term`);
    assert.ok(differing.length > 0);
  }
});
