import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { bm25Settings } from '../../indexer/lexical/make-lexical.ts';
import { removePassages } from '../../indexer/update/remove-passages.ts';
import { FilterCache } from '../../src/columns/filter-cache.ts';
import { NativeRowFilters } from '../../src/columns/native-row-filters.ts';
import { ReferenceRowFilters } from '../../src/columns/reference-row-filters.ts';
import type { Filter } from '../../src/filter/filter.ts';
import { parseFilterExpression } from '../../src/filter/filter-expression.ts';
import { DEFAULT_BM25 } from '../../src/lexical-index/bm25.ts';
import { openLexicalFields } from '../../src/lexical-index/open-lexical-index.ts';
import { ReferenceLexicalFields } from '../../src/lexical-index/reference/composed-fields.ts';
import { loadKernel } from '../../src/native/kernel.ts';
import { SqlitePassageStore } from '../../src/passages/sqlite-passage-store.ts';
import { AnswerCache } from '../../src/retrieval/answer-cache.ts';
import { assembleRetriever } from '../../src/retrieval/assemble-retriever.ts';
import { hybridSettings } from '../../src/retrieval/hybrid-settings.ts';
import { openIndexDirectory } from '../../src/retrieval/index-directory.ts';
import { narrowedRetriever } from '../../src/retrieval/narrowed-retriever.ts';
import type { Hit, RetrieveCall, Retriever, SearchMode, TreeCall } from '../../src/retrieval/retriever.ts';
import { openEngine } from '../../src/vector-index/open-engine.ts';
import { ReferenceIndex } from '../../src/vector-index/reference-index.ts';
import { arbitraryFilter, arbitraryRow, COLUMNS } from '../filter/arbitrary-filters.ts';
import { passes } from '../filter/naive-filter.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { seededRandom } from '../helpers/seeded-random.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { build, writeCorpus } from '../indexer/build.ts';
import { FakeTextEncoder } from '../indexer/fake-text-encoder.ts';

const loaded = loadKernel();
const kernel = loaded.ok ? loaded.kernel : undefined;
const BM25 = bm25Settings({ analyser: 'english', k1: 0.9, b: 0.4, fields: ['contents'] });
/** Rows enough for several blocks of codes and lists of several blocks. */
const ROWS = 3_000;
const QUERIES = ['w0 w1', 'w3', 'w0', 'w9 w40 w2', 'none'];

/** An index in shards with deleted rows, and its rows. */
async function filteredIndex(t: TestContext): Promise<{ out: string; rows: readonly object[] }> {
  const folder = await tempFolder(t);
  const columns = fc.sample(arbitraryRow(true), { numRuns: ROWS, seed: 7 });
  const rows = columns.map((row, i) => {
    const random = seededRandom(i);
    const words = Array.from({ length: 1 + Math.floor(12 * random()) }, () => `w${Math.floor(50 ** random()) - 1}`);
    return { id: `p${i}`, contents: words.join(' '), ...row };
  });
  const out = join(folder, 'ix');
  const corpus = writeCorpus(folder, { 'c.jsonl': rows });
  await build({ corpus, out, kernel, bm25: BM25, columns: COLUMNS, shardRows: 1_100 });
  await removePassages(
    out,
    Array.from({ length: 400 }, (_, i) => `p${7 * i}`),
  );
  return { out, rows };
}

/** The index with the native engines, or with those in TypeScript. */
async function opened(t: TestContext, out: string, engine: 'native' | 'reference', cache = false): Promise<Retriever> {
  const { source, lexical, columns, passages, liveRows, manifest } = openIndexDirectory(out);
  const isNative = engine === 'native';
  const filters = isNative
    ? NativeRowFilters.open(columns, manifest.rows, kernel!)
    : new ReferenceRowFilters(columns, manifest.rows);
  const words = new Map([...lexical].map(([field, each]) => [field, { ...each, analyser: 'english' as const }]));
  const retriever = assembleRetriever(
    {
      ...new FakeRetriever().info,
      index: 'ix',
      rows: manifest.rows,
      modes: ['dense', 'bm25', 'hybrid'],
      bm25: BM25,
      columns: COLUMNS,
      dimension: manifest.dimension,
    },
    {
      dense: {
        encoder: new FakeTextEncoder(),
        index: isNative ? await openEngine(source!) : await ReferenceIndex.open(source!, { threads: 1 }),
      },
      lexical: isNative ? openLexicalFields(lexical) : new ReferenceLexicalFields(words),
      filters: new FilterCache(filters),
      passages: await SqlitePassageStore.open(passages),
      liveRows,
    },
    cache ? { answerCache: new AnswerCache(1e8) } : {},
  );
  t.after(() => retriever.close());
  return retriever;
}

const engines = kernel === undefined ? (['reference'] as const) : (['native', 'reference'] as const);

async function hitsOf(retriever: Retriever, call: Omit<RetrieveCall, 'queries'>): Promise<(readonly Hit[])[]> {
  const { outcomes } = await retriever.retrieve({ queries: QUERIES, ...call });
  return outcomes.map((outcome) => {
    if (!outcome.ok) throw outcome.error;
    return outcome.hits;
  });
}

test('a filtered search finds the first k of the whole ranking that pass, with the same scores', async (t) => {
  const { out, rows } = await filteredIndex(t);
  const call = fc.record({
    filter: arbitraryFilter,
    k: fc.oneof(fc.integer({ min: 1, max: 20 }), fc.constant(ROWS)),
    mode: fc.constantFrom<SearchMode>('dense', 'bm25'),
  });
  for (const engine of engines) {
    const retriever = await opened(t, out, engine, engine === 'native');
    const whole = new Map<SearchMode, (readonly Hit[])[]>();
    for (const mode of ['dense', 'bm25'] as const) whole.set(mode, await hitsOf(retriever, { k: ROWS, mode }));
    const expected = ({ filter, k, mode }: { filter: Filter; k: number; mode: SearchMode }): (readonly Hit[])[] => {
      const passing = new Set(rows.flatMap((row, i) => (passes(filter, row, COLUMNS) ? [i] : [])));
      return whole.get(mode)!.map((hits) => hits.filter(({ row }) => passing.has(row)).slice(0, k));
    };
    await fc.assert(
      // Several calls at once: searches with different filters must not share a batch, equal ones may.
      fc.asyncProperty(fc.array(call, { minLength: 1, maxLength: 6 }), async (calls) => {
        const found = await Promise.all(calls.map((each) => hitsOf(retriever, each)));
        for (const [i, each] of calls.entries()) {
          assert.deepEqual(found[i], expected(each), `${engine} ${JSON.stringify(each)}`);
        }
      }),
      { numRuns: engine === 'native' ? 60 : 8 },
    );
  }
});

test('every share of rows gives the exact hits, from no row to all', async (t) => {
  const folder = await tempFolder(t);
  const rows = Array.from({ length: 2_500 }, (_, i) => ({
    id: i,
    contents: `w${i % 3} w${i % 50}`,
    part: (i * 7_919) % 10_000,
  }));
  const out = join(folder, 'ix');
  const columns = [{ name: 'part', type: 'number' }] as const;
  await build({ corpus: writeCorpus(folder, { 'c.jsonl': rows }), out, kernel, bm25: BM25, columns });
  for (const engine of engines) {
    const retriever = await opened(t, out, engine);
    Object.assign(retriever.info, { columns });
    for (const mode of ['dense', 'bm25'] as const) {
      const whole = await hitsOf(retriever, { k: rows.length, mode });
      for (const below of [0, 2, 10, 100, 1_000, 5_000, 10_000]) {
        const filter = parseFilterExpression(`part < ${below}`);
        const found = await hitsOf(retriever, { k: 10, mode, filter });
        const expected = whole.map((hits) => hits.filter(({ row }) => rows[row]!.part < below).slice(0, 10));
        assert.deepEqual(found, expected, `${engine} ${mode} ${below}`);
      }
    }
  }
});

test('an unknown column rejects the call, with the columns; nothing is embedded', async (t) => {
  const { out } = await filteredIndex(t);
  const retriever = await opened(t, out, engines[0]);
  await assert.rejects(
    hitsOf(retriever, { k: 1, filter: parseFilterExpression('sauce') }),
    trawlError('INVALID_REQUEST', /the index ix has source \(string\), size \(number\)/),
  );
});

test('the answer cache tells filters apart, and a server filter from that of a call', async (t) => {
  const { out } = await filteredIndex(t);
  const retriever = await opened(t, out, engines[0], true);
  const date = parseFilterExpression('meta.date >= 2020-01-01');
  const source = parseFilterExpression("source = 'a'");
  const all = await hitsOf(retriever, { k: 5 });
  const dated = await hitsOf(retriever, { k: 5, filter: date });
  assert.notDeepEqual(dated, all);
  const narrowed = narrowedRetriever(retriever, date);
  assert.deepEqual(await hitsOf(narrowed, { k: 5 }), dated);
  const both = await hitsOf(narrowed, { k: 5, filter: source });
  assert.deepEqual(both, await hitsOf(retriever, { k: 5, filter: { and: [source, date] } }));
  assert.deepEqual(await hitsOf(narrowed, { k: 5, filter: { or: [source, { not: source }] } }), dated);
  assert.ok(narrowed.hasAnswers({ queries: QUERIES, k: 5, filter: source }));
  assert.ok(!retriever.hasAnswers({ queries: QUERIES, k: 5, filter: source }));
});

test('a query tree matches and counts only rows that pass, also behind the filter of a server', async (t) => {
  const { out, rows } = await filteredIndex(t);
  const filter = parseFilterExpression("source in ('a', 'b') or size exists");
  for (const engine of engines) {
    const retriever = await opened(t, out, engine);
    const call: TreeCall = {
      query: { type: 'match', field: 'contents', text: 'w0 w3' },
      parameters: DEFAULT_BM25,
      from: 0,
      size: ROWS,
      count: ROWS,
    };
    const { hits } = await retriever.searchTree(call);
    const expected = hits.filter(({ row }) => passes(filter, rows[row]!, COLUMNS));
    assert.ok(expected.length > 0 && expected.length < hits.length);
    for (const found of [
      await retriever.searchTree({ ...call, filter }),
      await narrowedRetriever(retriever, filter).searchTree(call),
    ]) {
      assert.deepEqual(found.hits, expected);
      assert.equal(found.total, expected.length);
      assert.equal(found.best, expected[0]!.score);
    }
  }
});

test('a hybrid search fuses lists of rows that pass', async (t) => {
  const { out, rows } = await filteredIndex(t);
  const filter = parseFilterExpression("source = 'a' or size > 0");
  const passing = (hits: readonly Hit[]): number[] =>
    hits.filter(({ row }) => passes(filter, rows[row]!, COLUMNS)).map(({ row }) => row);
  for (const engine of engines) {
    const retriever = await opened(t, out, engine);
    const found = await hitsOf(retriever, { k: 5, mode: 'hybrid', filter, hybrid: hybridSettings({ depth: 8 }, 5) });
    const [dense, words] = await Promise.all(
      (['dense', 'bm25'] as const).map((mode) => hitsOf(retriever, { k: ROWS, mode })),
    );
    for (const [q, hits] of found.entries()) {
      const lists = new Set([...passing(dense![q]!).slice(0, 8), ...passing(words![q]!).slice(0, 8)]);
      assert.ok(hits.length > 0 && hits.every(({ row }) => lists.has(row)));
    }
  }
});
