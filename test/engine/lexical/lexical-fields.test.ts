import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { BM25_PROFILES, type Bm25Parameters } from '../../../src/engine/lexical/bm25.ts';
import type { EngineSource, LexicalFields } from '../../../src/engine/lexical/lexical-index.ts';
import { bestFields, type LexicalQuery } from '../../../src/engine/lexical/lexical-query.ts';
import type { LexicalField } from '../../../src/engine/lexical/lexical-settings.ts';
import { openNativeLexicalFields } from '../../../src/engine/lexical/native-lexical.ts';
import { type Kernel, loadKernel } from '../../../src/engine/native/kernel.ts';
import { referenceLexicalFields } from '../../../src/engine/reference/lexical/composed-fields.ts';
import { RowBitmap } from '../../../src/engine/row-bitmap.ts';
import { seededRandom } from '../../helpers/seeded-random.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { lexicalHits, type WrittenCorpus, writeLexical } from './lexical-files.ts';
import { pick, randomTree, randomWords } from './random-trees.ts';

const loaded = loadKernel();
const skip = loaded.ok ? false : `the native engine is not available: ${loaded.reason}`;
const kernel = (loaded.ok ? loaded.kernel : undefined) as Kernel;
type Sources = ReadonlyMap<LexicalField, EngineSource>;
const ENGINES = {
  native: (sources: Sources): Promise<LexicalFields> => openNativeLexicalFields(sources, kernel),
  reference: (sources: Sources): Promise<LexicalFields> => referenceLexicalFields(sources),
};

interface Passage {
  readonly title: string;
  readonly text: string;
}

async function written(folder: string, passages: readonly Passage[], more: WrittenCorpus = {}): Promise<Sources> {
  const sources = new Map<LexicalField, EngineSource>();
  for (const field of ['title', 'text'] as const) {
    const of = join(folder, field);
    mkdirSync(of);
    const texts = passages.map((passage) => passage[field]);
    sources.set(field, await writeLexical(of, texts, kernel, more));
  }
  return sources;
}

async function hits(fields: LexicalFields, queries: readonly LexicalQuery[], k: number, more = {}) {
  return lexicalHits(await fields.search({ queries, k, ...more }));
}

const PASSAGES: readonly Passage[] = [
  { title: 'river Danube', text: 'The Danube flows through Vienna and through Budapest' },
  { title: 'Vienna', text: 'capital of Austria' },
  { title: 'Budapest', text: 'Vienna is upstream; a river is there' },
  { title: '', text: 'river river river' },
  { title: 'Danube', text: '' },
];

const match = (field: LexicalField, text: string, more: object = {}): LexicalQuery => ({
  type: 'match',
  field,
  text,
  ...more,
});
const rowsOf = (list: readonly { row: number }[] | undefined): number[] => list!.map(({ row }) => row);

for (const [name, open] of Object.entries(ENGINES)) {
  test(`${name}: a match is Elasticsearch's: any term, all terms, or a minimum of them`, { skip }, async (t) => {
    const fields = await open(await written(await tempFolder(t), PASSAGES));
    t.after(() => fields.close());
    const sorted = async (query: LexicalQuery) => rowsOf((await hits(fields, [query], 10))[0]).sort();
    assert.deepEqual(await sorted(match('text', 'VIENNA river')), [0, 2, 3]);
    assert.deepEqual(await sorted(match('text', 'VIENNA river', { operator: 'and' })), [2]);
    assert.deepEqual(await sorted(match('text', 'vienna river there', { minimumShouldMatch: 2 })), [2]);
    assert.deepEqual(await sorted(match('text', 'vienna river there', { minimumShouldMatch: -1 })), [2]);
    assert.deepEqual(await sorted(match('text', 'vienna river there', { minimumShouldMatch: -9 })), [0, 2, 3]);
    assert.deepEqual(await sorted(match('text', 'vienna river', { minimumShouldMatch: 3 })), [], 'more than terms');
    assert.deepEqual(await sorted(match('text', 'vienna', { minimumShouldMatch: 3 })), [0, 2], 'one term');
    assert.deepEqual(await sorted(match('text', 'vienna vienna x', { minimumShouldMatch: 2 })), [0, 2], 'repeated');
    const many = match('text', 'river '.repeat(150_000), { minimumShouldMatch: 150_000 });
    assert.deepEqual(await sorted(many), [2, 3], 'more clauses than a call may have arguments');
    assert.deepEqual(await sorted(match('text', '...')), [], 'no terms');
    assert.deepEqual(await sorted({ type: 'term', field: 'title', term: 'Danube' }), [], 'a term is not analysed');
    assert.deepEqual(await sorted({ type: 'term', field: 'title', term: 'danube' }), [0, 4]);
    const inTitle: LexicalQuery = { type: 'term', field: 'title', term: 'danube' };
    assert.deepEqual(await sorted({ type: 'bool', must: [{ type: 'match-all' }], mustNot: [inTitle] }), [1, 2, 3]);
    assert.deepEqual(await sorted({ type: 'match-none' }), []);
    assert.deepEqual(await sorted({ type: 'dis-max', queries: [] }), []);
    assert.deepEqual(await sorted({ type: 'bool' }), []);
  });

  test(`${name}: rules choose the minimum by the number of terms, and a text without terms matches all rows if it may`, {
    skip,
  }, async (t) => {
    const fields = await open(await written(await tempFolder(t), PASSAGES));
    t.after(() => fields.close());
    const sorted = async (text: string, rules: readonly (readonly [above: number, count: string])[]) => {
      const minimumShouldMatch = rules.map(([above, count]) => ({
        above,
        count: Number.parseInt(count, 10),
        isPercent: count.endsWith('%'),
      }));
      return rowsOf((await hits(fields, [match('text', text, { minimumShouldMatch })], 10))[0]).sort();
    };
    assert.deepEqual(await sorted('vienna river there', [[-1, '67%']]), [2], '2.01 of 3 terms');
    assert.deepEqual(await sorted('vienna river there', [[-1, '66%']]), [0, 2, 3], '1.98 of 3 terms');
    assert.deepEqual(await sorted('vienna river there', [[-1, '-40%']]), [2], '1.2 of 3 terms may be absent');
    assert.deepEqual(await sorted('vienna river there', [[-1, '-10%']]), [2], '0.3 of 3 terms may be absent');
    assert.deepEqual(await sorted('vienna river x', [[3, '1']]), [], 'all of up to 3 terms');
    assert.deepEqual(await sorted('vienna river x', [[2, '1']]), [0, 2, 3]);
    assert.deepEqual(
      await sorted('vienna river x', [
        [1, '1'],
        [2, '-1'],
        [3, '3'],
      ]),
      [2],
    );
    assert.deepEqual(
      rowsOf((await hits(fields, [match('text', '...', { withoutTerms: 'all' })], 10))[0]),
      [0, 1, 2, 3, 4],
    );
  });

  test(`${name}: a set of rows scores its boost, and counts and a least score hold for the rows that match`, {
    skip,
  }, async (t) => {
    const fields = await open(await written(await tempFolder(t), PASSAGES));
    t.after(() => fields.close());
    const set = new RowBitmap(5);
    for (const row of [1, 2, 4]) set.add(row);
    const rows: LexicalQuery = { type: 'rows', rows: set, boost: 2 };
    const all = await fields.search({ queries: [rows, { type: 'match-all' }], k: 2, count: 3 });
    assert.deepEqual([...all.rows], [1, 2, 0, 1]);
    assert.deepEqual([...all.scores], [2, 2, 1, 1]);
    assert.deepEqual([...all.totals!], [3, 4], 'the second has five rows, which are more than three');
    assert.equal((await fields.search({ queries: [rows], k: 2 })).totals, undefined);
    const inTitle: LexicalQuery = {
      type: 'bool',
      should: [{ type: 'match-all' }, rows],
      mustNot: [match('title', 'Vienna')],
    };
    const best = await fields.search({ queries: [inTitle], k: 5, count: 9, minScore: 1.5 });
    assert.deepEqual([[...best.counts], [...best.rows], [...best.totals!]], [[2], [2, 4, -1, -1, -1], [2]]);
    const scores = Float32Array.of(0.5, 0, 3);
    const scored: LexicalQuery = { type: 'bool', should: [{ type: 'rows', rows: set, scores, boost: 2 }, rows] };
    const summed = await fields.search({ queries: [scored, { type: 'constant-score', query: scored }], k: 5 });
    assert.deepEqual([...summed.rows], [4, 1, 2, -1, -1, 1, 2, 4, -1, -1]);
    assert.deepEqual([...summed.scores].slice(0, 3), [8, 3, 2]);
    const wrong: readonly (readonly [object, RegExp])[] = [
      [{ queries: [{ type: 'rows', rows: set, scores: Float32Array.of(1) }] }, /set of 3 rows has 1 scores/],
      [{ queries: [{ type: 'rows', rows: set, scores: Float32Array.of(1, -1, 1) }] }, /at least 0, but is -1/],
      [{ queries: [{ type: 'rows', rows: new RowBitmap(6) }] }, /covers 6 rows.*has 5/],
      [{ count: -1 }, /count/],
      [{ count: 0.5 }, /count/],
      [{ minScore: Number.NaN }, /minScore/],
    ];
    for (const [request, message] of wrong)
      await assert.rejects(fields.search({ queries: [rows], k: 1, ...request }), message, JSON.stringify(request));
  });

  test(`${name}: best fields scores a row by its best field, and weights and the tie breaker change that`, {
    skip,
  }, async (t) => {
    const fields = await open(await written(await tempFolder(t), PASSAGES));
    t.after(() => fields.close());
    const names = ['title', 'text'] as const;
    const scores = async (query: LexicalQuery): Promise<Map<number, number>> => {
      const { rows, scores, counts } = await fields.search({ queries: [query], k: 10 });
      return new Map(Array.from({ length: counts[0]! }, (_, i) => [rows[i]!, scores[i]!]));
    };
    const [title, text] = [await scores(match('title', 'river danube')), await scores(match('text', 'river danube'))];
    const expected = (row: number, tieBreaker: number): number => {
      const [a = 0, b = 0] = [title.get(row), text.get(row)];
      return Math.fround(Math.max(a, b) + tieBreaker * Math.min(a, b));
    };
    for (const tieBreaker of [0, 0.5]) {
      const best = await scores(bestFields('river danube', names, { tieBreaker }));
      assert.deepEqual([...best.keys()].sort(), [0, 2, 3, 4]);
      for (const [row, score] of best) assert.equal(score, expected(row, tieBreaker), `row ${row}, ${tieBreaker}`);
    }
    const weighted = await scores(bestFields('river danube', names, { weights: { title: 2 } }));
    assert.equal(weighted.get(4), Math.fround(2 * title.get(4)!));
    assert.deepEqual(await scores(bestFields('river danube', names, { weights: { title: 0 } })), text);
    const boosted = await scores(match('text', 'danube', { boost: 2 }));
    const doubled = [...(await scores(match('text', 'danube')))].map(([row, score]) => [row, 2 * score] as const);
    assert.deepEqual([...boosted], doubled, 'one term');
    const { terms } = await fields.search({ queries: [bestFields('river river danube', names)], k: 1 });
    assert.deepEqual([...terms], [2], 'a term of both fields counts once');
  });

  test(`${name}: a query that is no tree of the index is refused, and the next search works`, { skip }, async (t) => {
    const fields = await open(await written(await tempFolder(t), PASSAGES));
    t.after(() => fields.close());
    const deep = (levels: number): LexicalQuery => {
      let query: LexicalQuery = { type: 'match-all' };
      for (let i = 1; i < levels; i++) query = { type: 'constant-score', query };
      return query;
    };
    const circular = { type: 'dis-max', queries: [] as LexicalQuery[] } as const;
    circular.queries.push(circular, circular);
    const wrong: readonly (readonly [unknown, RegExp])[] = [
      [match('contents', 'a'), /contents.*title, text/],
      [match('text', 'a', { boost: -1 }), /boost.*-1/],
      [match('text', 'a', { boost: 1e39 }), /boost/],
      [match('text', 'a', { boost: Number.NaN }), /boost.*NaN/],
      [match('text', 'a', { operator: 'xor' }), /operator/],
      [match('text', 'a', { minimumShouldMatch: 1.5 }), /minimumShouldMatch/],
      [match('text', 'a', { minimumShouldMatch: [{ above: 0.5, count: 1, isPercent: false }] }), /above/],
      [match('text', 'a', { withoutTerms: 'some' }), /withoutTerms/],
      [match('text', 7 as unknown as string), /text must be a string/],
      [{ type: 'term', field: 'text' }, /term must be a string/],
      [{ type: 'bool', minimumShouldMatch: -1 }, /minimumShouldMatch/],
      [{ type: 'bool', must: {} }, /must must be an array/],
      [{ type: 'dis-max', queries: [], tieBreaker: 2 }, /tieBreaker/],
      [{ type: 'phrase' }, /known type.*phrase/],
      [deep(33), /32 levels/],
      [circular, /32 levels/],
      [{ type: 'dis-max', queries: Array.from({ length: 2 ** 18 }, () => ({ type: 'match-all' })) }, /262144 nodes/],
    ];
    for (const [query, message] of wrong) {
      const failure = await hits(fields, [query as LexicalQuery], 3).catch((error: Error) => error);
      assert.ok(failure instanceof RangeError || failure instanceof TypeError, String(failure));
      assert.match(failure.message, message);
    }
    const long = Array.from({ length: 2 ** 18 }, (_, i) => `w${i}`).join(' ');
    assert.equal((await hits(fields, [match('text', 'river '.repeat(2 ** 18))], 3))[0]!.length, 2);
    await assert.rejects(hits(fields, [match('text', long)], 3), trawlError('INVALID_REQUEST', /262144 nodes/));
    const huge: LexicalQuery = { type: 'bool', should: [match('text', 'river', { boost: 3e38 })], boost: 3e38 };
    await assert.rejects(hits(fields, [huge], 3), trawlError('INVALID_REQUEST', /boosts .* too large/));
    assert.equal((await hits(fields, [deep(32)], 9))[0]!.length, 5);
    await assert.rejects(hits(fields, [deep(1)], 0), RangeError);
    await assert.rejects(hits(fields, [deep(1)], 1, { filter: new RowBitmap(6) }), RangeError);
    const aborted = { signal: AbortSignal.abort() };
    await assert.rejects(hits(fields, [deep(1)], 1, aborted), trawlError('CANCELLED'));
    const controller = new AbortController();
    const running = hits(fields, [match('text', 'river danube')], 1, { signal: controller.signal });
    controller.abort();
    await assert.rejects(running, trawlError('CANCELLED'));
    await Promise.all([fields.close(), fields.close()]);
    await assert.rejects(hits(fields, [deep(1)], 1), trawlError('NOT_READY'));
  });
}

test('both engines have the same hits for random trees, corpora, deletions, filters and shards', {
  skip,
}, async (t) => {
  const random = seededRandom(4);
  const PROFILES: readonly Bm25Parameters[] = [...Object.values(BM25_PROFILES), { k1: 0, b: 1, k1Factor: false }];
  let found = 0;
  for (let corpus = 0; corpus < 8; corpus++) {
    const rows = Math.floor(random() * 120) + 1;
    const passages = Array.from({ length: rows }, () => ({
      title: randomWords(random, 4),
      text: randomWords(random, 90),
    }));
    const shards = pick(random, [1, 2, 3, 8]);
    const cuts = Array.from({ length: shards + 1 }, (_, i) => Math.floor((rows * i) / shards));
    const deletedEvery = pick(random, [0, 2, 5]);
    const sources = await written(await tempFolder(t), passages, {
      shardRows: cuts.slice(1).map((end, i) => end - cuts[i]!),
      deleted: passages.flatMap((_, row) => (deletedEvery > 0 && row % deletedEvery === 1 ? [row] : [])),
    });
    const filter = random() < 0.5 ? undefined : new RowBitmap(rows);
    for (let row = 0; row < rows; row += Math.ceil(random() * 3)) filter?.add(row);
    const sets = [1, 2, 7, rows + 1].map((every) => {
      const set = new RowBitmap(rows);
      for (let row = every - 1; row < rows; row += every) set.add(row);
      return set;
    });
    const queries = Array.from({ length: 300 }, () => randomTree(random, 4, sets));
    const request = {
      queries,
      k: pick(random, [1, 5, 40, 200]),
      parameters: pick(random, PROFILES),
      filter,
      count: pick(random, [undefined, 0, 1, 30, 1000]),
      minScore: pick(random, [undefined, 0, 0.3, 2]),
    };
    const [native, reference] = [await ENGINES.native(sources), await ENGINES.reference(sources)];
    const [ours, expected] = [await native.search(request), await reference.search(request)];
    const lists = lexicalHits(ours);
    for (const [q, list] of lexicalHits(expected).entries()) {
      assert.deepEqual(lists[q], list, JSON.stringify({ corpus, query: queries[q] }));
      found += list.length;
    }
    assert.deepEqual(ours.terms, expected.terms);
    assert.deepEqual(ours.totals, expected.totals);
    await Promise.all([native.close(), reference.close()]);
  }
  assert.ok(found > 5000, `${found} hits`);
});

test('a tree has the same bits alone and in a batch, with one thread and with four, in one shard and in eight', {
  skip,
}, async (t) => {
  const random = seededRandom(5);
  const text = (length: number): string =>
    Array.from({ length: Math.floor(length * random()) }, () => `w${Math.floor(200 ** random()) - 1}`).join(' ');
  const passages = Array.from({ length: 1600 }, () => ({ title: text(6), text: text(60) }));
  const queries = ['w0', 'w1 w2 w3', 'w5 w5 w9', 'w0 w150 w151', 'none'].flatMap((query): LexicalQuery[] => [
    bestFields(query, ['title', 'text']),
    bestFields(query, ['title', 'text'], { weights: { title: 2.5 }, tieBreaker: 0.3 }),
    { type: 'bool', must: [match('text', query)], should: [match('title', query)], mustNot: [match('text', 'w4')] },
  ]);
  const shardRows = Array.from({ length: 8 }, () => 200);
  const [one, eight] = [
    await ENGINES.native(await written(await tempFolder(t), passages)),
    await ENGINES.native(await written(await tempFolder(t), passages, { shardRows })),
  ];
  t.after(() => Promise.all([one.close(), eight.close()]));
  const threads = kernel.threads();
  const found: unknown[] = [];
  for (const count of [1, 4]) {
    kernel.setThreads(count);
    for (const fields of [one, eight]) {
      found.push(await hits(fields, queries, 30));
      found.push(await Promise.all(queries.map(async (query) => (await hits(fields, [query], 30))[0])));
    }
  }
  kernel.setThreads(threads);
  for (const other of found) assert.deepEqual(other, found[0]);
});
