import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { TimeSlice } from '../../src/base/time-slice.ts';
import type { QueryOutcome } from '../../src/search/calls/query-outcome.ts';
import { excerpt, wordsOf } from '../../src/server/excerpt.ts';
import { fuse, type Selection, select } from '../../src/server/native-search/fusion.ts';
import { runs } from '../helpers/runs.ts';

const ALL: Selection = { k: 100, minScore: null, deduplicate: 'none' };
const APART = { length: 100, acrossLists: false };

/** An outcome with hits given as row, score and title. */
function found(...hits: readonly [row: number, score: number, title?: string][]): QueryOutcome {
  return {
    ok: true,
    hits: hits.map(([row, score, title]) => ({
      row,
      score,
      document: JSON.stringify({ id: `p${row}`, title, text: 'words' }),
    })),
    tokens: 1,
    truncated: false,
    text: '',
    cut: 'nothing',
    vector: null,
    certificate: { exact: true, rescored: null },
  };
}

const slice = new TimeSlice(new AbortController().signal);
const rowsOf = async (lists: ReturnType<typeof select>): Promise<number[][]> =>
  (await lists).map(({ candidates }) => candidates.map(({ hit }) => hit.row));

test('hits with a score below the minimum are left out', async () => {
  const outcomes = [found([1, 0.9], [2, 0.8], [3, 0.7], [4, 0.6])];
  const selection = { ...ALL, minScore: 0.65 };
  assert.deepEqual(await rowsOf(select(outcomes, selection, APART, slice)), [[1, 2, 3]]);
  assert.deepEqual(await rowsOf(select(outcomes, ALL, { length: 2, acrossLists: false }, slice)), [[1, 2]]);
});

test('a passage or title appears once in all lists, in the first one that has it', async () => {
  const outcomes = [found([1, 0.9, 'A'], [2, 0.8, 'A'], [3, 0.7]), found([2, 0.9, 'A'], [3, 0.8], [4, 0.7, 'B'])];
  const apart = { length: 100, acrossLists: true };
  assert.deepEqual(await rowsOf(select(outcomes, ALL, apart, slice)), [
    [1, 2, 3],
    [2, 3, 4],
  ]);
  assert.deepEqual(await rowsOf(select(outcomes, { ...ALL, deduplicate: 'passage' }, apart, slice)), [[1, 2, 3], [4]]);
  assert.deepEqual(await rowsOf(select(outcomes, { ...ALL, deduplicate: 'title' }, apart, slice)), [[1, 3], [4]]);
  assert.deepEqual(await rowsOf(select(outcomes, { ...ALL, deduplicate: 'title' }, APART, slice)), [
    [1, 3],
    [2, 3, 4],
  ]);
});

test('reciprocal rank fusion adds 1 / (60 + rank)', async () => {
  const lists = await select([found([1, 0.9], [2, 0.8]), found([2, 0.5], [3, 0.4])], ALL, APART, slice);
  const fused = await fuse(lists, 'rrf', { ...ALL, deduplicate: 'passage' }, slice);
  assert.deepEqual(
    fused.map(({ best, score }) => [best.hit.row, score]),
    [
      [2, 1 / 62 + 1 / 61],
      [1, 1 / 61],
      [3, 1 / 62],
    ],
  );
  assert.deepEqual(fused[0]!.from, [
    { query: 0, rank: 2, score: 0.8 },
    { query: 1, rank: 1, score: 0.5 },
  ]);
});

test('max fusion orders by the best score, equal scores by the lower row', async () => {
  const lists = await select([found([5, 0.9], [2, 0.8]), found([2, 0.95], [4, 0.9])], ALL, APART, slice);
  const fused = await fuse(lists, 'max', { ...ALL, k: 3 }, slice);
  assert.deepEqual(
    fused.map(({ best, score }) => [best.hit.row, score]),
    [
      [2, 0.95],
      [4, 0.9],
      [5, 0.9],
    ],
  );
});

test('passages with the same title are merged into the best; those without a title stay apart', async () => {
  const selection: Selection = { ...ALL, deduplicate: 'title' };
  const lists = await select([found([1, 0.5, 'A'], [7, 0.4]), found([2, 0.9, 'A'], [8, 0.4])], selection, APART, slice);
  const fused = await fuse(lists, 'rrf', selection, slice);
  assert.deepEqual(
    fused.map(({ best }) => best.hit.row),
    [2, 7, 8],
  );
});

test('the query of a fused hit is the one that found it, also if another has an equal score for a duplicate', async () => {
  const selection: Selection = { ...ALL, deduplicate: 'title' };
  const lists = await select(
    [found([1, 0.5, 'A']), found([0, 0.5, 'A']), found([0, 0.5, 'A'])],
    selection,
    APART,
    slice,
  );
  for (const fusion of ['rrf', 'max'] as const) {
    const [{ best, query, from } = assert.fail('no hit')] = await fuse(lists, fusion, selection, slice);
    assert.deepEqual([best.hit.row, query], [0, 1]);
    assert.deepEqual(
      from.map((each) => each.query),
      [0, 1, 2],
    );
  }
});

test('fusion does not depend on the order of the queries', async () => {
  const list = fc
    .uniqueArray(fc.integer({ min: 0, max: 12 }), { maxLength: 8 })
    .chain((rows) =>
      fc
        .array(fc.integer({ min: 0, max: 5 }), { minLength: rows.length, maxLength: rows.length })
        .map((scores) => rows.map((row, i): [number, number] => [row, scores[i]! / 5]).sort((a, b) => b[1] - a[1])),
    );
  await fc.assert(
    fc.asyncProperty(
      fc.array(list, { maxLength: 4 }),
      fc.constantFrom('rrf' as const, 'max' as const),
      async (lists, fusion) => {
        const order = async (each: typeof lists): Promise<number[]> => {
          const outcomes = each.map((hits) => found(...hits));
          const fused = await fuse(await select(outcomes, ALL, APART, slice), fusion, ALL, slice);
          return fused.map(({ best }) => best.hit.row);
        };
        const forwards = await order(lists);
        const backwards = await order([...lists].reverse());
        assert.equal(new Set(forwards).size, forwards.length);
        if (fusion === 'max') assert.deepEqual(backwards, forwards);
        assert.deepEqual([...backwards].sort(), [...forwards].sort());
      },
    ),
  );
});

test('fusing many lists yields to other requests, and stops if the client disconnects', async () => {
  const hits = Array.from({ length: 25 }, (_, i): [number, number] => [i, 1 - i / 100]);
  const outcomes = new Array<QueryOutcome>(4_000).fill(found(...hits));
  let iterations = 0;
  let working = true;
  const others = (): void => {
    iterations++;
    if (working) setImmediate(others);
  };
  setImmediate(others);
  await fuse(await select(outcomes, ALL, APART, slice), 'rrf', ALL, slice);
  working = false;
  assert.ok(iterations >= 10, `${iterations} iterations`);
  const controller = new AbortController();
  setImmediate(() => controller.abort());
  await assert.rejects(select(outcomes, ALL, APART, new TimeSlice(controller.signal)), { code: 'CANCELLED' });
});

test('an excerpt is the part with the most words of the query', () => {
  const filler = 'lorem ipsum dolor sit amet '.repeat(20);
  const text = `${filler}the bridge ${filler}The Brooklyn Bridge was designed by Roebling. ${filler}`;
  const result = excerpt(text, wordsOf('who designed the Brooklyn Bridge'), 80);
  assert.match(result.text, /^….*Brooklyn Bridge was designed.*…$/);
  assert.ok(result.text.length <= 80 && !result.whole);
  assert.deepEqual(excerpt('short', wordsOf('x'), 20), { text: 'short', whole: true });
  assert.match(excerpt(text, wordsOf('nothing of it'), 40).text, /^lorem ipsum.*…$/);
  assert.match(excerpt(`${filler}end`, wordsOf('end'), 40).text, /^….* end$/);
});

test('an excerpt of millions of letters beyond U+FFFF without a space is shortened like any other', () => {
  const { text, whole } = excerpt('\u{10437}'.repeat(6_000_000), wordsOf('\u{10437}'.repeat(6_000_000)), 80);
  assert.equal(whole, false);
  assert.ok(text.length <= 80);
});

test('an excerpt is never longer than requested, is part of the text, and splits no character', () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom('bridge', 'a', '💧', '💧💧💧💧💧💧💧💧', ' ', '\n', '漢字', 'Ω', 'x'.repeat(40)), {
        maxLength: 40,
      }),
      fc.constantFrom('bridge', '漢字', '💧', 'none', ''),
      fc.integer({ min: 20, max: 120 }),
      (parts, query, maxChars) => {
        const text = parts.join('');
        const result = excerpt(text, wordsOf(query), maxChars);
        assert.ok(result.text.length <= maxChars);
        assert.equal(Buffer.from(result.text).toString(), result.text);
        assert.ok(text.includes(result.whole ? result.text : result.text.replace(/^…/, '').replace(/…$/, '')));
      },
    ),
    { numRuns: runs(500, 2_000) },
  );
});
