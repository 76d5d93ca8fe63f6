import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { IndexRegistry } from '../../../src/server/indexes/index-registry.ts';
import { arbitraryRow, COLUMNS } from '../../engine/filter/arbitrary-filters.ts';
import { runs } from '../../helpers/runs.ts';
import { type Article, articleIndex, ask, elasticsearch, type Json, withoutWords } from './elasticsearch-server.ts';

const skip = withoutWords;

interface SortedHit {
  readonly _id: string;
  readonly _index: string;
  readonly _score: number | null;
  readonly sort: readonly (string | number | null)[];
}

const hitsOf = (json: Json): readonly SortedHit[] => json.hits!.hits as unknown as readonly SortedHit[];

/** Articles with random columns; the word "river" occurs 1 to 5 times. */
function articles(count: number): readonly Article[] {
  const rows = fc.sample(arbitraryRow(true), { numRuns: count, seed: 11 });
  return rows.map((row, i) => ({ id: `p${i}`, title: 't', text: `river ${'river '.repeat(i % 5)}`, ...row }));
}

/** The values of an article's column, as they are compared. */
function valuesOf(article: Article, column: string): (string | number)[] {
  const found = column === 'meta.date' ? (article.meta as { date?: unknown } | undefined)?.date : article[column];
  return [found ?? []].flat().map((value: unknown) => {
    if (column === 'meta.date') return Date.parse(String(value));
    return typeof value === 'string' ? value : Number(value);
  });
}

function compare(a: string | number, b: string | number): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return Buffer.compare(Buffer.from(String(a)), Buffer.from(String(b)));
}

test('hits are sorted by any columns, ties by row, as a naive sort does', { skip }, async (t) => {
  const rows = articles(120);
  const app = elasticsearch(t, await articleIndex(t, rows, { columns: COLUMNS }));
  const criterion = fc.record({
    column: fc.constantFrom(...COLUMNS.map(({ name }) => name)),
    order: fc.constantFrom('asc', 'desc'),
    missing: fc.constantFrom('_last', '_first'),
    mode: fc.constantFrom(undefined, 'min', 'max'),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(criterion, { minLength: 1, maxLength: 3 }),
      fc.nat(110),
      fc.nat(30),
      async (sort, from, size) => {
        const keys = rows.map((article) =>
          sort.map(({ column, order, mode }) => {
            const values = valuesOf(article, column).sort(compare);
            return values.at(mode === undefined ? (order === 'asc' ? 0 : -1) : mode === 'min' ? 0 : -1) ?? null;
          }),
        );
        const expected = [...rows.keys()].sort((a, b) => {
          for (const [i, { order, missing }] of sort.entries()) {
            const [one, other] = [keys[a]![i]!, keys[b]![i]!];
            if (one === null && other === null) continue;
            if (one === null || other === null) return (one === null) === (missing === '_first') ? -1 : 1;
            const compared = compare(one, other) * (order === 'asc' ? 1 : -1);
            if (compared !== 0) return compared;
          }
          return a - b;
        });
        const body = { sort: sort.map(({ column, ...options }) => ({ [column]: options })), from, size };
        const { json, text } = await ask(app, 'POST', '/wiki_en/_search', body);
        assert.equal(json.error, undefined, text);
        assert.deepEqual(
          hitsOf(json).map(({ _id }) => _id),
          expected.slice(from, from + size).map((row) => `p${row}`),
          JSON.stringify(body),
        );
        assert.deepEqual([json.hits!.max_score, json.hits!.total!.value], [null, rows.length]);
      },
    ),
    { numRuns: runs(40, 150) },
  );
});

test('search_after pages through all hits, each once', { skip }, async (t) => {
  const rows = articles(60);
  const app = elasticsearch(t, await articleIndex(t, rows, { columns: COLUMNS }));
  for (const sort of [
    [{ size: 'asc' }, '_doc'],
    ['source', { _doc: 'desc' }],
    [{ 'meta.date': { order: 'desc', missing: '_first' } }, { archived: 'desc' }, '_doc'],
    ['_score', '_doc'],
    [{ nowhere: { unmapped_type: 'keyword' } }, '_doc'],
  ]) {
    const seen: string[] = [];
    let after: SortedHit['sort'] | undefined;
    for (let page = 0; page < 20; page++) {
      const body = {
        query: { match: { text: 'river' } },
        sort,
        size: 7,
        search_after: after,
      };
      // The largest long has more digits than a JavaScript number.
      const { text } = await ask(
        app,
        'POST',
        '/wiki_en/_search',
        JSON.stringify(body).replace(/9223372036854776000/g, '9223372036854775807'),
      );
      const found = JSON.parse(text) as { hits: { hits: readonly SortedHit[] } };
      seen.push(...found.hits.hits.map(({ _id }) => _id));
      after = found.hits.hits.at(-1)?.sort;
      if (found.hits.hits.length < 7) break;
    }
    const whole = await ask(app, 'POST', '/wiki_en/_search', { query: { match: { text: 'river' } }, sort, size: 100 });
    assert.deepEqual(
      seen,
      hitsOf(whole.json).map(({ _id }) => _id),
      JSON.stringify(sort),
    );
    assert.equal(new Set(seen).size, 60);
  }
});

test('scores are in the reply only where they are asked for', { skip }, async (t) => {
  const app = elasticsearch(t, await articleIndex(t, articles(10), { columns: COLUMNS }));
  const query = { match: { text: 'river' } };
  const search = async (body: object, parameters = '') =>
    (await ask(app, 'POST', `/wiki_en/_search${parameters}`, { query, ...body })).json;
  const plain = await search({});
  const scores = new Map(hitsOf(plain).map(({ _id, _score }) => [_id, _score]));
  const without = await search({ sort: '_doc' });
  assert.deepEqual(
    hitsOf(without).map(({ _score }) => _score),
    new Array(10).fill(null),
  );
  assert.deepEqual(
    hitsOf(without).map(({ sort }) => sort),
    [...Array(10).keys()].map((row) => [row]),
  );
  const tracked = await search({ sort: '_doc', track_scores: true });
  assert.deepEqual(
    hitsOf(tracked).map(({ _id, _score }) => _score === scores.get(_id)),
    new Array(10).fill(true),
  );
  assert.equal(tracked.hits!.max_score, plain.hits!.max_score);
  const ascending = await search({ sort: { _score: 'asc' } });
  assert.deepEqual(
    hitsOf(ascending).map(({ _score }) => _score),
    [...scores.values()].sort((a, b) => a! - b!),
  );
  assert.equal(ascending.hits!.max_score, null);
  assert.deepEqual(hitsOf(await search({ sort: ['_score'] })), hitsOf(plain));
  assert.deepEqual(
    hitsOf(await search({}, '?sort=size:desc,_doc')).map(({ _id }) => _id),
    hitsOf(await search({ sort: [{ size: 'desc' }, '_doc'] })).map(({ _id }) => _id),
  );
  const limited = await search({ sort: '_doc', min_score: plain.hits!.max_score, track_total_hits: 1 });
  assert.ok(hitsOf(limited).length < 10);
});

test('several indexes are merged by what they are sorted by', { skip }, async (t) => {
  const rows = articles(40);
  const retrievers = [
    await articleIndex(t, rows.slice(0, 25), { name: 'one', columns: COLUMNS }),
    await articleIndex(t, rows.slice(25), { name: 'two', columns: COLUMNS }),
  ];
  const targets = retrievers.map(({ info }) => ({ name: info.index, folder: info.index }));
  const open = async (name: string) => retrievers.find(({ info }) => info.index === name)!;
  const holder = IndexRegistry.opening(targets, open, new Map([['both', ['two', 'one']]]));
  await holder.open();
  const app = elasticsearch(t, holder);
  const whole = elasticsearch(t, await articleIndex(t, rows, { columns: COLUMNS }));
  const body = {
    sort: [{ size: { order: 'desc' } }, { source: { order: 'asc', missing: '_first' } }],
    from: 3,
    size: 20,
  };
  const expected = hitsOf((await ask(whole, 'POST', '/wiki_en/_search', body)).json).map(({ sort }) => sort);
  for (const names of ['both', 'one,two', '*', '_all', 'b*', '*,-nothing']) {
    const { json, text } = await ask(app, 'POST', `/${names}/_search`, body);
    assert.equal(json._shards?.total, 2, text);
    assert.deepEqual(
      hitsOf(json).map(({ sort }) => sort),
      expected,
      names,
    );
  }
  assert.equal((await ask(app, 'POST', '/both,-one/_search', body)).status, 404, 'it excludes only after a pattern');
  assert.equal((await ask(app, 'POST', '/*,-one/_search', body)).json._shards!.total, 1);
  assert.equal((await ask(app, 'GET', '/both/_count')).json.count, 40);
  assert.equal((await ask(app, 'HEAD', '/both')).status, 200);
});

test('what cannot be sorted is refused', { skip }, async (t) => {
  const columns = [...COLUMNS, { name: 'title', type: 'string' } as const];
  const app = elasticsearch(t, await articleIndex(t, articles(5), { columns }));
  const cases: readonly (readonly [body: object, type: string, reason: RegExp])[] = [
    [{ sort: 'text' }, 'illegal_argument_exception', /Fielddata is disabled on \[text\].*--column/],
    [{ sort: 'title' }, 'illegal_argument_exception', /\[title\.keyword\]/],
    [{ sort: 'nowhere' }, 'query_shard_exception', /No mapping found for \[nowhere\] in order to sort on/],
    [{ sort: 'x'.repeat(9_000) }, 'query_shard_exception', /^.{0,200}No mapping found for \[x{100}\] in/],
    [{ sort: { size: 'up' } }, 'illegal_argument_exception', /SortOrder \[up\]/],
    [{ sort: { size: { order: 'up' } } }, 'x_content_parse_exception', /failed to parse field \[order\]/],
    [{ sort: { size: { missing: 'x' } } }, 'query_shard_exception', /\[missing\] of \[size\] is \[x\]/],
    [{ sort: { size: { mode: 'avg' } } }, 'illegal_argument_exception', /\[mode\] is \[avg\]/],
    [{ sort: { size: { nested: {} } } }, 'parsing_exception', /\[nested\]/],
    [{ sort: { _score: { missing: 1 } } }, 'parsing_exception', /\[missing\]/],
    [{ sort: [3] }, 'parsing_exception', /malformed sort/],
    [{ search_after: [1] }, 'illegal_argument_exception', /Sort must contain at least one field/],
    [{ sort: '_doc', search_after: [1, 2] }, 'illegal_argument_exception', /has 2 value\(s\) but sort has 1/],
    [{ sort: '_doc', search_after: [1], from: 1 }, 'action_request_validation_exception', /\[from\]/],
    [{ sort: '_doc', search_after: ['x'] }, 'illegal_argument_exception', /\[_doc\]: \[x\]/],
    [{ sort: '_doc', search_after: [] }, 'parsing_exception', /\[search_after\]/],
    [{ timeout: '5' }, 'illegal_argument_exception', /unit is missing/],
  ];
  for (const [body, type, reason] of cases) {
    const { status, json } = await ask(app, 'POST', '/wiki_en/_search', body);
    const root = json.error!.root_cause![0]!;
    assert.deepEqual([status, root.type], [400, type], JSON.stringify(body));
    assert.match(String(root.reason), reason);
  }
  assert.equal((await ask(app, 'POST', '/wiki_en/_search', { sort: 'title.keyword', timeout: '30s' })).status, 200);
});
