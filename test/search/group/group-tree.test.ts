import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { DEFAULT_BM25 } from '../../../src/engine/lexical/bm25.ts';
import type { LexicalQuery } from '../../../src/engine/lexical/lexical-query.ts';
import { loadKernel } from '../../../src/engine/native/kernel.ts';
import { RowBitmap } from '../../../src/engine/row-bitmap.ts';
import { GroupRetriever } from '../../../src/search/group/group-retriever.ts';
import { openRetriever } from '../../../src/search/opening/open-retriever.ts';
import type { OpenRetriever } from '../../../src/search/retriever.ts';
import { fileFolder, runTrawl } from '../../cli/run-trawl.ts';
import { FakeRetriever } from '../../helpers/fake-retriever.ts';
import { runs } from '../../helpers/runs.ts';
import { seededRandom } from '../../helpers/seeded-random.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

const WORDS = ['river', 'bridge', 'stone', 'old', 'danube', 'vienna'];

const loaded = loadKernel();
const skip = loaded.ok ? false : `the native engine is not built: ${loaded.reason}`;
const folder = await fileFolder();

test('a query tree over several indexes gives the hits of each, merged by score, with sets of rows of the group', {
  skip,
}, async (t) => {
  const random = seededRandom(11);
  const passages = (count: number) =>
    Array.from({ length: count }, (_, row) => ({
      id: `p${row}`,
      text: Array.from(
        { length: 1 + Math.floor(random() * 8) },
        () => WORDS[Math.floor(random() * WORDS.length)]!,
      ).join(' '),
    }));
  const sizes = [40, 25, 60];
  const members: OpenRetriever[] = [];
  for (const [i, size] of sizes.entries()) {
    const corpus = join(folder, `corpus-${i}.jsonl`);
    writeFileSync(
      corpus,
      passages(size)
        .map((passage) => JSON.stringify(passage))
        .join('\n'),
    );
    const out = join(folder, `i${i}`);
    assert.equal((await runTrawl(['index', corpus, '--bm25', '--out', out, '--quiet'])).code, 0);
    members.push(await openRetriever(out));
  }
  t.after(() => Promise.all(members.map((member) => member.close())));
  const group = new GroupRetriever('all', members);
  const { rows } = group.info;
  const firstRows = [0, 40, 65];
  const leaf = fc.constantFrom(...WORDS).map((text): LexicalQuery => ({ type: 'match', field: 'contents', text }));
  const rowSet = fc.uniqueArray(fc.nat(rows - 1), { maxLength: 60 });
  await fc.assert(
    fc.asyncProperty(
      leaf,
      leaf,
      rowSet,
      fc.nat(10),
      fc.nat(20),
      fc.integer({ min: 1, max: 150 }),
      async (one, other, chosen, from, size, count) => {
        const set = new RowBitmap(rows);
        for (const row of chosen) set.add(row);
        const tree = (own: RowBitmap): LexicalQuery => ({
          type: 'bool',
          must: [{ type: 'dis-max', queries: [one, { type: 'constant-score', query: other }] }],
          mustNot: [{ type: 'rows', rows: own }],
        });
        const call = { parameters: DEFAULT_BM25, from: 0, size: 1_000, count: 1_000 };
        const expected = [];
        for (const [i, member] of members.entries()) {
          const own = new RowBitmap(sizes[i]!);
          for (const row of chosen)
            if (row >= firstRows[i]! && row < firstRows[i]! + sizes[i]!) own.add(row - firstRows[i]!);
          const { hits } = await member.searchTree({ ...call, query: tree(own) });
          expected.push(...hits.map(({ row, score }) => [firstRows[i]! + row, score] as const));
        }
        expected.sort(([a, x], [b, y]) => y - x || a - b);
        const found = await group.searchTree({ ...call, query: tree(set), from, size, count });
        assert.deepEqual(
          found.hits.map(({ row, score }) => [row, score]),
          expected.slice(from, from + size),
        );
        assert.equal(found.best, expected[0]?.[1] ?? null);
        assert.equal(Math.min(found.total, count + 1), Math.min(expected.length, count + 1));
        const order = [
          { by: 'score', descending: true },
          { by: 'row', descending: true },
        ] as const;
        const ordered = { ...call, query: tree(set), from, size, order };
        const sorted = expected.toSorted(([a, x], [b, y]) => y - x || b - a);
        const { hits } = await group.searchTree(ordered);
        assert.deepEqual(
          hits.map(({ row, score }) => [row, score]),
          sorted.slice(from, from + size),
        );
        const last = hits.at(-1)?.orderValues;
        if (last !== undefined) {
          const next = await group.searchTree({ ...ordered, from: 0, after: last });
          assert.deepEqual(
            next.hits.map(({ row }) => row),
            sorted.slice(from + size, from + 2 * size).map(([row]) => row),
          );
        }
        const scores = Float32Array.from(
          chosen.toSorted((a, b) => a - b),
          (row) => row % 7,
        );
        const scored = await group.searchTree({ ...call, query: { type: 'rows', rows: set, scores } });
        assert.deepEqual(
          scored.hits.map(({ row, score }) => [row, score]),
          chosen.map((row) => [row, row % 7] as const).sort(([a, x], [b, y]) => y - x || a - b),
        );
        assert.deepEqual(
          [...(await group.select({ query: tree(set) }))],
          expected.map(([row]) => row).sort((a, b) => a - b),
        );
        for (const { row, source } of found.hits)
          assert.equal(firstRows[Number(source!.index.slice(1))]! + source!.row, row);
      },
    ),
    { numRuns: runs(20, 60), seed: 5 },
  );
});

test('scores of given rows are those of their indexes, and the error of one index names it', async () => {
  const [a, b] = [new FakeRetriever({ index: 'a' }), new FakeRetriever({ index: 'b' })];
  const group = new GroupRetriever('ab', [a, b]);
  const queries = [
    { query: 'x', rows: [7, 0, 2] },
    { query: 'y', rows: [6] },
    { query: 'z', rows: [] },
  ];
  const { outcomes } = await group.score({ queries, mode: 'dense', maxRank: 100 });
  const own = async (index: FakeRetriever, query: string, row: number) =>
    (await index.score({ queries: [{ query, rows: [row] }], mode: 'dense', maxRank: 100 })).outcomes[0];
  for (const [q, at, index, row] of [
    [0, 0, b, 2],
    [0, 1, a, 0],
    [0, 2, a, 2],
    [1, 0, b, 1],
  ] as const) {
    const outcome = outcomes[q]!;
    const alone = await own(index, queries[q]!.query, row);
    assert.ok(outcome.ok && alone?.ok);
    assert.deepEqual(outcome.scores[at], alone.scores[0]);
  }
  assert.deepEqual(outcomes[2], { ok: true, scores: [] });
  await assert.rejects(
    group.searchTree({ query: { type: 'match-all' }, parameters: DEFAULT_BM25, from: 0, size: 1, count: 1 }),
    trawlError('NOT_SUPPORTED', /^Index a: /),
  );
  await assert.rejects(group.select({ ids: ['1'] }), trawlError('NOT_SUPPORTED', /^Index a: /));
});
