import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { bm25Settings } from '../../../indexer/lexical/make-lexical.ts';
import { optimizeIndex } from '../../../indexer/optimize/optimize-index.ts';
import { removePassages } from '../../../indexer/update/remove-passages.ts';
import { verifyIndex } from '../../../indexer/verify/verify-index.ts';
import { packageRoot } from '../../../src/base/package-root.ts';
import { analyser } from '../../../src/engine/lexical/analysis/analysers.ts';
import type { LexicalQuery } from '../../../src/engine/lexical/lexical-query.ts';
import { SNOWBALL_ANALYSERS, type SnowballAnalyser, STEMMER } from '../../../src/engine/lexical/lexical-settings.ts';
import { openLexicalFields, openLexicalIndex } from '../../../src/engine/lexical/open-lexical.ts';
import { engineTexts, stemmedIndex } from '../../../src/engine/lexical/stemmed.ts';
import { loadKernel } from '../../../src/engine/native/kernel.ts';
import { ReferenceLexicalIndex } from '../../../src/engine/reference/lexical/reference-lexical-index.ts';
import { openIndexDirectory } from '../../../src/search/opening/index-directory.ts';
import { openRetriever } from '../../../src/search/opening/open-retriever.ts';
import { runTrawl } from '../../cli/run-trawl.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { build, writeCorpus } from '../../indexer/build.ts';
import { indexProblems } from '../../indexer/index-problems.ts';
import { update } from '../../indexer/update.ts';
import { lexicalHits } from './lexical-files.ts';

const loaded = loadKernel();
const kernel = loaded.ok ? loaded.kernel : undefined;
const skip = loaded.ok ? false : `the native engine is not available: ${loaded.reason}`;

const GERMAN = [
  'Die Häuser der Stadt wurden 1893 gebaut.',
  'Ein Haus am Fluss',
  'Straßen, STRASSE und Strasse',
  '',
  'der die das und nicht',
  'Bücher über Häuser, Häuser, Häuser',
].map((contents, i) => ({ id: `p${i}`, contents }));

/** Terms that Lucene 9.12.3 makes with the same tokenizer, filters and Snowball stemmers. */
const CASES: readonly (readonly [SnowballAnalyser, string, readonly string[]])[] = [
  ['german', 'Die Häuser, nicht das Dorf', ['haus', 'dorf']],
  ['french', "L'été, qu’il s'agisse d'une maison", ['été', 'agiss', 'maison']],
  ['italian', "Dell'arte un'altra volta", ['arte', 'altra', 'volt']],
  ['spanish', 'las canciones españolas', ['las', 'cancion', 'español']],
  ['russian', 'Красивые дома в городах', ['красив', 'дом', 'город']],
  ['turkish', 'IŞIK İstanbul', ['ışık', 'istanbul']],
  ['swedish', 'Barnen sprang 12.5', ['barn', 'sprang', '12.5']],
];

for (const [name, text, terms] of CASES) {
  test(`${name} makes stems from ${JSON.stringify(text)}`, () => {
    assert.deepEqual(analyser(name)(text), terms);
  });
}

async function germanIndex(t: Parameters<typeof tempFolder>[0], rows: readonly object[] = GERMAN) {
  const folder = await tempFolder(t);
  const out = join(folder, 'ix');
  const bm25 = bm25Settings({ analyser: 'german', k1: 0.9, b: 0.4, fields: ['contents'] });
  await build({
    corpus: writeCorpus(folder, { 'c.jsonl': rows }),
    out,
    kernel,
    encoder: undefined,
    bm25,
    shardRows: 4,
  });
  return { folder, out, bm25 };
}

/** The ids that a query finds, best first. */
async function found(out: string, query: string): Promise<unknown[]> {
  const retriever = await openRetriever(out, { modes: ['bm25'] });
  try {
    const { outcomes } = await retriever.retrieve({ queries: [query], k: 10, mode: 'bm25' });
    const [outcome] = outcomes;
    assert.ok(outcome?.ok);
    return outcome.hits.map(({ document }) => (JSON.parse(document) as { id: unknown }).id);
  } finally {
    await retriever.close();
  }
}

test('a query finds other forms of its words, also after an update and a removal, and verify finds no problem', {
  skip,
}, async (t) => {
  const { folder, out } = await germanIndex(t);
  assert.deepEqual(await found(out, 'HÄUSERN'), ['p5', 'p1', 'p0']);
  assert.deepEqual(await found(out, 'die Straße'), ['p2']);
  assert.deepEqual(await found(out, 'der und nicht'), []);
  assert.deepEqual(await indexProblems(out), []);
  const rows = [...GERMAN, { id: 'p6', contents: 'Das Hausboot und das Haus' }];
  await update({ corpus: writeCorpus(folder, { 'd.jsonl': rows }), out, kernel, encoder: undefined });
  await removePassages(out, ['p5']);
  assert.deepEqual((await found(out, 'Hauses')).sort(), ['p0', 'p1', 'p6']);
  assert.deepEqual(await indexProblems(out), []);
  const { problems, analysed } = await verifyIndex(out, { sample: 10 });
  assert.deepEqual([problems, (analysed ?? 0) > 0], [[], true]);
  const { bm25 } = openIndexDirectory(out).manifest;
  assert.deepEqual([bm25?.made.analyser, bm25?.made.stemmer], ['german', STEMMER]);
});

test('the native engine and the reference give the same hits and explanations', { skip }, async (t) => {
  const { out } = await germanIndex(t);
  const source = openIndexDirectory(out).lexical.get('contents')!;
  const native = await openLexicalIndex(source);
  const reference = stemmedIndex('german', new ReferenceLexicalIndex({ ...source, analyser: 'whitespace' }));
  t.after(() => Promise.all([native.close(), reference.close()]));
  assert.deepEqual([native.rows, native.counts], [reference.rows, reference.counts]);
  const request = { queries: ['Häuser Stadt', 'Straßen', '', 'der'], k: 5 };
  const hits = lexicalHits(await native.search(request));
  assert.deepEqual(hits, lexicalHits(await reference.search(request)));
  assert.deepEqual(
    hits.map((list) => list.length),
    [3, 1, 0, 0],
  );
  const explained = await native.explain({ query: 'Häuser Bücher', rows: [5] });
  assert.deepEqual(explained, await reference.explain({ query: 'Häuser Bücher', rows: [5] }));
  assert.deepEqual(
    explained[0]!.map(({ term }) => term),
    ['haus', 'buch'],
  );
});

test('texts anywhere in a query tree are stemmed, in every field', { skip }, async (t) => {
  const rows = [
    { id: 'a', contents: '"Bücher"\nHäuser am Fluss' },
    { id: 'b', contents: '"Haus"\nEin Buch über Straßen' },
    { id: 'c', contents: '"Berg"\nDie Wälder' },
  ];
  const folder = await tempFolder(t);
  const out = join(folder, 'ix');
  const bm25 = bm25Settings({ analyser: 'german', k1: 0.9, b: 0.4, fields: ['title', 'text'] });
  await build({ corpus: writeCorpus(folder, { 'c.jsonl': rows }), out, kernel, encoder: undefined, bm25 });
  assert.deepEqual((await found(out, 'Häusern')).sort(), ['a', 'b']);
  const fields = await openLexicalFields(openIndexDirectory(out).lexical);
  t.after(() => fields.close());
  const match = (field: 'title' | 'text', text: string) => ({ type: 'match', field, text }) as const;
  const trees: readonly LexicalQuery[] = [
    { type: 'bool', must: [match('text', 'HÄUSERN')], should: [match('title', 'Buches')] },
    {
      type: 'bool',
      must: [{ type: 'match-all' }],
      mustNot: [match('title', 'Hauses')],
      filter: [match('text', 'Walde')],
    },
    { type: 'dis-max', queries: [match('title', 'Buch'), { type: 'constant-score', query: match('text', 'Büchern') }] },
    { type: 'term', field: 'title', term: 'buch' },
    { type: 'term', field: 'title', term: 'Bücher' },
  ];
  const hits = lexicalHits(await fields.search({ queries: trees, k: 5 }));
  assert.deepEqual(
    hits.map((list) => list.map(({ row }) => row).sort()),
    [[0], [2], [0, 1], [0], []],
  );
  let deep: LexicalQuery = match('text', 'x');
  for (let i = 0; i < 50_000; i++) deep = { type: 'constant-score', query: deep };
  await assert.rejects(fields.search({ queries: [deep], k: 1 }), /nested at most/);
});

test('an index made with other stemmers is refused by search, update and verify, and optimize makes it again', {
  skip,
}, async (t) => {
  const { folder, out, bm25 } = await germanIndex(t);
  for (const path of ['manifest.json', 'shard-00000/shard.json', 'shard-00001/shard.json']) {
    const manifest = JSON.parse(readFileSync(join(out, path), 'utf8')) as { bm25: { made: { stemmer: string } } };
    manifest.bm25.made.stemmer = '@orama/stemmers 2.0.0';
    writeFileSync(join(out, path), JSON.stringify({ ...manifest, checksum: undefined }));
  }
  const message =
    /german terms .* @orama\/stemmers 2\.0\.0, but .* 3\.\d+\.\d+.*trawl optimize INDEX --bm25 --analyser german/;
  await assert.rejects(found(out, 'Haus'), trawlError('INDEX_VERSION_UNSUPPORTED', message));
  const corpus = writeCorpus(folder, { 'd.jsonl': [...GERMAN, { id: 'new', contents: 'Haus' }] });
  await assert.rejects(
    update({ corpus, out, kernel, encoder: undefined }),
    trawlError('INDEX_VERSION_UNSUPPORTED', message),
  );
  const { problems } = await verifyIndex(out, { sample: 10 });
  assert.match(problems.map((problem) => problem.message).join('\n'), message);
  await optimizeIndex(out, kernel!, { float16: false, onStep: () => undefined, bm25 });
  assert.deepEqual(await found(out, 'Haus'), ['p5', 'p1', 'p0']);
});

/** The terms of a text, and how often the event loop ran meanwhile. */
async function slicesOf(words: string): Promise<{ text: string; slices: number }> {
  let slices = 0;
  let running = true;
  const count = (): void => {
    if (!running) return;
    slices++;
    setImmediate(count);
  };
  setImmediate(count);
  const [text] = await engineTexts('german', [words]);
  running = false;
  return { text: text!, slices };
}

test('a long query leaves the event loop free between slices, and stops when it is aborted', async () => {
  const words = Array.from({ length: 20_000 }, (_, i) => `wörter${i}`).join(' ');
  const { text, slices } = await slicesOf(words);
  assert.equal(text.split(' ').length, 20_000);
  // 230,000 characters are more than 50 slices.
  assert.ok(slices >= 50, `${slices} slices`);
  // No token begins at an underscore, but 255 characters are read from each one.
  const underscores = await slicesOf('_'.repeat(10_000));
  assert.equal(underscores.text, '');
  assert.ok(underscores.slices >= 500, `${underscores.slices} slices`);
  const controller = new AbortController();
  const stopped = engineTexts('german', [words], controller.signal);
  controller.abort();
  await assert.rejects(stopped, trawlError('CANCELLED'));
});

test('an index under search closes after the search has ended', { skip }, async (t) => {
  const { out } = await germanIndex(t);
  const index = await openLexicalIndex(openIndexDirectory(out).lexical.get('contents')!);
  const search = index.search({ queries: ['Haus '.repeat(20_000)], k: 1 });
  await index.close();
  assert.equal((await search).counts[0], 1);
  await assert.rejects(index.search({ queries: ['Haus'], k: 1 }), /The index is closed/);
});

test('what the engine reads back are the terms of the reference, for any text in any language', { skip }, () => {
  const texts = [
    '',
    '\ud800',
    'a\udc00b',
    '\0',
    'ß'.repeat(400),
    'İIıi',
    "l'' ' d'",
    '\u001c\u2028x\u3000y',
    '\u0301'.repeat(300),
  ];
  for (const name of SNOWBALL_ANALYSERS) {
    for (const text of texts) {
      const terms = analyser(name)(text);
      assert.deepEqual(kernel!.analyse('whitespace', terms.join(' ')), terms, `${name}: ${JSON.stringify(text)}`);
    }
  }
});

test('the recorded stemmers are those that are installed', () => {
  const versions = ['@orama/stemmers', '@orama/stopwords'].map((name) => {
    const path = join(packageRoot, 'node_modules', name, 'package.json');
    return `${name} ${(JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version}`;
  });
  assert.equal(STEMMER, versions.join(', '));
});

test('trawl index --analyser takes a language and trawl search finds its stems', { skip }, async (t) => {
  const folder = await tempFolder(t);
  const [corpus] = writeCorpus(folder, { 'c.jsonl': GERMAN });
  const out = join(folder, 'ix');
  const made = await runTrawl(['index', corpus!, '--bm25', '--analyser', 'german', '--out', out]);
  assert.equal(made.code, 0, made.stderr);
  const { stdout } = await runTrawl(['search', out, 'Büchern', '--json']);
  const [best] = (JSON.parse(stdout) as { hits: object[] }).hits;
  assert.match(JSON.stringify(best), /"p5"/);
  const refused = await runTrawl(['index', corpus!, '--bm25', '--analyser', 'klingon', '--out', `${out}2`]);
  assert.deepEqual([refused.code, /--analyser.*german/s.test(refused.stderr)], [2, true]);
});
