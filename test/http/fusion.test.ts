import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { EventLoopTurn } from '../../src/http/event-loop-turn.ts';
import { excerpt } from '../../src/http/excerpt.ts';
import { fuse, type Selection, select } from '../../src/http/fusion.ts';
import type { QueryOutcome } from '../../src/retrieval/retriever.ts';

const ALL: Selection = { k: 100, minScore: null, excluded: new Set(), deduplicate: 'none' };
const APART = { length: 100, acrossLists: false };

/** An outcome of hits given as row, score and title. */
function found(...hits: readonly [row: number, score: number, title?: string][]): QueryOutcome {
  return {
    ok: true,
    hits: hits.map(([row, score, title]) => ({
      row,
      score,
      document: JSON.stringify({ id: `p${row}`, ...(title === undefined ? {} : { title }), text: 'words' }),
    })),
    tokens: 1,
    truncated: false,
    text: '',
    cut: 'nothing',
    certificate: { exact: true, rescored: null },
  };
}

const turn = new EventLoopTurn(new AbortController().signal);
const rowsOf = async (lists: ReturnType<typeof select>): Promise<number[][]> =>
  (await lists).map(({ candidates }) => candidates.map(({ hit }) => hit.row));

test('what is excluded by id or lies below the score is left out', async () => {
  const outcomes = [found([1, 0.9], [2, 0.8], [3, 0.7], [4, 0.6])];
  const selection = { ...ALL, excluded: new Set(['p2', 'none']), minScore: 0.65 };
  assert.deepEqual(await rowsOf(select(outcomes, selection, APART, turn)), [[1, 3]]);
  assert.deepEqual(await rowsOf(select(outcomes, ALL, { length: 2, acrossLists: false }, turn)), [[1, 2]]);
});

test('a passage or a title comes once in all lists, in the first that has it', async () => {
  const outcomes = [found([1, 0.9, 'A'], [2, 0.8, 'A'], [3, 0.7]), found([2, 0.9, 'A'], [3, 0.8], [4, 0.7, 'B'])];
  const apart = { length: 100, acrossLists: true };
  assert.deepEqual(await rowsOf(select(outcomes, ALL, apart, turn)), [
    [1, 2, 3],
    [2, 3, 4],
  ]);
  assert.deepEqual(await rowsOf(select(outcomes, { ...ALL, deduplicate: 'passage' }, apart, turn)), [[1, 2, 3], [4]]);
  assert.deepEqual(await rowsOf(select(outcomes, { ...ALL, deduplicate: 'title' }, apart, turn)), [[1, 3], [4]]);
  assert.deepEqual(await rowsOf(select(outcomes, { ...ALL, deduplicate: 'title' }, APART, turn)), [
    [1, 3],
    [2, 3, 4],
  ]);
});

test('reciprocal rank fusion adds 1 / (60 + rank)', async () => {
  const lists = await select([found([1, 0.9], [2, 0.8]), found([2, 0.5], [3, 0.4])], ALL, APART, turn);
  const fused = await fuse(lists, 'rrf', { ...ALL, deduplicate: 'passage' }, turn);
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

test('max fusion orders by the best score, equal ones by the lower row', async () => {
  const lists = await select([found([5, 0.9], [2, 0.8]), found([2, 0.95], [4, 0.9])], ALL, APART, turn);
  const fused = await fuse(lists, 'max', { ...ALL, k: 3 }, turn);
  assert.deepEqual(
    fused.map(({ best, score }) => [best.hit.row, score]),
    [
      [2, 0.95],
      [4, 0.9],
      [5, 0.9],
    ],
  );
});

test('passages of one title are fused into the best of them; those without a title stay apart', async () => {
  const selection: Selection = { ...ALL, deduplicate: 'title' };
  const lists = await select([found([1, 0.5, 'A'], [7, 0.4]), found([2, 0.9, 'A'], [8, 0.4])], selection, APART, turn);
  const fused = await fuse(lists, 'rrf', selection, turn);
  assert.deepEqual(
    fused.map(({ best }) => best.hit.row),
    [2, 7, 8],
  );
});

test('fusing is the same in any order of the queries', async () => {
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
          const fused = await fuse(await select(outcomes, ALL, APART, turn), fusion, ALL, turn);
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

test('others get their turn while many lists are fused, and a client that left ends it', async () => {
  const hits = Array.from({ length: 25 }, (_, i): [number, number] => [i, 1 - i / 100]);
  const outcomes = new Array<QueryOutcome>(4_000).fill(found(...hits));
  let turns = 0;
  let working = true;
  const others = (): void => {
    turns++;
    if (working) setImmediate(others);
  };
  setImmediate(others);
  await fuse(await select(outcomes, ALL, APART, turn), 'rrf', ALL, turn);
  working = false;
  assert.ok(turns >= 10, `${turns} turns`);
  const controller = new AbortController();
  setImmediate(() => controller.abort());
  await assert.rejects(select(outcomes, ALL, APART, new EventLoopTurn(controller.signal)), { code: 'CANCELLED' });
});

test('an excerpt shows where most words of the query stand together', () => {
  const filler = 'lorem ipsum dolor sit amet '.repeat(20);
  const text = `${filler}the bridge ${filler}The Brooklyn Bridge was designed by Roebling. ${filler}`;
  const cut = excerpt(text, 'who designed the Brooklyn Bridge', 80);
  assert.match(cut.text, /^….*Brooklyn Bridge was designed.*…$/);
  assert.ok(cut.text.length <= 80 && !cut.whole);
  assert.deepEqual(excerpt('short', 'x', 20), { text: 'short', whole: true });
  assert.match(excerpt(text, 'nothing of it', 40).text, /^lorem ipsum.*…$/);
  assert.match(excerpt(`${filler}end`, 'end', 40).text, /^….* end$/);
});

test('an excerpt is never longer than asked, is part of the text, and cuts no character in two', () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom('bridge', 'a', '💧', '💧💧💧💧💧💧💧💧', ' ', '\n', '漢字', 'Ω', 'x'.repeat(40)), {
        maxLength: 40,
      }),
      fc.constantFrom('bridge', '漢字', '💧', 'none', ''),
      fc.integer({ min: 20, max: 120 }),
      (parts, query, maxChars) => {
        const text = parts.join('');
        const cut = excerpt(text, query, maxChars);
        assert.ok(cut.text.length <= maxChars);
        assert.equal(Buffer.from(cut.text).toString(), cut.text);
        assert.ok(text.includes(cut.whole ? cut.text : cut.text.replace(/^…/, '').replace(/…$/, '')));
      },
    ),
    { numRuns: 2_000 },
  );
});
