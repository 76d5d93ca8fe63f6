import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextIteration } from 'node:timers/promises';
import fc from 'fast-check';
import { encodeVector } from '../../../src/base/base64-vector.ts';
import { TrawlError } from '../../../src/base/errors.ts';
import type { EndpointRecord } from '../../../src/encoder/identity/endpoint-record.ts';
import type { Hit, QueryOutcome } from '../../../src/search/calls/query-outcome.ts';
import { isEmbedded, type RetrieveCall, type RetrieveResult } from '../../../src/search/calls/retrieve-call.ts';
import { retrieveDeepening } from '../../../src/search/deepening.ts';
import { embedAlike } from '../../../src/search/group/group-info.ts';
import { GroupRetriever } from '../../../src/search/group/group-retriever.ts';
import type { RetrieverInfo } from '../../../src/search/retriever-info.ts';
import type { SearchMode } from '../../../src/search/search-mode.ts';
import { FakeRetriever, type FakeRetrieverOptions } from '../../helpers/fake-retriever.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

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

test('indexes of endpoints have one encoder if their probes are alike, whatever the last bits', () => {
  const infoOf = (index: string, values: readonly number[]): RetrieverInfo => {
    const { info } = new FakeRetriever({ index, documents: ['{}'] });
    const vector = encodeVector(Float32Array.from(values));
    const endpoint: EndpointRecord = {
      api: 'openai',
      software: null,
      revision: null,
      requests: { query: {}, passage: {} },
      separator: null,
      overlong: 'unknown',
      probes: [{ name: 'query', inputType: 'query', text: 'a', vector, tokens: null }],
    };
    return { ...info, model: { ...info.model!, precision: null, sha256: index.repeat(64), endpoint } };
  };
  const model = infoOf('a', [1, 0]);
  assert.ok(embedAlike(model, infoOf('b', [1, 0.001])));
  assert.ok(!embedAlike(model, infoOf('b', [0, 1])));
  assert.ok(!embedAlike(model, new FakeRetriever({ index: 'c', documents: ['{}'] }).info));
  assert.ok(!embedAlike({ ...model, model: null }, { ...model, model: null }), 'without vectors');
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
