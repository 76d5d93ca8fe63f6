import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import type { LexicalIndex, LexicalRequest, LexicalResult } from '../../../src/engine/lexical/lexical-index.ts';
import type { QueryOutcome } from '../../../src/search/calls/query-outcome.ts';
import { IndexRetriever, type ServingOptions } from '../../../src/search/index-retriever.ts';
import { AnswerCache } from '../../../src/search/layers/answer-cache.ts';
import { pyseriniScores } from '../../../src/search/lexical/pyserini-search.ts';
import type { OpenRetriever } from '../../../src/search/retriever.ts';
import type { Bm25Order } from '../../../src/search/search-mode.ts';
import { FakeRetriever } from '../../helpers/fake-retriever.ts';
import { oneField } from '../../helpers/one-field.ts';
import { runs } from '../../helpers/runs.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { FakeStore } from '../fakes.ts';

/** An inverted index that finds every row with a score, whatever the query. It records the depths of its searches. */
class ScoredRows implements LexicalIndex {
  readonly analyser = 'english';
  readonly counts = { documents: 1, tokens: 1 };
  readonly mappedBytes = 0;
  readonly depths: number[] = [];
  readonly rows: number;
  readonly #sorted: readonly { row: number; score: number }[];

  constructor(scores: readonly number[]) {
    this.rows = scores.length;
    this.#sorted = scores.map((score, row) => ({ row, score })).sort((a, b) => b.score - a.score || a.row - b.row);
  }

  async search({ queries, k }: LexicalRequest): Promise<LexicalResult> {
    this.depths.push(k);
    const found = this.#sorted.slice(0, k);
    const rows = new Float64Array(queries.length * k).fill(-1);
    const scores = new Float32Array(queries.length * k);
    for (const q of queries.keys()) {
      for (const [i, { row, score }] of found.entries()) [rows[q * k + i], scores[q * k + i]] = [row, score];
    }
    const counts = new Uint32Array(queries.length).fill(found.length);
    const zeros = new Float64Array(queries.length);
    return { counts, rows, scores, terms: new Uint32Array(queries.length), postings: zeros, postingsRead: zeros };
  }

  async explain(): Promise<never> {
    throw new Error('not used');
  }

  async close(): Promise<void> {}
}

function assemble(scores: readonly number[], documents: readonly string[], options: ServingOptions = {}) {
  const lexical = new ScoredRows(scores);
  const passages = new FakeStore([], { rows: documents.length, document: (row) => documents[row]! });
  const info = { ...new FakeRetriever().info, rows: documents.length, modes: ['bm25'] as const };
  return { lexical, passages, retriever: new IndexRetriever(info, { lexical: oneField(lexical), passages }, options) };
}

async function search(
  retriever: OpenRetriever,
  k: number,
  { order = 'pyserini', queries = ['q'] }: { order?: Bm25Order; queries?: readonly string[] } = {},
): Promise<readonly QueryOutcome[]> {
  return (await retriever.retrieve({ queries, k, mode: 'bm25', bm25Order: order })).outcomes;
}

function hitsOf(outcome: QueryOutcome): (readonly [row: number, score: number])[] {
  assert.ok(outcome.ok, outcome.ok ? '' : outcome.error.message);
  return outcome.hits.map(({ row, score }) => [row, score]);
}

/** All rows sorted, cut and altered, step by step with float32 arrays. The rounding is in float64. */
function naive(scores: readonly number[], ids: readonly (string | null)[], k: number): [number, number][] {
  const bytes = ids.map((id) => (id === null ? null : Buffer.from(id)));
  const order = scores.map((_, row) => row);
  order.sort((a, b) => {
    if (scores[a] !== scores[b]) return scores[b]! - scores[a]!;
    const [idA, idB] = [bytes[a]!, bytes[b]!];
    if (idA === null || idB === null) return idA === idB ? a - b : idA === null ? -1 : 1;
    return Buffer.compare(idA, idB) || a - b;
  });
  const [f32, one] = [Float32Array.of(0, 0, 0), Float32Array.of(1e-4, 1e-6)];
  const altered: [number, number][] = [];
  let run = 0;
  for (const row of order.slice(0, k)) {
    f32[0] = Math.floor(scores[row]! * 10_000 + 0.5) / 10_000;
    const last = altered.at(-1);
    f32[1] = last === undefined ? 1 : last[1] - f32[0]!;
    run = f32[1]! > one[0]! ? 0 : run + 1;
    f32[2] = one[1]! * run;
    if (run > 0) f32[0] = f32[0]! - f32[2]!;
    altered.push([row, f32[0]!]);
  }
  return altered;
}

/** Ids that sort differently by bytes, by UTF-16 units and as numbers. */
const ids = fc.oneof(
  fc.integer({ min: 0, max: 120 }).map(String),
  fc.constantFrom(
    'a',
    'ab',
    'B',
    '',
    'é',
    '\uffee',
    '\u{1f600}',
    '\u{10000}',
    'a\uffee',
    'a\u{1f600}',
    '￿',
    '10 ',
    '1',
  ),
  fc.string({ unit: 'grapheme', maxLength: 3 }),
  fc.constant(null),
);
/** Few values, so that ties are many; some differ only below the fourth decimal. */
const scores = fc.constantFrom(
  1,
  1.00002,
  1.00004,
  1.00011,
  2.5,
  2.50005,
  7.123456,
  22.08743,
  22.08744,
  300.0001,
  0.00003,
);

test('rows, order and scores are those of sorting all rows by score and the bytes of the id', async () => {
  const passages = fc.array(fc.record({ id: ids, score: scores }), { minLength: 1, maxLength: 300 });
  await fc.assert(
    fc.asyncProperty(passages, fc.integer({ min: 1, max: 60 }), async (list, k) => {
      const exact = list.map(({ score }) => Math.fround(score));
      const documents = list.map(({ id }) => JSON.stringify({ id, contents: 'x' }));
      const { retriever } = assemble(exact, documents);
      const [outcome] = await search(retriever, k);
      assert.deepEqual(
        hitsOf(outcome!),
        naive(
          exact,
          list.map(({ id }) => id),
          k,
        ),
      );
    }),
    { numRuns: runs(100, 300) },
  );
});

test('a tie at the cut is compared to its end, however long it is', async () => {
  const rows = 3_000;
  const exact = Array.from({ length: rows }, (_, row) => (row < 2 ? 9 - row : row < 2_900 ? 5 : 1));
  const documents = exact.map((_, row) => JSON.stringify({ id: rows - row, contents: 'x' }));
  const { lexical, retriever } = assemble(exact, documents);
  for (const k of [1, 2, 3, 5, 40]) {
    lexical.depths.length = 0;
    const [outcome] = await search(retriever, k);
    const expected = naive(
      exact,
      exact.map((_, row) => String(rows - row)),
      k,
    );
    assert.deepEqual(hitsOf(outcome!), expected);
    assert.deepEqual(lexical.depths.length > 1, k > 2, `${k}: ${lexical.depths}`);
  }
});

test('a tie of more than 100,000 passages fails its query alone, with the way out', async () => {
  const rows = 100_200;
  const documents = Array.from({ length: rows }, (_, row) => `{"id":${row},"contents":"x"}`);
  const { retriever } = assemble(new Array(rows).fill(1), documents);
  const [outcome] = await search(retriever, 10);
  assert.ok(outcome?.ok === false);
  assert.equal(outcome.error.code, 'NOT_SUPPORTED');
  assert.match(outcome.error.message, /More than 100000 passages have the score of hit 10.*order row/);
  assert.equal(hitsOf((await search(retriever, 10, { order: 'row' }))[0]!).length, 10);
});

test('the id of each passage of a long tie is parsed once', async (t) => {
  const rows = 5_000;
  const documents = Array.from({ length: rows }, (_, row) => `{"id":${(row * 7) % rows},"contents":"x"}`);
  const { retriever } = assemble(new Array(rows).fill(1), documents);
  const parse = t.mock.method(JSON, 'parse');
  const [outcome] = await search(retriever, 500);
  const parsed = parse.mock.calls.filter(({ arguments: [text] }) => String(text).includes('contents')).length;
  assert.equal(parsed, rows);
  assert.equal(hitsOf(outcome!).length, 500);
});

test('long ties are compared one after another, and one that waits ends with its request', async () => {
  const rows = 3_000;
  const documents = Array.from({ length: rows }, (_, row) => `{"id":${row},"contents":"x"}`);
  const { lexical, retriever, passages } = assemble(new Array(rows).fill(1), documents, { singleFlight: false });
  let running = 0;
  let most = 0;
  const getMany = passages.getMany.bind(passages);
  passages.getMany = async (wanted: ArrayLike<number>): Promise<string[]> => {
    if (wanted.length > 0) {
      most = Math.max(most, ++running);
      await setImmediate();
      running--;
    }
    return getMany(wanted);
  };
  const controller = new AbortController();
  const call = { queries: ['q'], k: 10, mode: 'bm25', bm25Order: 'pyserini' } as const;
  const all = Array.from({ length: 4 }, () => retriever.retrieve(call));
  const waiting = retriever.retrieve({ ...call, signal: controller.signal });
  controller.abort();
  await assert.rejects(waiting, trawlError('CANCELLED'));
  const outcomes = (await Promise.all(all)).map((result) => result.outcomes[0]!);
  for (const outcome of outcomes) assert.equal(hitsOf(outcome).length, 10);
  assert.equal(most, 1);
  // The first search of each, and three deeper ones of the four that were not cancelled.
  assert.equal(lexical.depths.length, 5 + 4 * 4);
});

test('every query of a call has its own ties', async () => {
  const exact = Array.from({ length: 100 }, (_, row) => (row < 90 ? 2 : 1));
  const documents = exact.map((_, row) => `{"id":"${row}","contents":"x"}`);
  const { retriever } = assemble(exact, documents, { singleFlight: false });
  const outcomes = await search(retriever, 4, { queries: ['a', 'b', 'c'] });
  const expected = naive(
    exact,
    exact.map((_, row) => String(row)),
    4,
  );
  assert.deepEqual(outcomes.map(hitsOf), [expected, expected, expected]);
});

test('answers in the two orders are cached apart, and one for more hits serves for fewer', async () => {
  const exact = [3, 3, 3, 2, 2, 1].map(Math.fround);
  const documents = ['20', '3', '100', 'b', 'a', 'x'].map((id) => `{"id":"${id}","contents":"x"}`);
  const { lexical, retriever } = assemble(exact, documents, { answerCache: new AnswerCache(1e6) });
  const rows = async (k: number, order: Bm25Order): Promise<number[]> =>
    hitsOf((await search(retriever, k, { order }))[0]!).map(([row]) => row);
  assert.deepEqual(await rows(5, 'row'), [0, 1, 2, 3, 4]);
  assert.deepEqual(await rows(5, 'pyserini'), [2, 0, 1, 4, 3]);
  lexical.depths.length = 0;
  assert.deepEqual(await rows(2, 'row'), [0, 1]);
  assert.deepEqual(await rows(2, 'pyserini'), [2, 0]);
  assert.deepEqual(await rows(4, 'pyserini'), [2, 0, 1, 4]);
  assert.deepEqual(lexical.depths, []);
});

test('scores are those that Pyserini 1.6.0 reported for passages with these exact scores', () => {
  const reported = [
    0.017999999225139618, 0.01799899898469448, 0.017997998744249344, 0.017996998503804207, 0.01799600012600422,
    0.017994999885559082, 0.017993999645113945, 0.017992999404668808, 0.01799199916422367, 0.017990998923778534,
    0.017100000753998756, 0.01709900051355362, 0.017098000273108482, 0.017097000032663345,
  ];
  const exact = [...new Array(10).fill(0.017967427149415016), ...new Array(4).fill(0.01711633801460266)];
  assert.deepEqual(pyseriniScores(exact), reported);
  assert.deepEqual(pyseriniScores([]), []);
  // In float32, the product with 10,000 would round up to 78,544.5.
  assert.deepEqual(pyseriniScores([Math.fround(7.85444974899292)]), [Math.fround(7.8544)]);
});
