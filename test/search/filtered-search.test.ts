import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Filter } from '../../src/engine/filter/filter.ts';
import { parseFilterExpression } from '../../src/engine/filter/filter-expression.ts';
import { DEFAULT_BM25 } from '../../src/engine/lexical/bm25.ts';
import type { Hit } from '../../src/search/calls/query-outcome.ts';
import type { TreeCall } from '../../src/search/calls/tree-call.ts';
import { hybridSettings } from '../../src/search/hybrid/hybrid-settings.ts';
import { narrowedRetriever } from '../../src/search/layers/passing-retriever.ts';
import type { SearchMode } from '../../src/search/search-mode.ts';
import { arbitraryFilter, COLUMNS } from '../engine/filter/arbitrary-filters.ts';
import { passes } from '../engine/filter/naive-filter.ts';
import { runs } from '../helpers/runs.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { build, writeCorpus } from '../indexer/build.ts';
import { BM25, engines, filteredIndex, hitsOf, kernel, opened, QUERIES, ROWS } from './filtered-index.ts';

test('a filtered search finds the first k of the whole ranking that pass, with the same scores', async (t) => {
  const { out, rows } = await filteredIndex();
  const call = fc.record({
    filter: arbitraryFilter,
    k: fc.oneof(fc.integer({ min: 1, max: 20 }), fc.constant(ROWS)),
    mode: fc.constantFrom<SearchMode>('dense', 'bm25'),
  });
  for (const engine of engines) {
    const retriever = await opened(t, out, engine, { cache: engine === 'native' });
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
      { numRuns: engine === 'native' ? runs(20, 60) : runs(3, 8) },
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
  const { out } = await filteredIndex();
  const retriever = await opened(t, out, engines[0]);
  await assert.rejects(
    hitsOf(retriever, { k: 1, filter: parseFilterExpression('sauce') }),
    trawlError('INVALID_REQUEST', /the index ix has source \(string\), size \(number\)/),
  );
});

test('the answer cache tells filters apart, and a server filter from that of a call', async (t) => {
  const { out } = await filteredIndex();
  const retriever = await opened(t, out, engines[0], { cache: true });
  const date = parseFilterExpression('meta.date >= 2020-01-01');
  const source = parseFilterExpression("source = 'a'");
  const all = await hitsOf(retriever, { k: 5 });
  const dated = await hitsOf(retriever, { k: 5, filter: date });
  assert.notDeepEqual(dated, all);
  const narrowed = narrowedRetriever(retriever, { filter: date });
  assert.deepEqual(await hitsOf(narrowed, { k: 5 }), dated);
  const both = await hitsOf(narrowed, { k: 5, filter: source });
  assert.deepEqual(both, await hitsOf(retriever, { k: 5, filter: { and: [source, date] } }));
  assert.deepEqual(await hitsOf(narrowed, { k: 5, filter: { or: [source, { not: source }] } }), dated);
  const { computed } = retriever.statistics().sharing;
  await hitsOf(narrowed, { k: 5, filter: source });
  assert.equal(retriever.statistics().sharing.computed, computed);
  await hitsOf(retriever, { k: 5, filter: source });
  assert.equal(retriever.statistics().sharing.computed, computed + QUERIES.length);
});

test('a query tree matches and counts only rows that pass, also behind the filter of a server', async (t) => {
  const { out, rows } = await filteredIndex();
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
      await narrowedRetriever(retriever, { filter }).searchTree(call),
    ]) {
      assert.deepEqual(found.hits, expected);
      assert.equal(found.total, expected.length);
      assert.equal(found.best, expected[0]!.score);
    }
  }
});

test('a hybrid search fuses lists of rows that pass', async (t) => {
  const { out, rows } = await filteredIndex();
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
