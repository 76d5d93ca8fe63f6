import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { type Hits, readHits, readTexts, writeTexts } from '../../bench/lexical/text-file.ts';
import { COMPARED_LUCENE, LUCENE_RELEASES, openLucene, withoutLucene } from '../../bench/lucene.ts';
import type { ScriptProcess } from '../../bench/script-process.ts';
import { readSearchCalls } from '../../bench/serve/search-calls.ts';
import { bm25Settings } from '../../indexer/lexical/make-lexical.ts';
import { analyser as referenceAnalyser } from '../../src/engine/lexical/analysis/analysers.ts';
import type { LexicalResult } from '../../src/engine/lexical/lexical-index.ts';
import { bestFields } from '../../src/engine/lexical/lexical-query.ts';
import { openLexicalFields, openLexicalIndex } from '../../src/engine/lexical/open-lexical.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { peerCache } from '../helpers/peers.ts';
import { runs } from '../helpers/runs.ts';
import { seededRandom } from '../helpers/seeded-random.ts';
import { sharedData, withoutSharedData } from '../helpers/shared-data.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { build } from '../indexer/build.ts';

const CHAINS = ['english', 'standard', 'whitespace', 'cjk'] as const;
type Chain = (typeof CHAINS)[number];

const K = 1_000;
const PARAMETERS = [
  { k1: 0.9, b: 0.4 },
  { k1: 1.2, b: 0.75 },
];
const AGENT_QUERIES = 5_000;

const POOL = 'pool_wiki_dev/corpus.jsonl';
const HOTPOT = 'hotpot_val500_pooled';
const SQUAD = 'squad_v11_dev';
const CALLS = 'search_calls/all_search_calls.jsonl';

const loaded = loadKernel();
const withoutEngine = loaded.ok ? false : `the native engine is not built: ${loaded.reason}`;
const skip = withoutLucene(peerCache()) || withoutEngine;

interface Reply {
  readonly version: string;
  readonly ms: number;
  readonly terms: number;
  readonly java: number;
}

/** A Java process for each release, for all tests. */
const processes = new Map<string, ScriptProcess<Reply>>();
after(() => Promise.all(Array.from(processes.values(), (process) => process.close())));
function lucene(version = COMPARED_LUCENE): ScriptProcess<Reply> {
  const process = processes.get(version) ?? openLucene<Reply>(peerCache(), { version, maxHeap: '2g' });
  processes.set(version, process);
  return process;
}

const readJsonLines = <Row>(path: string): Row[] =>
  readFileSync(sharedData(path), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Row);

/** The texts that `contents` of an inverted index covers, by row. */
const contentsOf = (corpus: string): string[] => readJsonLines<{ contents: string }>(corpus).map((row) => row.contents);

/** Compares the terms of Lucene with those of the native engine and, if wanted, of the reference in TypeScript. */
async function compareTerms(
  t: TestContext,
  chain: Chain,
  texts: readonly string[],
  { reference }: { reference: boolean },
): Promise<{ terms: number; differing: string[] }> {
  assert.ok(loaded.ok);
  const folder = await tempFolder(t);
  const [path, out] = [join(folder, 'texts'), join(folder, 'terms')];
  await writeTexts(path, texts);
  const { terms } = await lucene().ask({ do: 'terms', analyser: chain, texts: path, out });
  const ours = referenceAnalyser(chain);
  const differing: string[] = [];
  let i = 0;
  for await (const block of readTexts(out)) {
    for (const expected of block) {
      const text = texts[i++]!;
      const isEqual =
        loaded.kernel.analyse(chain, text).join('\u001f') === expected &&
        (!reference || ours(text).join('\u001f') === expected);
      if (!isEqual) differing.push(text);
    }
  }
  assert.equal(i, texts.length);
  return { terms, differing };
}

/** Letters of which this Java and Trawl, whose table is that of Java 17, have other lower cases. */
async function lowerCaseDifferences(t: TestContext): Promise<{ java: number; differing: number[] }> {
  const out = join(await tempFolder(t), 'lower-case');
  const { java } = await lucene().ask({ do: 'lower_case', out });
  const bytes = await readFile(out);
  const ours = referenceAnalyser('standard');
  const differing: number[] = [];
  for (const code of codePoints()) {
    const term = ours(String.fromCodePoint(code))[0] ?? '';
    if (term !== '' && term !== String.fromCodePoint(bytes.readInt32LE(4 * code))) differing.push(code);
  }
  return { java, differing };
}

function* codePoints(): Generator<number> {
  for (let code = 0; code <= 0x10ffff; code++) if (code < 0xd800 || code > 0xdfff) yield code;
}

/** Strings of lexical.md §3 and of the rules' edges. */
const HARD_TEXTS = [
  "don't · O'Neil’s · 'quoted' · James’ · U.S.A. · e.g.",
  "1,000,000.50 · 12:30 · a:b · 1'000 · a,b · 2.0rc1 · 192.168.0.1 · 1-2 · foo@bar.com · C++ · AT&T",
  'foo_bar · _foo · __ · x² · ½ · № 5 · ① · Ⅷ',
  '我爱北京 · 東京タワーは · 々木 · ﾊﾝｶｸ · 서울시123 · 안녕하세요 세계',
  'ประเทศไทย มีประชากร 70 · ภาษาไทยabc',
  'hello😀world · 👨‍👩‍👧‍👦 · 🇺🇸🇬🇧 · 🇺 · 1️⃣ · ™ · צה"ל · א"ב"ג',
  '竹千代 ツインズ ｶﾞﾗｽ ＡＢＣ ﾊﾟﾝ ｳﾞｧ',
  'ies eed eeds sses byyed yyyed skyyed generalizations',
  "The Running of O’Neil’S dogs; James'S book; ＇s x＇s",
  'ΣΑΣ ΟΔΟΣ İstanbul DİYARBAKIR Ⅷ ẞ ǅ ﬁ',
  'the of and',
  '',
  ' \t\r\n\u001c\u001d\u001e\u001f\u0085\u00a0\u1680\u2007\u202f\u205f\u3000\ufeff',
  'é e\u0301 \u00ad soft\u00adhyphen word\u2060joiner a\u200db \ufeffbom',
  'x'.repeat(300),
  'x'.repeat(254) + '𝒳'.repeat(3),
  '𝒳'.repeat(200),
  `${'y'.repeat(255)}'s`,
  `${'안'.repeat(300)} ${'漢'.repeat(300)} ${'カ'.repeat(300)} ${'ไ'.repeat(300)}`,
  '\0 a\0b \u0001',
  'a'.repeat(100_000),
];

const ALPHABET = [
  ...'aBsS1 .,\':"_-’＇中文あカ한서ไท😀👨👩👧🇺🇸\u200d\ufe0f\ufe0e\u20e3#*0אב\u0301\u00ad🏽☝\u{e0067}\u{e007f}🏴½²５ｶﾞﾊﾟｳﾞｱﾞＡédingyΣİ々〇\t\u3000',
];

/** Strings of characters that the rules treat in different ways, and of any code points that `isKnown` accepts. */
function randomTexts(count: number, isKnown: (code: number) => boolean): string[] {
  const random = seededRandom(9);
  const below = (limit: number): number => Math.floor(random() * limit);
  const anyCharacter = (): string => {
    for (;;) {
      const code = random() < 0.7 ? below(0x3000) : below(0x110000);
      if ((code < 0xd800 || code > 0xdfff) && isKnown(code)) return String.fromCodePoint(code);
    }
  };
  return Array.from({ length: count }, (_, i) => {
    const share = i % 3 === 0 ? 0.5 : 0;
    return Array.from({ length: 1 + below(20) }, () =>
      random() < share ? anyCharacter() : ALPHABET[below(ALPHABET.length)]!,
    ).join('');
  });
}

test('the terms of hard and random strings are those of Lucene', { skip }, async (t) => {
  const { java, differing: lowerCase } = await lowerCaseDifferences(t);
  t.diagnostic(`Java ${java} has another lower case for ${lowerCase.length} letters, which are left out`);
  if (java === 17) assert.deepEqual(lowerCase, []);
  const leftOut = new Set(lowerCase);
  const inContext = ['', 'a', '1', 'カ', '_'].map((before) => {
    const texts: string[] = [];
    let pieces: string[] = [];
    for (const code of codePoints()) {
      if (leftOut.has(code)) continue;
      pieces.push(`${before}${String.fromCodePoint(code)}${before}b`);
      if (pieces.length < 500) continue;
      texts.push(pieces.join(' \n '));
      pieces = [];
    }
    return [...texts, pieces.join(' \n ')];
  });
  const texts = [...HARD_TEXTS, ...randomTexts(runs(10_000, 30_000), (code) => !leftOut.has(code))];
  for (const chain of CHAINS) {
    // The analysers differ in their filters, not in the classes of characters.
    for (const [what, list, reference] of [
      ['hard and random strings', texts, true],
      ['texts with every code point', inContext.flat(), chain === 'standard'],
    ] as const) {
      const { terms, differing } = await compareTerms(t, chain, list, { reference });
      assert.deepEqual(differing.slice(0, 3), [], `${chain}: ${differing.length} of ${list.length} texts differ`);
      t.diagnostic(`${chain}: ${terms} terms of ${list.length} ${what} are equal`);
    }
  }
});

test('the terms of all passages of pool_wiki_dev are those of Lucene', {
  skip: skip || withoutSharedData(POOL),
}, async (t) => {
  const texts = contentsOf(POOL);
  for (const chain of CHAINS) {
    const { terms, differing } = await compareTerms(t, chain, texts, { reference: false });
    assert.deepEqual(differing.slice(0, 3), [], `${chain}: ${differing.length} of ${texts.length} passages differ`);
    t.diagnostic(`${chain}: ${terms} terms of ${texts.length} passages are equal`);
  }
});

interface Comparison {
  readonly name: string;
  readonly corpus: string;
  readonly analyser: Chain;
  readonly queries: Readonly<Record<string, () => Promise<readonly string[]>>>;
}

const questionsOf = (folder: string) => async (): Promise<string[]> =>
  readJsonLines<{ question: string }>(`${folder}/queries.jsonl`).map(({ question }) => question);

/** The first distinct queries of the recorded calls. */
async function agentQueries(): Promise<string[]> {
  const calls = await readSearchCalls(sharedData(CALLS));
  return [...new Set(calls.flatMap(({ queries }) => queries))].slice(0, AGENT_QUERIES);
}

const COMPARISONS: readonly Comparison[] = [
  { name: HOTPOT, corpus: `${HOTPOT}/corpus.jsonl`, analyser: 'english', queries: { questions: questionsOf(HOTPOT) } },
  { name: SQUAD, corpus: `${SQUAD}/corpus.jsonl`, analyser: 'english', queries: { questions: questionsOf(SQUAD) } },
  {
    name: 'pool_wiki_dev',
    corpus: POOL,
    analyser: 'english',
    queries: { 'questions of hotpot_val500_pooled': questionsOf(HOTPOT), "agents' queries": agentQueries },
  },
  ...(['standard', 'whitespace', 'cjk'] as const).map((analyser) => ({
    name: `${HOTPOT} with ${analyser}`,
    corpus: `${HOTPOT}/corpus.jsonl`,
    analyser,
    queries: { questions: questionsOf(HOTPOT) },
  })),
];

/** Lucene's hits of the queries that it has read. */
async function luceneHits(folder: string, version: string): Promise<Hits[]> {
  await lucene(version).ask({ do: 'batch', k: K, threads: 2, limitMs: 1e9 });
  const answer = join(folder, 'answer');
  await lucene(version).ask({ do: 'answer', out: answer });
  return readHits(answer);
}

/** The number of our hits, and a sentence about each query whose rows or bits of scores differ. */
function compareHits(
  queries: readonly string[],
  { counts, rows, scores }: LexicalResult,
  theirs: readonly Hits[],
): { hits: number; differences: string[] } {
  assert.equal(theirs.length, queries.length);
  const scoreBits = new Uint32Array(scores.buffer, scores.byteOffset, scores.length);
  const differences: string[] = [];
  let hits = 0;
  for (const [q, expected] of theirs.entries()) {
    const count = counts[q]!;
    hits += count;
    let rank = 0;
    while (
      rank < count &&
      rows[q * K + rank] === expected.rows[rank] &&
      scoreBits[q * K + rank] === expected.scoreBits[rank]
    )
      rank++;
    if (rank === count && count === expected.rows.length) continue;
    differences.push(`${JSON.stringify(queries[q])}: rank ${rank + 1} of ${count} here, ${expected.rows.length} there`);
  }
  return { hits, differences };
}

for (const { version, name, corpus, analyser, queries } of COMPARISONS.flatMap((comparison) =>
  LUCENE_RELEASES.map((version) => ({ ...comparison, version })),
)) {
  test(`scores and ranks over ${name} equal Lucene ${version} to the last bit`, {
    skip: withoutEngine || withoutLucene(peerCache(), version) || withoutSharedData(corpus) || withoutSharedData(CALLS),
  }, async (t) => {
    assert.ok(loaded.ok);
    const folder = await tempFolder(t);
    const out = join(folder, 'index');
    const bm25 = bm25Settings({ analyser, ...PARAMETERS[0]!, fields: ['contents'] });
    await build({ corpus: [sharedData(corpus)], out, kernel: loaded.kernel, bm25 });
    const index = await openLexicalIndex(openIndexDirectory(out).lexical.get('contents')!);
    t.after(() => index.close());
    const texts = join(folder, 'texts');
    await writeTexts(texts, contentsOf(corpus));
    const luceneIndex = join(folder, 'lucene');
    await lucene(version).ask({ do: 'build', analyser, texts, folder: luceneIndex });
    for (const parameters of PARAMETERS) {
      await lucene(version).ask({ do: 'load', analyser, folder: luceneIndex, ...parameters });
      for (const [what, read] of Object.entries(queries)) {
        const list = await read();
        const path = join(folder, 'queries');
        await writeTexts(path, list);
        await lucene(version).ask({ do: 'queries', texts: path });
        const theirs = await luceneHits(folder, version);
        const result = await index.search({ queries: list, k: K, parameters: { ...parameters, k1Factor: false } });
        const { hits, differences } = compareHits(list, result, theirs);
        const which = `${what}, k1 ${parameters.k1}, b ${parameters.b}`;
        assert.deepEqual(
          differences.slice(0, 3),
          [],
          `${which}: ${differences.length} of ${list.length} queries differ`,
        );
        t.diagnostic(`${which}: ${hits} hits of ${list.length} queries have equal rows and score bits`);
      }
    }
  });
}

for (const version of LUCENE_RELEASES)
  test(`the best of title and text of ${HOTPOT} scores and ranks as DisjunctionMaxQuery of Lucene ${version}, to the last bit`, {
    skip: withoutEngine || withoutLucene(peerCache(), version) || withoutSharedData(`${HOTPOT}/corpus.jsonl`),
  }, async (t) => {
    assert.ok(loaded.ok);
    const folder = await tempFolder(t);
    const out = join(folder, 'index');
    const corpus = `${HOTPOT}/corpus.jsonl`;
    const bm25 = bm25Settings({ analyser: 'standard', ...PARAMETERS[1]!, fields: ['title', 'text'] });
    await build({ corpus: [sharedData(corpus)], out, kernel: loaded.kernel, bm25, shardRows: 1_000 });
    const fields = await openLexicalFields(openIndexDirectory(out).lexical);
    t.after(() => fields.close());
    const rows = readJsonLines<{ title: string; text: string }>(corpus);
    const [titles, texts, path] = [join(folder, 'titles'), join(folder, 'texts'), join(folder, 'queries')];
    await writeTexts(
      titles,
      rows.map(({ title }) => title),
    );
    await writeTexts(
      texts,
      rows.map(({ text }) => text),
    );
    const questions = await questionsOf(HOTPOT)();
    await writeTexts(path, questions);
    const luceneIndex = join(folder, 'lucene');
    await lucene(version).ask({ do: 'build', analyser: 'standard', texts, titles, folder: luceneIndex });
    for (const parameters of PARAMETERS) {
      await lucene(version).ask({ do: 'load', analyser: 'standard', folder: luceneIndex, ...parameters });
      for (const [titleBoost, tieBreaker] of [
        [1, 0],
        [2.5, 0.3],
        [1, 1],
      ] as const) {
        await lucene(version).ask({ do: 'queries', texts: path, titleBoost, tieBreaker });
        const theirs = await luceneHits(folder, version);
        const ours = await fields.search({
          queries: questions.map((text) =>
            bestFields(text, ['title', 'text'], { weights: { title: titleBoost }, tieBreaker }),
          ),
          k: K,
          parameters: { ...parameters, k1Factor: false },
        });
        const { hits, differences } = compareHits(questions, ours, theirs);
        const which = `title ${titleBoost}, tie breaker ${tieBreaker}, k1 ${parameters.k1}`;
        assert.deepEqual(differences.slice(0, 3), [], `${which}: ${differences.length} queries differ`);
        t.diagnostic(`${which}: ${hits} hits of ${questions.length} queries have equal rows and score bits`);
      }
    }
  });
