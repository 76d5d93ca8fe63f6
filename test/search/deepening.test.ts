import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TrawlError } from '../../src/base/errors.ts';
import type { QueryAnswer, QueryOutcome } from '../../src/search/calls/query-outcome.ts';
import type { EmbeddedQuery, RetrieveCall } from '../../src/search/calls/retrieve-call.ts';
import { retrieveDeepening } from '../../src/search/deepening.ts';
import { IndexRetriever, type ServingOptions } from '../../src/search/index-retriever.ts';
import { AnswerCache } from '../../src/search/layers/answer-cache.ts';
import type { OpenRetriever } from '../../src/search/retriever.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { FakeEncoder, FakeIndex, FakeStore, type Log } from './fakes.ts';

const ROWS = 100;

function assemble(options: ServingOptions = {}): { log: Log; retriever: OpenRetriever } {
  const log: Log = [];
  const parts = {
    dense: {
      encoder: new FakeEncoder(log),
      index: new FakeIndex(log, { rows: ROWS, score: (query, row) => query - row / 10 }),
    },
    passages: new FakeStore(log, { rows: ROWS }),
  };
  return {
    log,
    retriever: new IndexRetriever({ ...new FakeRetriever().info, rows: ROWS, dimension: 1 }, parts, options),
  };
}

function answers(outcomes: readonly QueryOutcome[]): QueryAnswer[] {
  return outcomes.map((outcome) => {
    assert.ok(outcome.ok);
    return outcome;
  });
}

const rowsOf = (outcomes: readonly QueryOutcome[]): number[][] =>
  answers(outcomes).map(({ hits }) => hits.map(({ row }) => row));

/** Queries that have fewer hits than wanted, by position. */
const until =
  (...wanted: readonly number[]) =>
  async (outcomes: readonly QueryOutcome[]): Promise<number[]> =>
    answers(outcomes).flatMap(({ hits }, i) => (hits.length < wanted[i]! ? [i] : []));

const withoutFetches = (log: Log): Log => log.filter((line) => !line.startsWith('fetch'));

test('only the queries that need more hits are searched deeper, and none is embedded twice', async () => {
  const { retriever, log } = assemble();
  const { outcomes } = await retrieveDeepening(
    retriever,
    { queries: ['0', '1', '2'], k: 2 },
    { maxK: 50, needMore: until(2, 7, 30) },
  );
  assert.deepEqual(withoutFetches(log), ['encode 3', 'search 3 × 2', 'search 2 × 8', 'search 1 × 32']);
  assert.deepEqual(
    rowsOf(outcomes).map((rows) => [rows[0], rows.length]),
    [
      [0, 2],
      [1, 8],
      [2, 32],
    ],
  );
});

test('a deeper answer equals that of a single call for as many hits', async () => {
  const { retriever } = assemble();
  const deep = await retrieveDeepening(retriever, { queries: ['3 b…'], k: 1 }, { maxK: 9, needMore: until(9) });
  const { outcomes } = await assemble().retriever.retrieve({ queries: ['3 b…'], k: 9 });
  assert.deepEqual(deep.outcomes, outcomes);
});

test('a search ends at the limit, or when the index has no more rows', async () => {
  for (const [maxK, expected] of [
    [10, 10],
    [1_000, ROWS - 97],
  ] as const) {
    const { retriever, log } = assemble();
    const query = maxK === 10 ? '0' : '97';
    const { outcomes } = await retrieveDeepening(retriever, { queries: [query], k: 2 }, { maxK, needMore: until(500) });
    assert.equal(rowsOf(outcomes)[0]!.length, expected);
    assert.ok(log.length < 10, log.join());
  }
});

test('a query answered from the cache has no vector and is embedded once to go deeper', async () => {
  const { retriever, log } = assemble({ answerCache: new AnswerCache(1_000_000) });
  await retriever.retrieve({ queries: ['1'], k: 1 });
  log.splice(0);
  const call = { queries: ['1'], k: 1 };
  const { outcomes } = await retrieveDeepening(retriever, call, { maxK: 60, needMore: until(60) });
  assert.deepEqual(withoutFetches(log), ['encode 1', 'search 1 × 4', 'search 1 × 16', 'search 1 × 60']);
  assert.equal(rowsOf(outcomes)[0]!.length, 60);
  log.splice(0);
  await retrieveDeepening(retriever, call, { maxK: 60, needMore: until(60) });
  assert.deepEqual(log, [], 'the deeper answer is in the cache');
});

test('the statistics count a query once, however deep its search goes', async () => {
  for (const singleFlight of [true, false]) {
    const { retriever } = assemble({ singleFlight });
    await retrieveDeepening(retriever, { queries: ['0', '1'], k: 1 }, { maxK: 64, needMore: until(64, 64) });
    const { queries, computed, cached, coalesced } = retriever.statistics().sharing;
    assert.deepEqual([queries, computed, cached, coalesced], [2, 2, 0, 0]);
  }
});

test('the certificate counts the rows rescored by all searches', async () => {
  const inner = new FakeRetriever({ documents: Array.from({ length: 50 }, () => '{}') });
  const { outcomes } = await retrieveDeepening(inner, { queries: ['q'], k: 2 }, { maxK: 32, needMore: until(32) });
  assert.equal(answers(outcomes)[0]!.certificate.rescored, 2 + 8 + 32);
});

test('a query whose deeper search fails has the error instead of too few hits, and the others keep their answers', async () => {
  const { retriever } = assemble();
  const failing: OpenRetriever = Object.assign(Object.create(retriever) as OpenRetriever, {
    async retrieve(call: RetrieveCall) {
      const { outcomes, timings } = await retriever.retrieve(call);
      const error = new TrawlError('NOT_SUPPORTED', 'The tie is too long.', { details: { maxTied: 7 } });
      return { outcomes: call.k > 10 ? outcomes.map(() => ({ ok: false, error })) : outcomes, timings };
    },
  });
  const needMore = async (outcomes: readonly QueryOutcome[]): Promise<number[]> =>
    outcomes.flatMap((outcome, i) => (outcome.ok && outcome.hits.length < [2, 8, 30][i]! ? [i] : []));
  const { outcomes } = await retrieveDeepening(failing, { queries: ['0', '1', '2'], k: 2 }, { maxK: 50, needMore });
  assert.deepEqual(
    rowsOf(outcomes.slice(0, 2)).map((rows) => rows.length),
    [2, 8],
  );
  const failed = outcomes[2]!;
  assert.ok(!failed.ok);
  assert.ok(
    trawlError(
      'NOT_SUPPORTED',
      /^Too few of the first 2 hits are left .*, and the search for 32 hits failed: The tie is too long\.$/,
    )(failed.error),
  );
  assert.deepEqual(failed.error.details, { maxTied: 7 });
});

test('a deeper search of an accepted request is not refused under load', async () => {
  const { retriever } = assemble({ maxWaitingBytes: 1, singleFlight: false });
  const needMore = until(5);
  let others: Promise<unknown> | undefined;
  const { outcomes } = await retrieveDeepening(
    retriever,
    { queries: ['0'], k: 1 },
    {
      maxK: 5,
      needMore(found) {
        // The call that crosses the limit is accepted.
        others ??= retriever.retrieve({ queries: ['1'], k: 1 });
        return needMore(found);
      },
    },
  );
  await others;
  assert.equal(rowsOf(outcomes)[0]!.length, 5);
});

test('queries with and without a vector may be mixed in one call', async () => {
  const { retriever, log } = assemble();
  const [answer] = answers((await retriever.retrieve({ queries: ['3 x…'], k: 1 })).outcomes);
  const { tokens, truncated, text, cut, vector } = answer!;
  const embedding = { tokens, truncated, text, cut };
  const embedded: EmbeddedQuery = { input: '3 x…', truncate: 'tail', embedding, vector: vector! };
  log.splice(0);
  const { outcomes } = await retriever.retrieve({ queries: ['0', embedded, '1'], k: 2 });
  assert.deepEqual(withoutFetches(log), ['encode 2', 'search 3 × 2']);
  assert.deepEqual(rowsOf(outcomes), [
    [0, 1],
    [3, 4],
    [1, 2],
  ]);
  assert.deepEqual([answers(outcomes)[1]!.tokens, answers(outcomes)[1]!.truncated], [4, true]);
  await assert.rejects(
    retriever.retrieve({ queries: [{ ...embedded, vector: new Float32Array(2) }], k: 2 }),
    trawlError('DIMENSION_MISMATCH', /2 values.* 1 dimension/),
  );
});
