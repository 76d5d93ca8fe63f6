import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setImmediate as nextIteration } from 'node:timers/promises';
import fc from 'fast-check';
import { TrawlError } from '../../../src/base/errors.ts';
import { DEFAULT_BM25 } from '../../../src/engine/lexical/bm25.ts';
import type { LexicalQuery } from '../../../src/engine/lexical/lexical-query.ts';
import { loadKernel } from '../../../src/engine/native/kernel.ts';
import { RowBitmap } from '../../../src/engine/row-bitmap.ts';
import type { Hit, QueryOutcome } from '../../../src/search/calls/query-outcome.ts';
import { isEmbedded, type RetrieveCall, type RetrieveResult } from '../../../src/search/calls/retrieve-call.ts';
import { retrieveDeepening } from '../../../src/search/deepening.ts';
import { GroupRetriever } from '../../../src/search/group/group-retriever.ts';
import { openRetriever } from '../../../src/search/opening/open-retriever.ts';
import type { OpenRetriever, Retriever } from '../../../src/search/retriever.ts';
import type { RetrieverInfo } from '../../../src/search/retriever-info.ts';
import type { SearchMode } from '../../../src/search/search-mode.ts';
import { fileFolder, runTrawl } from '../../cli/run-trawl.ts';
import { FakeRetriever, type FakeRetrieverOptions } from '../../helpers/fake-retriever.ts';
import { runs } from '../../helpers/runs.ts';
import { seededRandom } from '../../helpers/seeded-random.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { build, writeCorpus } from '../../indexer/build.ts';
import { FakeTextEncoder } from '../../indexer/fake-text-encoder.ts';

/** An index whose row r has the score `scores[r]` for every query, in every mode. */
class ScoredIndex extends FakeRetriever {
  override readonly info: RetrieverInfo;
  readonly #scores: readonly number[];

  constructor(index: string, scores: readonly number[], options: FakeRetrieverOptions & { model?: string } = {}) {
    const documents = scores.map((_, row) => JSON.stringify({ id: `${index}-${row}`, text: 'x' }));
    super({ ...options, index, documents });
    const { info } = new FakeRetriever({ index, documents });
    const model = {
      ...info.model!,
      name: options.model ?? 'e',
      sha256: (options.model ?? 'e').repeat(64).slice(0, 64),
    };
    this.info = { ...info, model, modes: ['dense', 'bm25'], generation: options.generation ?? 'g' };
    this.#scores = scores.map(Math.fround);
  }

  override async retrieve(call: RetrieveCall): Promise<RetrieveResult> {
    const { outcomes, timings } = await super.retrieve(call);
    const hits = this.#scores
      .map(
        (score, row): Hit => ({ row, score, document: JSON.stringify({ id: `${this.info.index}-${row}`, text: 'x' }) }),
      )
      .sort((a, b) => b.score - a.score || a.row - b.row)
      .slice(0, call.k);
    return { outcomes: outcomes.map((outcome) => (outcome.ok ? { ...outcome, hits } : outcome)), timings };
  }
}

function failing(index: string, error = new TrawlError('ENCODING_FAILED', 'broken')): ScoredIndex {
  return new ScoredIndex(index, [1, 2], {
    before() {
      throw error;
    },
  });
}

function hitsOf(outcome: QueryOutcome | undefined): readonly Hit[] {
  assert.ok(outcome?.ok);
  return outcome.hits;
}

const places = (hits: readonly Hit[]): unknown[] => hits.map(({ source }) => [source!.index, source!.row]);

const scoreLists = fc.array(fc.array(fc.integer({ min: 0, max: 6 }), { maxLength: 12 }), {
  minLength: 1,
  maxLength: 4,
});

test('vectors of one encoder: the merged list is the naive sort of all rows by score, index and row', async () => {
  await fc.assert(
    fc.asyncProperty(scoreLists, fc.integer({ min: 1, max: 30 }), async (lists, k) => {
      const group = new GroupRetriever(
        'all',
        lists.map((scores, i) => new ScoredIndex(`i${i}`, scores)),
      );
      const { outcomes } = await group.retrieve({ queries: ['a', 'b'], k, mode: 'dense' });
      let firstRow = 0;
      const rows = lists.flatMap((scores, i) => {
        const all = scores.map((score, row) => ({
          row: firstRow + row,
          score,
          source: { index: `i${i}`, row, score },
        }));
        firstRow += scores.length;
        return all;
      });
      const expected = rows.sort((a, b) => b.score - a.score || a.row - b.row).slice(0, k);
      for (const outcome of outcomes) {
        assert.deepEqual(
          hitsOf(outcome).map(({ document: _, ...hit }) => hit),
          expected,
        );
      }
    }),
    { numRuns: 200 },
  );
});

test('BM25, and vectors of different encoders: the lists are fused by rank, equal ranks in the order of the indexes', async () => {
  await fc.assert(
    fc.asyncProperty(
      scoreLists,
      fc.integer({ min: 1, max: 30 }),
      fc.constantFrom<SearchMode>('dense', 'bm25'),
      async (lists, k, mode) => {
        const models = mode === 'dense' && lists.length > 1 ? ['a', 'b', 'a', 'c'] : ['a', 'a', 'a', 'a'];
        const indexes = lists.map((scores, i) => new ScoredIndex(`i${i}`, scores, { model: models[i]! }));
        const { outcomes } = await new GroupRetriever('all', indexes).retrieve({ queries: ['a'], k, mode });
        const ranked = lists.map((scores) =>
          scores.map((score, row) => ({ score, row })).sort((a, b) => b.score - a.score || a.row - b.row),
        );
        const byRank =
          mode === 'dense' && lists.length === 1
            ? ranked[0]!.map(({ row }) => ['i0', row])
            : Array.from({ length: 12 }, (_, rank) => rank).flatMap((rank) =>
                ranked.flatMap((list, i) => (list[rank] === undefined ? [] : [[`i${i}`, list[rank].row]])),
              );
        assert.deepEqual(places(hitsOf(outcomes[0])), byRank.slice(0, k));
        if (mode === 'bm25') {
          const scores = hitsOf(outcomes[0]).map(({ score }) => score);
          assert.ok(scores.every((score, i) => i === 0 || score <= scores[i - 1]!));
        }
      },
    ),
    { numRuns: 200 },
  );
});

test('indexes with the same encoder embed a query once; others embed it themselves', async () => {
  const [a, b, other] = [
    new ScoredIndex('a', [1]),
    new ScoredIndex('b', [1]),
    new ScoredIndex('c', [1], { model: 'f' }),
  ];
  const { outcomes } = await new GroupRetriever('all', [a, b, other]).retrieve({ queries: ['x'], k: 1 });
  assert.deepEqual(
    [a, b, other].map(({ calls }) => calls.map(({ queries }) => isEmbedded(queries[0]!))),
    [[false], [true], [false]],
  );
  // A vector for all three does not exist.
  assert.ok(outcomes[0]?.ok === true && outcomes[0].vector === null);
});

test('deepening a group goes through all rows of all indexes and embeds only once', async () => {
  const indexes = [new ScoredIndex('a', [9, 7, 5, 3, 1]), new ScoredIndex('b', [8, 6, 4, 2])];
  const group = new GroupRetriever('all', indexes);
  const { outcomes } = await retrieveDeepening(
    group,
    { queries: ['x'], k: 1 },
    { maxK: 100, needMore: async ([outcome]) => (hitsOf(outcome).length < 9 ? [0] : []) },
  );
  assert.deepEqual(
    hitsOf(outcomes[0]).map(({ score }) => score),
    [9, 8, 7, 6, 5, 4, 3, 2, 1],
  );
  const texts = indexes.flatMap(({ calls }) =>
    calls.flatMap(({ queries }) => queries.filter((query) => !isEmbedded(query))),
  );
  assert.deepEqual(texts, ['x']);
});

test('an index that fails fails the call with its name, and the other searches are cancelled', async () => {
  let aborted = false;
  const slow = new ScoredIndex('slow', [1], {
    model: 'f',
    before: ({ signal }) =>
      new Promise((_, reject) => {
        signal!.addEventListener('abort', () => {
          aborted = true;
          reject(new TrawlError('CANCELLED', 'aborted'));
        });
      }),
  });
  const group = new GroupRetriever('all', [slow, failing('bad')]);
  await assert.rejects(group.retrieve({ queries: ['x'], k: 1 }), (error: TrawlError) => {
    assert.deepEqual([error.code, error.message, error.details.index], ['ENCODING_FAILED', 'Index bad: broken', 'bad']);
    return true;
  });
  assert.ok(aborted);
});

test('with allowPartial the other indexes answer, and each answer names the index that failed', async () => {
  // The failing index is the first of its encoder: the other one embeds the query itself.
  const group = new GroupRetriever('all', [failing('bad'), new ScoredIndex('good', [1, 2])]);
  const { outcomes } = await group.retrieve({ queries: ['x', 'y'], k: 5, allowPartial: true });
  for (const outcome of outcomes) {
    assert.ok(outcome.ok);
    assert.deepEqual(places(outcome.hits), [
      ['good', 1],
      ['good', 0],
    ]);
    assert.deepEqual(
      outcome.failedIndexes!.map(({ index, error }) => [index, error.code]),
      [['bad', 'ENCODING_FAILED']],
    );
  }
  await assert.rejects(
    new GroupRetriever('all', [failing('a'), failing('b')]).retrieve({ queries: ['x'], k: 1, allowPartial: true }),
    trawlError('ENCODING_FAILED'),
  );
});

test('a query that fails in one index fails alone, or with allowPartial has the hits of the other', async () => {
  const error = new TrawlError('ENCODING_FAILED', 'cannot encode');
  const half = new ScoredIndex('half', [1], {
    outcome: (input) => (input === 'bad' ? { ok: false, error } : undefined),
  });
  const group = new GroupRetriever('all', [half, new ScoredIndex('whole', [2])]);
  const strict = await group.retrieve({ queries: ['bad', 'x'], k: 5 });
  assert.deepEqual(
    strict.outcomes.map(({ ok }) => ok),
    [false, true],
  );
  const [partial] = (await group.retrieve({ queries: ['bad'], k: 5, allowPartial: true })).outcomes;
  assert.deepEqual(places(hitsOf(partial)), [['whole', 0]]);
});

test('a client that leaves cancels the call, also with allowPartial', async () => {
  const controller = new AbortController();
  const waiting = new ScoredIndex('a', [1], {
    before: ({ signal }) =>
      new Promise((_, reject) => signal!.addEventListener('abort', () => reject(new TrawlError('CANCELLED', 'left')))),
  });
  const group = new GroupRetriever('all', [waiting, new ScoredIndex('b', [1])]);
  const running = group.retrieve({ queries: ['x'], k: 1, allowPartial: true, signal: controller.signal });
  controller.abort();
  await assert.rejects(running, trawlError('CANCELLED'));
});

test('rows of the group belong to one index each, in look-ups and explanations too', async () => {
  const [a, b] = [new ScoredIndex('a', [1, 2]), new ScoredIndex('b', [3])];
  const group = new GroupRetriever('all', [a, b]);
  const { found } = await group.find({ by: 'row', keys: ['0', '2', '3', 'x'], limit: 5 });
  assert.deepEqual(
    found.map((passages) => passages.map(({ row, source }) => [row, source])),
    [[[0, { index: 'a', row: 0 }]], [[2, { index: 'b', row: 0 }]], [], []],
  );
  assert.deepEqual((await group.find({ by: 'id', keys: ['b-0'], limit: 5 })).found[0]![0]!.row, 2);
  const asked: unknown[] = [];
  for (const index of [a, b]) {
    const explain = index.explain.bind(index);
    index.explain = (call) => {
      asked.push([index.info.index, call.queries.map(({ rows }) => rows)]);
      return explain(call);
    };
  }
  const { explained } = await group.explain({
    queries: [
      { query: 'x', rows: [2, 0] },
      { query: 'y', rows: [1] },
    ],
  });
  assert.deepEqual(asked, [
    ['a', [[0], [1]]],
    ['b', [[0], []]],
  ]);
  assert.deepEqual(
    explained.map((lists) => lists.map(([term]) => term!.term)),
    [['x', 'x'], ['y']],
  );
});

test('the indexes of a group explain at the same time, and an error names its index', async () => {
  const [a, b] = [new ScoredIndex('a', [1]), new ScoredIndex('b', [2])];
  const group = new GroupRetriever('all', [a, b]);
  const queries = [{ query: 'x', rows: [0, 1] }];
  const events: string[] = [];
  for (const index of [a, b]) {
    const explain = index.explain.bind(index);
    index.explain = async (call) => {
      events.push('begin');
      await nextIteration();
      events.push('end');
      return explain(call);
    };
  }
  const { explained, timings } = await group.explain({ queries });
  assert.deepEqual(events, ['begin', 'begin', 'end', 'end']);
  assert.equal(explained[0]!.length, 2);
  // The time of the slower index, not the sum.
  assert.equal(timings.search, 0.5);
  b.explain = async () => {
    throw new TrawlError('ENCODING_FAILED', 'broken');
  };
  await assert.rejects(group.explain({ queries }), trawlError('ENCODING_FAILED', /^Index b: broken$/));
});

test('a group has the modes that all its indexes have, and refuses a search if there are none', async () => {
  const dense = new FakeRetriever({ index: 'dense' });
  const words = new ScoredIndex('words', [1]);
  assert.deepEqual(new GroupRetriever('all', [words, dense]).info.modes, ['dense']);
  const onlyWords = Object.assign(new FakeRetriever(), { info: { ...words.info, index: 'only', modes: ['bm25'] } });
  await assert.rejects(
    new GroupRetriever('g', [dense, onlyWords]).retrieve({ queries: ['x'], k: 1 }),
    (error: TrawlError) => {
      assert.equal(error.code, 'NOT_SUPPORTED');
      assert.match(error.message, /dense has dense, only has bm25/);
      return true;
    },
  );
});

test('another generation of one index is another generation of the group', () => {
  const generation = (g: string) =>
    new GroupRetriever('all', [new ScoredIndex('a', [1]), new ScoredIndex('b', [1], { generation: g })]).info
      .generation;
  assert.equal(generation('1'), generation('1'));
  assert.notEqual(generation('1'), generation('2'));
});

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

/** The query has the score 1 + n / 2^32 for the text n: equal in float32, different in float64. */
class AlmostEqual extends FakeTextEncoder {
  override vectorOf(text: string): Float32Array {
    const vector = new Float32Array(this.dimension);
    vector.set(text === 'q' ? [1, 2 ** -12] : [1, Number(text) * 2 ** -20]);
    return vector;
  }
}

test('scores that are equal once they are rounded are merged in the order of one index, for every k', async (t) => {
  const encoder = new AlmostEqual();
  const rows = Array.from({ length: 60 }, (_, row) => ({ id: row, contents: String((row * 37) % 50) }));
  const open = async (name: string, some: typeof rows): Promise<OpenRetriever> => {
    const out = join(folder, name);
    await build({ corpus: writeCorpus(folder, { [`${name}.jsonl`]: some }), out, encoder });
    const retriever = await openRetriever(out, { encoder });
    t.after(() => retriever.close());
    return retriever;
  };
  const whole = await open('whole', rows);
  const group = new GroupRetriever('all', [
    await open('first', rows.slice(0, 20)),
    await open('second', rows.slice(20)),
  ]);
  const rowsFor = async (retriever: Retriever, k: number): Promise<number[]> => {
    const { outcomes } = await retriever.retrieve({ queries: ['q'], k, mode: 'dense' });
    const hits = hitsOf(outcomes[0]);
    assert.ok(hits.every(({ score }) => score === 1));
    return hits.map(({ row }) => row);
  };
  const all = await rowsFor(whole, 60);
  assert.notDeepEqual(
    all,
    all.toSorted((a, b) => a - b),
  );
  for (const k of [2, 20, 60]) assert.deepEqual(await rowsFor(group, k), all.slice(0, k));
});

test('given rows have the scores of their indexes, and an error names its index', async () => {
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
