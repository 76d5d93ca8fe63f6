import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import fc from 'fast-check';
import { analyser } from '../../../src/engine/lexical/analysis/analysers.ts';
import {
  BM25_PROFILES,
  type Bm25Parameters,
  inverseNorms,
  lengthCode,
  termScore,
  termWeight,
} from '../../../src/engine/lexical/bm25.ts';
import type { EngineSource, LexicalIndex } from '../../../src/engine/lexical/lexical-index.ts';
import { openNativeLexicalIndex } from '../../../src/engine/lexical/native-lexical.ts';
import { openLexicalWriter } from '../../../src/engine/lexical/open-lexical.ts';
import { type Kernel, loadKernel } from '../../../src/engine/native/kernel.ts';
import { ReferenceLexicalIndex } from '../../../src/engine/reference/lexical/reference-lexical-index.ts';
import { RowBitmap } from '../../../src/engine/row-bitmap.ts';
import { runs } from '../../helpers/runs.ts';
import { seededRandom } from '../../helpers/seeded-random.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { lexicalHits, type WrittenCorpus, writeLexical } from './lexical-files.ts';

const loaded = loadKernel();
const skip = loaded.ok ? false : `the native engine is not available: ${loaded.reason}`;
const kernel = (loaded.ok ? loaded.kernel : undefined) as Kernel;
const ENGINES = {
  native: (source: EngineSource) => openNativeLexicalIndex(source, kernel),
  reference: async (source: EngineSource): Promise<LexicalIndex> => new ReferenceLexicalIndex(source),
};

/** Words with a Zipf distribution: the frequency of word w is about 1 / (w + 1). */
function corpus(seed: number, rows: number, words = 200): string[] {
  const random = seededRandom(seed);
  const word = (): string => `w${Math.floor(words ** random()) - 1}`;
  const texts: string[] = [];
  for (let row = 0; row < rows; row++) {
    // Some passages are duplicates, some empty, some long.
    if (row % 11 === 3) texts.push(texts[row - 1]!);
    else if (row % 13 === 5) texts.push('');
    else texts.push(Array.from({ length: Math.floor(random() * (row % 17 === 2 ? 400 : 60)) }, word).join(' '));
  }
  return texts;
}

const QUERIES = ['w0', 'w1 w2 w3', 'w5 w5 w9', 'w0 w150 w151 w152', 'w7 unknown', 'unknown', '', 'W3, w4!'];

async function hits(index: LexicalIndex, queries: readonly string[], k: number, more = {}) {
  return lexicalHits(await index.search({ queries, k, ...more }));
}

interface CountedText {
  readonly length: number;
  readonly tfs: ReadonlyMap<string, number>;
}

function countTerms(text: string): CountedText {
  const terms = analyser('standard')(text);
  const tfs = new Map<string, number>();
  for (const term of terms) tfs.set(term, (tfs.get(term) ?? 0) + 1);
  return { length: terms.length, tfs };
}

/** The hits that the definition of BM25 gives for the texts. */
function expected(
  texts: readonly string[],
  query: string,
  k: number,
  {
    parameters = BM25_PROFILES.lucene,
    isLive = () => true,
  }: { parameters?: Bm25Parameters; isLive?: (row: number) => boolean } = {},
): { row: number; bits: number }[] {
  const documents = texts.map((text, row) => ({ row, ...countTerms(text) })).filter(({ row }) => isLive(row));
  const counts = {
    documents: documents.filter(({ length }) => length > 0).length,
    tokens: documents.reduce((sum, { length }) => sum + length, 0),
  };
  const inverse = inverseNorms(parameters, counts);
  const sums = new Map<number, number>();
  const known = new Set(documents.flatMap(({ tfs }) => [...tfs.keys()]));
  for (const [term, boost] of countTerms(query).tfs) {
    if (!known.has(term)) continue;
    const found = documents.filter(({ tfs }) => tfs.has(term));
    const weight = termWeight(parameters, boost, { documentFrequency: found.length, documents: counts.documents });
    for (const { row, length, tfs } of found) {
      const score = termScore(weight, tfs.get(term)!, inverse[lengthCode(length)]!);
      sums.set(row, (sums.get(row) ?? 0) + score);
    }
  }
  const ranked = [...sums].map(([row, sum]) => ({ row, score: Math.fround(sum) }));
  ranked.sort((a, b) => b.score - a.score || a.row - b.row);
  return ranked
    .slice(0, k)
    .map(({ row, score }) => ({ row, bits: new Uint32Array(Float32Array.of(score).buffer)[0]! }));
}

for (const [name, open] of Object.entries(ENGINES)) {
  test(`${name}: hits are those of the definition of BM25, with the same bits of scores`, { skip }, async (t) => {
    const texts = corpus(1, 700);
    const index = await open(await writeLexical(await tempFolder(t), texts, kernel));
    t.after(() => index.close());
    for (const k of [1, 3, 10, 1000]) {
      const found = await hits(index, QUERIES, k);
      for (const [q, query] of QUERIES.entries())
        assert.deepEqual(found[q], expected(texts, query, k), `${query}, ${k}`);
    }
  });

  test(`${name}: ranks and scores are those of an index without the deleted rows`, { skip }, async (t) => {
    const texts = corpus(2, 400);
    const deleted = texts.flatMap((_, row) => (row % 5 === 1 || row > 370 ? [row] : []));
    const isLive = (row: number): boolean => !deleted.includes(row);
    const index = await open(
      await writeLexical(await tempFolder(t), texts, kernel, { deleted, shardRows: [150, 250] }),
    );
    t.after(() => index.close());
    const found = await hits(index, QUERIES, 50);
    for (const [q, query] of QUERIES.entries())
      assert.deepEqual(found[q], expected(texts, query, 50, { isLive }), query);
  });

  test(`${name}: a filter restricts the hits and changes no score`, { skip }, async (t) => {
    const texts = corpus(3, 300);
    const index = await open(await writeLexical(await tempFolder(t), texts, kernel));
    t.after(() => index.close());
    const filter = new RowBitmap(300);
    for (let row = 0; row < 300; row += 3) filter.add(row);
    const [all, some] = [await hits(index, QUERIES, 300), await hits(index, QUERIES, 300, { filter })];
    assert.deepEqual(
      some,
      all.map((list) => list.filter(({ row }) => row % 3 === 0)),
    );
    await assert.rejects(hits(index, QUERIES, 3, { filter: new RowBitmap(299) }), RangeError);
  });

  test(`${name}: k1, b and the profile are chosen at search`, { skip }, async (t) => {
    const texts = corpus(4, 300);
    const index = await open(await writeLexical(await tempFolder(t), texts, kernel));
    t.after(() => index.close());
    const choices = [BM25_PROFILES.elasticsearch, { k1: 0, b: 0, k1Factor: false }, { k1: 2.5, b: 1, k1Factor: true }];
    for (const parameters of choices) {
      const found = await hits(index, QUERIES, 20, { parameters });
      for (const [q, query] of QUERIES.entries())
        assert.deepEqual(found[q], expected(texts, query, 20, { parameters }), query);
    }
    for (const wrong of [{ k1: -1 }, { k1: Number.NaN }, { b: 1.5 }, { b: -0.1 }, { k1: Number.POSITIVE_INFINITY }]) {
      await assert.rejects(hits(index, ['w1'], 3, { parameters: { ...BM25_PROFILES.lucene, ...wrong } }), RangeError);
    }
    await assert.rejects(hits(index, ['w1'], 0), RangeError);
  });

  test(`${name}: the scores of the terms add up to the score of the hit`, { skip }, async (t) => {
    const texts = corpus(5, 200);
    const index = await open(await writeLexical(await tempFolder(t), texts, kernel, { shardRows: [80, 120] }));
    t.after(() => index.close());
    const result = await index.search({ queries: ['w1 w2 w1 unknown'], k: 5 });
    const rows = [...result.rows].slice(0, result.counts[0]);
    const explained = await index.explain({ query: 'w1 w2 w1 unknown', rows });
    assert.equal(explained.length, rows.length);
    for (const [i, terms] of explained.entries()) {
      assert.deepEqual(
        terms.map(({ term, boost }) => [term, boost]),
        [
          ['w1', 2],
          ['w2', 1],
        ].filter(([word]) => countTerms(texts[rows[i]!]!).tfs.has(word as string)),
      );
      assert.equal(Math.fround(terms.reduce((sum, { score }) => sum + score, 0)), result.scores[i]);
    }
  });

  test(`${name}: an index without rows or without tokens has no hits`, { skip }, async (t) => {
    for (const texts of [[], ['', '...', '']]) {
      const index = await open(await writeLexical(await tempFolder(t), texts, kernel));
      assert.deepEqual(
        await hits(index, QUERIES, 3),
        QUERIES.map(() => []),
      );
      await index.close();
    }
  });

  test(`${name}: an aborted search fails with CANCELLED, and a search after close with NOT_READY`, {
    skip,
  }, async (t) => {
    const index = await open(await writeLexical(await tempFolder(t), corpus(6, 100), kernel));
    await assert.rejects(hits(index, ['w1'], 3, { signal: AbortSignal.abort() }), trawlError('CANCELLED'));
    await Promise.all([index.close(), index.close()]);
    await assert.rejects(hits(index, ['w1'], 3), trawlError('NOT_READY'));
  });

  test(`${name}: the error names a missing file and a file of another analyser`, { skip }, async (t) => {
    const folder = await tempFolder(t);
    const source = await writeLexical(folder, corpus(7, 20), kernel);
    await assert.rejects(
      async () => open({ ...source, analyser: 'english' }),
      trawlError('INDEX_FILE_FOREIGN', /shard-0\.bm25.*standard/),
    );
    const missing = { ...source, shards: [{ path: `${folder}/none.bm25`, firstRow: 0, rows: 20 }] };
    await assert.rejects(async () => open(missing), trawlError('INDEX_FILE_MISSING', /none\.bm25/));
  });

  test(`${name}: no query makes a search fail`, { skip }, async (t) => {
    const texts = [...corpus(8, 60), 'a\u0000b \ud83d\ude00 Ünïcode', 'x'.repeat(1000)];
    const index = await open(await writeLexical(await tempFolder(t), texts, kernel));
    t.after(() => index.close());
    const hostile = [
      Array.from({ length: 100_000 }, (_, i) => `w${i}`).join(' '),
      'w1 '.repeat(1000),
      '\u0000\u0001\u001b[2J',
      '\ud800 a \udc00',
      'y'.repeat(1_000_000),
      '\ud83d\ude00 Ünïcode',
    ];
    const found = await hits(index, hostile, 10);
    assert.equal(found.length, hostile.length);
    assert.deepEqual(
      found[5]!.map(({ row }) => row),
      [60],
    );
    for (const [q, query] of hostile.entries()) assert.deepEqual(found[q], expected(texts, query, 10), `query ${q}`);
  });
}

test('both engines have the same hits for random corpora, queries, shards and deletions', { skip }, async (t) => {
  const word = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'é', '北京', 'the', "o'neil's", '1,000');
  const text = fc.array(word, { maxLength: 30 }).map((words) => words.join(' '));
  await fc.assert(
    fc.asyncProperty(
      fc.array(text, { minLength: 1, maxLength: 60 }),
      fc.array(text, { minLength: 1, maxLength: 4 }),
      fc.constantFrom('english', 'standard', 'whitespace', 'cjk'),
      fc.integer({ min: 0, max: 60 }),
      fc.integer({ min: 1, max: 70 }),
      fc.integer({ min: 0, max: 7 }),
      async (texts, queries, name, cut, k, modulus) => {
        const first = Math.min(cut, texts.length);
        const written: WrittenCorpus = {
          analyser: name,
          shardRows: [first, texts.length - first],
          deleted: texts.flatMap((_, row) => (modulus > 0 && row % modulus === 1 ? [row] : [])),
        };
        const source = await writeLexical(await tempFolder(t), texts, kernel, written);
        const [native, reference] = [await ENGINES.native(source), await ENGINES.reference(source)];
        assert.deepEqual(native.counts, reference.counts);
        assert.deepEqual(await hits(native, queries, k), await hits(reference, queries, k));
        await Promise.all([native.close(), reference.close()]);
      },
    ),
    { numRuns: runs(20, 60), seed: 20 },
  );
});

test('a query has the same bits alone and in a batch, with one thread and with four, in one shard and in eight', {
  skip,
}, async (t) => {
  const texts = corpus(9, 2000);
  const one = await ENGINES.native(await writeLexical(await tempFolder(t), texts, kernel));
  const eight = await ENGINES.native(
    await writeLexical(await tempFolder(t), texts, kernel, { shardRows: Array.from({ length: 8 }, () => 250) }),
  );
  t.after(() => Promise.all([one.close(), eight.close()]));
  const threads = kernel.threads();
  const found: unknown[] = [];
  for (const count of [1, 4]) {
    kernel.setThreads(count);
    for (const index of [one, eight]) {
      found.push(await hits(index, QUERIES, 100));
      found.push(await Promise.all(QUERIES.map(async (query) => (await hits(index, [query], 100))[0])));
    }
  }
  kernel.setThreads(threads);
  for (const other of found) assert.deepEqual(other, found[0]);
});

test('the file has the same bytes for any number of threads and any size of the calls', { skip }, async (t) => {
  const texts = corpus(10, 3000);
  const threads = kernel.threads();
  const files: Buffer[] = [];
  for (const [count, step] of [
    [1, 3000],
    [4, 7],
  ] as const) {
    kernel.setThreads(count);
    const path = `${await tempFolder(t)}/texts.bm25`;
    const writer = openLexicalWriter(path, 'english', kernel);
    for (let at = 0; at < texts.length; at += step) await writer.append(texts.slice(at, at + step));
    await writer.finish();
    files.push(readFileSync(path));
  }
  kernel.setThreads(threads);
  assert.ok(files[0]!.equals(files[1]!));
});

test('the native analysers make the same terms as those in TypeScript', { skip }, () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 40 }), (text) => {
      for (const name of ['english', 'standard', 'whitespace', 'cjk'] as const) {
        assert.deepEqual(kernel.analyse(name, text), analyser(name)(text));
      }
    }),
    { numRuns: runs(150, 500), seed: 3 },
  );
});

test('a changed bit is found on opening or by verify, or changes no result', { skip }, async (t) => {
  const folder = await tempFolder(t);
  const source = await writeLexical(folder, corpus(11, 900), kernel);
  const { path } = source.shards[0]!;
  const sound = readFileSync(path);
  assert.equal(await kernel.verifyLexical(path), null);
  const opened = await ENGINES.native(source);
  const before = await hits(opened, QUERIES, 10);
  await opened.close();
  const random = seededRandom(12);
  let refused = 0;
  for (let i = 0; i < 200; i++) {
    const damaged = Buffer.from(sound);
    const at = Math.floor(random() * damaged.length);
    damaged[at]! ^= 1 << Math.floor(random() * 8);
    writeFileSync(path, damaged);
    const problem = await kernel.verifyLexical(path).catch((error: Error) => error.message);
    try {
      const index = await ENGINES.native(source);
      const found = await hits(index, QUERIES, 10).finally(() => index.close());
      // The padding between the sections is not part of the index.
      if (problem === null) assert.deepEqual(found, before, `byte ${at} was changed and verifying found nothing`);
    } catch (error) {
      if (problem === null) throw error;
      assert.ok(trawlError('INDEX_FILE_FOREIGN')(error as Error));
      refused++;
    }
  }
  assert.ok(refused > 0);
  for (const bytes of [0, 100, 255, 256, sound.length - 1]) {
    writeFileSync(path, sound.subarray(0, bytes));
    await assert.rejects(
      () => ENGINES.native(source),
      trawlError('INDEX_FILE_FOREIGN', /shard-0\.bm25/),
      `${bytes} bytes`,
    );
  }
});

test('a writer refuses a second simultaneous call, and finish fails if the folder does not exist', {
  skip,
}, async (t) => {
  const folder = await tempFolder(t);
  const writer = openLexicalWriter(`${folder}/a.bm25`, 'english', kernel);
  const first = writer.append(['some text']);
  // The first call's work ends meanwhile, but its promise is settled only later, on this thread.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
  await assert.rejects(writer.append(['more']), TypeError);
  await first;
  await writer.finish();
  const lost = openLexicalWriter(`${folder}/none/a.bm25`, 'english', kernel);
  await lost.append(['text']);
  await assert.rejects(lost.finish(), trawlError('OUTPUT_NOT_WRITABLE', /none/));
  lost.abandon();
});
