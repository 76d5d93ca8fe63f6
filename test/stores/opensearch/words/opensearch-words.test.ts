import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LexicalFields } from '../../../../src/engine/lexical/lexical-index.ts';
import { bestFields } from '../../../../src/engine/lexical/lexical-query.ts';
import { RowBitmap } from '../../../../src/engine/row-bitmap.ts';
import { hasK1Factor, openSearchWords } from '../../../../src/stores/opensearch/words/opensearch-words.ts';
import type { WordProbe } from '../../../../src/stores/published/publication.ts';
import { trawlError } from '../../../helpers/trawl-error.ts';
import { FakeOpenSearch, type FakeReply, searchReply, VERSION_REPLY } from '../fake-opensearch.ts';

const ROWS = 6;
const WORDS = { analyser: 'standard', unicode: '12.1', k1: 0.9, b: 0.4, fields: ['contents'] } as const;
const PARAMETERS = { k1: 0.9, b: 0.4, k1Factor: false };

const found = (...sorts: readonly (readonly [score: number, row: number])[]): object =>
  searchReply({ hits: { hits: sorts.map((sort) => ({ sort })) } });
const counted = (value: number): object => searchReply({ hits: { total: { value, relation: 'eq' }, hits: [] } });

/** Words over a server that answers every call with these replies to its searches. */
async function wordsOver(
  t: { after(end: () => void | Promise<void>): void },
  responses: readonly object[],
): Promise<{ fake: FakeOpenSearch; words: LexicalFields }> {
  const fake = await FakeOpenSearch.start(
    t,
    ({ path }): FakeReply => ({ body: path === '/' ? VERSION_REPLY : { responses } }),
  );
  const liveRows = new RowBitmap(ROWS).complement();
  liveRows.delete(4);
  const words = openSearchWords(await fake.client(t), {
    index: 'i',
    rows: ROWS,
    liveRows,
    words: { ...WORDS, fields: ['contents'] },
    counts: new Map([['contents', { documents: 5, tokens: 30 }]]),
    hasFactor: true,
  });
  t.after(() => words.close());
  return { fake, words };
}

const queries = [bestFields('river', ['contents'])];

test('a search counts words over all shards, allows no partial results, orders equal scores by row, and counts the rows', async (t) => {
  const { fake, words } = await wordsOver(t, [found([2.5, 3], [2.5, 5]), counted(5)]);
  const result = await words.search({ queries, k: 3, parameters: PARAMETERS });
  assert.deepEqual([[...result.rows], [...result.scores], [...result.counts]], [[3, 5, -1], [2.5, 2.5, 0], [2]]);
  assert.deepEqual(result.isExact, [true]);
  const lines = fake.requests
    .at(-1)!
    .body.trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.deepEqual(lines[0], { allow_partial_search_results: false, search_type: 'dfs_query_then_fetch' });
  assert.deepEqual(lines[1].sort, [{ _score: 'desc' }, { row: 'asc' }]);
  assert.equal(lines[1].track_total_hits, false);
  assert.deepEqual(lines[3], { track_total_hits: true, size: 0, query: { match_all: {} } });
});

test('a filter bounds the search and excludes deleted rows; nothing is asked where it passes no row', async (t) => {
  const { fake, words } = await wordsOver(t, [found([1, 0]), counted(5)]);
  const filter = new RowBitmap(ROWS);
  filter.add(0);
  filter.add(4);
  await words.search({ queries, k: 3, parameters: PARAMETERS, filter });
  const query = JSON.parse(fake.requests.at(-1)!.body.split('\n')[1]!).query;
  assert.deepEqual(query.bool.filter, [{ terms: { row: [0] } }]);
  const asked = fake.requests.length;
  filter.delete(0);
  const none = await words.search({ queries, k: 3, parameters: PARAMETERS, filter });
  assert.deepEqual([...none.counts], [0]);
  assert.equal(fake.requests.length, asked);
});

test('a row that was not published or does not pass the filter, and rows that are missing, are refused', async (t) => {
  const cases: [object[], string, RegExp][] = [
    [[found([2, 4]), counted(5)], 'STORE_DIFFERS', /returned row 4/],
    [[found([2, 6]), counted(5)], 'STORE_DIFFERS', /returned row 6/],
    [[found([2, 1]), counted(4)], 'STORE_FAILED', /returned 4 candidates of 5/],
    [
      [searchReply({ hits: { hits: [] } }, { successful: 1 }), counted(5)],
      'STORE_FAILED',
      /of 2 shards, 1 were searched/,
    ],
  ];
  for (const [responses, code, reason] of cases) {
    const { words } = await wordsOver(t, responses);
    await assert.rejects(
      words.search({ queries, k: 3, parameters: PARAMETERS }),
      trawlError(code as 'STORE_FAILED', reason),
    );
  }
});

test('other k1 and b than those of the index are refused where words are scored', async (t) => {
  const { words } = await wordsOver(t, [found(), counted(5)]);
  const search = (k1: number, query: (typeof queries)[0] = queries[0]!) =>
    words.search({ queries: [query], k: 3, parameters: { k1, b: 0.4, k1Factor: true } });
  await assert.rejects(search(1.2), trawlError('NOT_SUPPORTED', /keeps k1 and b with the index: 0\.9 and 0\.4/));
  await search(1.2, { type: 'constant-score', query: queries[0]! });
});

test('the factor k1 + 1 is found out by a recorded word, and other scores are refused', async (t) => {
  let response = found();
  const fake = await FakeOpenSearch.start(
    t,
    ({ path }): FakeReply => ({
      body: path === '/' ? VERSION_REPLY : { responses: [response] },
    }),
  );
  const client = await fake.client(t);
  const [score, factoredScore] = [Math.fround(4.36102819442749), Math.fround(8.285953521728516)];
  const probe: WordProbe = { field: 'contents', term: 'ed', row: 0, score, factoredScore };
  response = found([8.2859535, 0]);
  assert.equal(await hasK1Factor(client, 'i', [probe]), true);
  response = found([4.361028, 0]);
  assert.equal(await hasK1Factor(client, 'i', [probe]), false);
  for (const other of [found([8.2859535, 1]), found([8.28, 0]), found()]) {
    response = other;
    await assert.rejects(
      hasK1Factor(client, 'i', [probe]),
      trawlError('STORE_DIFFERS', /scores the word "ed" of contents/),
    );
  }
});
