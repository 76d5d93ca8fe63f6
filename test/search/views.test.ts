import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { parseFilterExpression } from '../../src/engine/filter/filter-expression.ts';
import { DEFAULT_BM25 } from '../../src/engine/lexical/bm25.ts';
import type { ViewDefinition } from '../../src/index/views/view-definition.ts';
import type { Hit } from '../../src/search/calls/query-outcome.ts';
import { hybridSettings } from '../../src/search/hybrid/hybrid-settings.ts';
import { narrowedRetriever } from '../../src/search/layers/passing-retriever.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import type { Retriever } from '../../src/search/retriever.ts';
import type { SearchMode } from '../../src/search/search-mode.ts';
import { arbitraryFilter, COLUMNS } from '../engine/filter/arbitrary-filters.ts';
import { passes } from '../engine/filter/naive-filter.ts';
import { runs } from '../helpers/runs.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { FakeTextEncoder } from '../indexer/fake-text-encoder.ts';
import { engines, type FilteredRow, filteredIndex, hitsOf, opened, QUERIES, ROWS } from './filtered-index.ts';

const MODES = ['dense', 'bm25'] as const;
const rowNumber = fc.integer({ min: 0, max: ROWS - 1 });

/** A view with its lists as values. */
interface Parts {
  readonly filter?: NonNullable<ViewDefinition['filter']>;
  readonly date?: NonNullable<ViewDefinition['date']>;
  readonly rows?: readonly number[];
  readonly blockedIds?: readonly number[];
  readonly blockedTitles?: readonly number[];
}

const arbitraryParts: fc.Arbitrary<Parts> = fc.record(
  {
    filter: arbitraryFilter,
    date: fc.record({
      column: fc.constant('meta.date'),
      before: fc.constantFrom('1970-01-01', '2020-02-29', '2020-02-29T11:00:00Z'),
      undated: fc.constantFrom('keep', 'drop'),
    }),
    rows: fc.uniqueArray(rowNumber, { minLength: 1_500, maxLength: 2_900 }),
    blockedIds: fc.array(rowNumber, { maxLength: 1_000 }),
    blockedTitles: fc.array(fc.integer({ min: 0, max: 600 }), { maxLength: 300 }),
  },
  { requiredKeys: [] },
);

/** The rows of a view, by its definition in docs/views.md. */
function naiveRows(parts: Parts, rows: readonly FilteredRow[]): Set<number> {
  const { filter, date } = parts;
  const listed = parts.rows === undefined ? undefined : new Set(parts.rows);
  const ids = new Set(parts.blockedIds?.map((id) => `p${id}`));
  const titles = new Set(parts.blockedTitles?.map((title) => `t${title}`));
  const isInTime = (row: object): boolean => {
    if (date === undefined) return true;
    const isLate = passes({ column: date.column, op: '>=', value: date.before }, row, COLUMNS);
    const isDated = passes({ column: date.column, op: 'exists' }, row, COLUMNS);
    return isDated ? !isLate : date.undated === 'keep';
  };
  const kept = rows.flatMap((row, i) => {
    const isDeleted = i < 2_800 && i % 7 === 0;
    const passesFilter = filter === undefined || passes(filter, row, COLUMNS);
    const isBlocked = ids.has(row.id) || titles.has(row.title);
    return !isDeleted && passesFilter && isInTime(row) && listed?.has(i) !== false && !isBlocked ? [i] : [];
  });
  return new Set(kept);
}

/** Writes the lists of views into files. */
async function definitionsOf(
  t: TestContext,
  views: Readonly<Record<string, Parts>>,
  generation: string,
): Promise<ViewDefinition[]> {
  const folder = await tempFolder(t);
  const list = (name: string, lines: readonly unknown[]): string => {
    const path = join(folder, name);
    writeFileSync(path, lines.map((line) => `${String(line)}\n`).join(''));
    return path;
  };
  return Object.entries(views).map(([name, { filter, date, rows, blockedIds, blockedTitles }]) => ({
    name,
    filter,
    date,
    ...(rows === undefined ? {} : { rows: list(`${name}-rows`, rows), generation }),
    blockIds:
      blockedIds === undefined
        ? undefined
        : [
            list(
              `${name}-ids`,
              blockedIds.map((id) => `p${id}`),
            ),
          ],
    blockTitles:
      blockedTitles === undefined
        ? undefined
        : [
            list(
              `${name}-titles`,
              blockedTitles.map((title) => `t${title}`),
            ),
          ],
    unmatched: 'allow',
  }));
}

async function rankings(retriever: Retriever): Promise<ReadonlyMap<SearchMode, readonly (readonly Hit[])[]>> {
  const all = new Map<SearchMode, readonly (readonly Hit[])[]>();
  for (const mode of MODES) all.set(mode, await hitsOf(retriever, { k: ROWS, mode }));
  return all;
}

test('a search in a view finds the first k of the whole ranking that are in it, also with other calls in flight', async (t) => {
  const { out, rows } = await filteredIndex();
  const { manifest } = openIndexDirectory(out);
  const views = Object.fromEntries(
    fc.sample(arbitraryParts, { numRuns: 8, seed: 11 }).map((parts, i) => [`v${i}`, parts]),
  );
  const kept = new Map(Object.entries(views).map(([name, parts]) => [name, naiveRows(parts, rows)]));
  assert.ok([...kept.values()].filter(({ size }) => size > 0).length > 5);
  const definitions = await definitionsOf(t, views, manifest.generation);
  for (const engine of engines) {
    const retriever = await opened(t, out, engine, { cache: engine === 'native', views: definitions });
    assert.deepEqual(
      retriever.info.views.map(({ name, passages }) => ({ name, passages })),
      [...kept].map(([name, { size }]) => ({ name, passages: size })),
    );
    const whole = await rankings(retriever);
    const calls = fc.array(
      fc.record({
        names: fc.uniqueArray(fc.constantFrom(...kept.keys()), { maxLength: 2 }),
        filter: fc.option(arbitraryFilter, { nil: undefined }),
        k: fc.oneof(fc.integer({ min: 1, max: 20 }), fc.constant(ROWS)),
        mode: fc.constantFrom(...MODES),
      }),
      { minLength: 1, maxLength: 6 },
    );
    await fc.assert(
      fc.asyncProperty(calls, async (asked) => {
        const found = await Promise.all(
          asked.map(({ names, filter, k, mode }) =>
            hitsOf(narrowedRetriever(retriever, { views: names }), {
              k,
              mode,
              filter,
            }),
          ),
        );
        for (const [i, { names, filter, k, mode }] of asked.entries()) {
          const isIn = (row: number): boolean =>
            names.every((name) => kept.get(name)!.has(row)) &&
            (filter === undefined || passes(filter, rows[row]!, COLUMNS));
          const expected = whole.get(mode)!.map((hits) => hits.filter(({ row }) => isIn(row)).slice(0, k));
          assert.deepEqual(found[i], expected, `${engine} ${JSON.stringify(asked[i])}`);
        }
      }),
      { numRuns: engine === 'native' ? runs(20, 60) : runs(3, 6) },
    );
  }
});

test('look-ups, scores, explanations and query trees in a view are those of an index with its rows alone', async (t) => {
  const { out, rows } = await filteredIndex();
  const parts: Parts = {
    filter: parseFilterExpression("source in ('a', 'b') or size exists"),
    blockedTitles: [1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12],
  };
  const kept = naiveRows(parts, rows);
  const definitions = await definitionsOf(t, { train: parts }, 'none');
  for (const engine of engines) {
    const whole = await opened(t, out, engine, { views: definitions });
    const viewed = narrowedRetriever(whole, { views: ['train'] });
    const ranking = await rankings(viewed);
    const full = await rankings(whole);
    const find = async (by: 'id' | 'title' | 'row', keys: readonly string[], limit: number): Promise<number[][]> =>
      (await viewed.find({ by, keys, limit })).found.map((list) => list.map(({ row }) => row));
    const asked = fc.array(rowNumber, { minLength: 1, maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(
        asked,
        fc.integer({ min: 1, max: 7 }),
        fc.constantFrom(0, 5, 200, ROWS),
        async (some, limit, maxRank) => {
          const inView = some.map((row) => (kept.has(row) ? [row] : []));
          assert.deepEqual(
            await find(
              'id',
              some.map((row) => `p${row}`),
              limit,
            ),
            inView,
          );
          assert.deepEqual(await find('row', some.map(String), limit), inView);
          const titles = some.map((row) => row % 500);
          const byTitle = titles.map((title) => [...kept].filter((row) => row % 500 === title).slice(0, limit));
          assert.deepEqual(
            await find(
              'title',
              titles.map((title) => `t${title}`),
              limit,
            ),
            byTitle,
          );
          assert.deepEqual(
            [...(await viewed.select({ ids: some.map((row) => `p${row}`) }))],
            [...new Set(inView.flat())].sort((a, b) => a - b),
          );
          for (const mode of MODES) {
            const queries = QUERIES.map((query) => ({ query, rows: some }));
            const { outcomes } = await viewed.score({ queries, mode, maxRank });
            for (const [q, outcome] of outcomes.entries()) {
              assert.ok(outcome.ok);
              const places = new Map(ranking.get(mode)![q]!.map(({ row, score }, i) => [row, { score, rank: i + 1 }]));
              const expected = some.map((row) => {
                const { score = 0, rank = null } = places.get(row) ?? {};
                return { score, rank: rank !== null && rank <= maxRank ? rank : null };
              });
              assert.deepEqual(outcome.scores, expected);
            }
          }
          const explaining = { queries: [{ query: 'w0 w1', rows: some }] };
          const [inWhole] = (await whole.explain(explaining)).explained;
          const [inside] = (await viewed.explain(explaining)).explained;
          assert.deepEqual(
            inside,
            some.map((row, i) => (kept.has(row) ? inWhole![i] : [])),
          );
        },
      ),
      { numRuns: engine === 'native' ? runs(8, 20) : 2 },
    );
    const tree = {
      query: { type: 'match', field: 'contents', text: 'w0 w3' },
      parameters: DEFAULT_BM25,
      from: 0,
      size: ROWS,
      count: ROWS,
    } as const;
    const { hits } = await whole.searchTree(tree);
    const expected = hits.filter(({ row }) => kept.has(row));
    const found = await viewed.searchTree(tree);
    assert.deepEqual(found.hits, expected);
    assert.equal(found.total, expected.length);
    const rowsOf = (some: readonly { readonly row: number }[]): number[] => some.map(({ row }) => row);
    const descending = await viewed.searchTree({ ...tree, order: [{ by: 'row', descending: true }] });
    assert.deepEqual(
      rowsOf(descending.hits),
      rowsOf(expected).sort((a, b) => b - a),
    );
    assert.deepEqual(
      [...(await viewed.select({ query: tree.query }))],
      rowsOf(expected).sort((a, b) => a - b),
    );
    const vector = new FakeTextEncoder().vectorOf('w0');
    const near = (await whole.nearest({ vector, k: ROWS })).nearest.filter(({ row }) => kept.has(row));
    assert.deepEqual((await viewed.nearest({ vector, k: ROWS })).nearest, near);
    assert.deepEqual(
      [...(await viewed.select({}))],
      rowsOf(near).sort((a, b) => a - b),
    );
    assert.ok(expected.length > 0 && expected.length < full.get('bm25')![0]!.length);
  }
});

test('a hybrid search in a view is that of the same rows by a filter', async (t) => {
  const { out } = await filteredIndex();
  const filter = parseFilterExpression("source = 'a' or size > 0");
  for (const engine of engines) {
    const retriever = await opened(t, out, engine, { views: [{ name: 'some', filter }] });
    for (const fusion of ['rrf', 'weighted'] as const) {
      const call = { k: 12, mode: 'hybrid', hybrid: hybridSettings({ depth: 30, fusion }, 12) } as const;
      const filtered = await hitsOf(retriever, { ...call, filter });
      assert.deepEqual(await hitsOf(retriever, { ...call, views: ['some'] }), filtered);
      assert.notDeepEqual(await hitsOf(retriever, call), filtered);
    }
  }
});

test('the answer cache and equal queries in flight tell views apart', async (t) => {
  const { out, rows } = await filteredIndex();
  const views = [
    { name: 'a', filter: parseFilterExpression("source = 'a'") },
    { name: 'b', filter: parseFilterExpression('size exists') },
  ];
  const retriever = await opened(t, out, engines[0], { cache: true, views });
  const scopes = [[], ['a'], ['b'], ['a', 'b'], ['b', 'a']].map((names) =>
    narrowedRetriever(retriever, { views: names }),
  );
  const together = await Promise.all(scopes.map((scope) => hitsOf(scope, { k: 30 })));
  // Now from the cache.
  const later = await Promise.all(scopes.map((scope) => hitsOf(scope, { k: 30 })));
  assert.deepEqual(later, together);
  const isIn = [() => true, 'a', 'b', 'ab', 'ab'].map(
    (names) => (row: number) =>
      typeof names !== 'string' ||
      views.every(({ name, filter }) => !names.includes(name) || passes(filter, rows[row]!, COLUMNS)),
  );
  for (const [i, lists] of together.entries()) for (const { row } of lists.flat()) assert.ok(isIn[i]!(row));
  assert.deepEqual(together[3], together[4]);
  assert.equal(
    new Set(together.map((lists) => JSON.stringify(lists.map((hits) => hits.map(({ row }) => row))))).size,
    4,
  );
  const { computed } = retriever.statistics().sharing;
  await hitsOf(narrowedRetriever(retriever, { views: ['b'] }), { k: 30 });
  assert.equal(retriever.statistics().sharing.computed, computed);
});

test('a view that the index does not have rejects every call that returns passages, and lists the views', async (t) => {
  const { out } = await filteredIndex();
  const views = [{ name: 'train', filter: parseFilterExpression("source = 'a'") }];
  const retriever = await opened(t, out, engines[0], { views });
  const dev = narrowedRetriever(retriever, { views: ['dev'] });
  const refusal = trawlError('NOT_FOUND', /^The index ix has no view "dev"; it has train\.$/);
  const tree = {
    query: { type: 'match', field: 'contents', text: 'w0' },
    parameters: DEFAULT_BM25,
    from: 0,
    size: 1,
    count: 1,
  } as const;
  const queries = [{ query: 'w0', rows: [1] }];
  await assert.rejects(dev.retrieve({ queries: ['w0'], k: 1 }), refusal);
  await assert.rejects(dev.find({ by: 'id', keys: ['p1'], limit: 1 }), refusal);
  await assert.rejects(dev.select({ ids: ['p1'] }), refusal);
  await assert.rejects(dev.searchTree(tree), refusal);
  await assert.rejects(dev.nearest({ vector: new Float32Array(8), k: 1 }), refusal);
  await assert.rejects(dev.explain({ queries }), refusal);
  await assert.rejects(dev.score({ queries, mode: 'bm25', maxRank: 1 }), refusal);
});

test('excluded ids have the lists of a view without them, few and many, in every mode and order', async (t) => {
  const { out } = await filteredIndex();
  const views = { few: 300, many: 900 };
  const idsOf = (count: number): number[] => Array.from({ length: count }, (_, i) => 3 * i + 1);
  const parts = Object.entries(views).map(([name, count]) => [name, { blockedIds: idsOf(count) }] as const);
  const definitions = await definitionsOf(t, Object.fromEntries(parts), openIndexDirectory(out).manifest.generation);
  const retriever = await opened(t, out, engines[0], { views: definitions });
  for (const [view, count] of Object.entries(views)) {
    const exclude = ['none', ...idsOf(count).map((id) => `p${id}`)];
    for (const mode of [...MODES, 'hybrid'] as const) {
      for (const bm25Order of mode === 'bm25' ? (['row', 'pyserini'] as const) : (['row'] as const)) {
        const call = { k: 40, mode, bm25Order };
        assert.deepEqual(
          await hitsOf(retriever, { ...call, exclude }),
          await hitsOf(retriever, { ...call, views: [view] }),
          `${view}, ${mode}, ${bm25Order}`,
        );
      }
    }
  }
});
