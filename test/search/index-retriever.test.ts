import { test } from 'node:test';
import { TrawlError } from '../../src/base/errors.ts';
import { RowBitmap } from '../../src/engine/row-bitmap.ts';
import type { QueryOutcome } from '../../src/search/calls/query-outcome.ts';
import { IndexRetriever } from '../../src/search/index-retriever.ts';
import { NO_TIMINGS } from '../../src/search/timings.ts';
import assert from '../helpers/assert.ts';
import { FakeReranker } from '../helpers/fake-reranker.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { FakeEncoder, FakeIndex, FakeStore, type Log } from './fakes.ts';

interface Parts {
  readonly log: Log;
  readonly encoder: FakeEncoder;
  readonly index: FakeIndex;
  readonly passages: FakeStore;
  readonly retriever: IndexRetriever;
}

function assemble(
  options: {
    encoder?: ConstructorParameters<typeof FakeEncoder>[1];
    index?: ConstructorParameters<typeof FakeIndex>[1];
    passages?: ConstructorParameters<typeof FakeStore>[1];
  } = {},
): Parts {
  const log: Log = [];
  const encoder = new FakeEncoder(log, options.encoder);
  const index = new FakeIndex(log, options.index);
  const passages = new FakeStore(log, options.passages);
  return {
    log,
    encoder,
    index,
    passages,
    retriever: new IndexRetriever(
      new FakeRetriever().info,
      { dense: { encoder, index }, passages },
      { singleFlight: false },
    ),
  };
}

/** Rows found, or the error code. */
function brief(outcomes: readonly QueryOutcome[]): unknown[] {
  return outcomes.map((outcome) => (outcome.ok ? outcome.hits.map(({ row }) => row) : outcome.error.code));
}

function failing(...texts: string[]): ConstructorParameters<typeof FakeEncoder>[1] {
  return {
    fail: (input) =>
      typeof input === 'string' && texts.includes(input)
        ? { ok: false, error: new TrawlError('ENCODING_FAILED', `cannot encode ${input}`) }
        : undefined,
  };
}

function wait(ms: number): () => Promise<void> {
  return () => new Promise((resolve) => setTimeout(resolve, ms));
}

test('a call without documents has the same rows and scores, and reads no passages', async () => {
  const { retriever, log } = assemble();
  const call = { queries: ['3 b', '0 a…', '4'], k: 3 };
  const whole = await retriever.retrieve(call);
  const fetched = log.filter((entry) => entry.startsWith('fetch')).length;
  const { outcomes } = await retriever.retrieve({ ...call, documents: false });
  assert.equal(log.filter((entry) => entry.startsWith('fetch')).length, fetched);
  assert.deepEqual(
    outcomes.map((outcome) => outcome.ok && outcome.hits),
    whole.outcomes.map((outcome) => outcome.ok && outcome.hits.map((hit) => ({ ...hit, document: '' }))),
  );
});

test('each query gets its own hits, best first, each with its document and its score in float32', async () => {
  const { retriever, log } = assemble();
  const { outcomes } = await retriever.retrieve({ queries: ['3 b', '0 a…', '4'], k: 3 });
  const certificate = { exact: true, rescored: null };
  assert.deepEqual(outcomes, [
    {
      ok: true,
      hits: [
        { row: 3, score: Math.fround(3.3), unrounded: 3.3, document: '{"row":3}' },
        { row: 4, score: Math.fround(3.4), unrounded: 3.4, document: '{"row":4}' },
      ],
      tokens: 3,
      truncated: false,
      text: '3 b',
      cut: 'nothing',
      vector: Float32Array.of(3),
      certificate,
    },
    {
      ok: true,
      hits: [
        { row: 0, score: 0, document: '{"row":0}' },
        { row: 1, score: Math.fround(0.1), unrounded: 0.1, document: '{"row":1}' },
        { row: 2, score: Math.fround(0.2), unrounded: 0.2, document: '{"row":2}' },
      ],
      tokens: 4,
      truncated: true,
      text: '0 a…',
      cut: 'tail',
      vector: Float32Array.of(0),
      certificate,
    },
    {
      ok: true,
      hits: [{ row: 4, score: Math.fround(4.4), unrounded: 4.4, document: '{"row":4}' }],
      tokens: 1,
      truncated: false,
      text: '4',
      cut: 'nothing',
      vector: Float32Array.of(4),
      certificate,
    },
  ]);
  assert.deepEqual(log, ['encode 3', 'search 3 × 3', 'fetch 3,4,0,1,2,4']);
});

test('texts are encoded as queries, with question, query and truncation passed on', async () => {
  const { retriever, encoder } = assemble();
  const pair = { question: 'who?', query: '1' };
  const { signal } = new AbortController();
  await retriever.retrieve({ queries: ['0', pair], k: 1, truncate: 'question', signal });
  await retriever.retrieve({ queries: ['0'], k: 1 });
  assert.deepEqual(encoder.calls, [
    { inputs: ['0', pair], options: { inputType: 'query', truncate: 'question', signal } },
    { inputs: ['0'], options: { inputType: 'query', truncate: undefined, signal: undefined } },
  ]);
});

test('a query that cannot be encoded fails alone', async () => {
  for (const [queries, expected] of [
    [
      ['bad', '3', '1'],
      ['ENCODING_FAILED', [3, 4], [1, 2]],
    ],
    [
      ['3', 'bad', '1'],
      [[3, 4], 'ENCODING_FAILED', [1, 2]],
    ],
    [
      ['3', '1', 'bad'],
      [[3, 4], [1, 2], 'ENCODING_FAILED'],
    ],
    [
      ['bad', '4', 'bad', '0', 'bad'],
      ['ENCODING_FAILED', [4], 'ENCODING_FAILED', [0, 1], 'ENCODING_FAILED'],
    ],
  ] as const) {
    const { retriever, index } = assemble({ encoder: failing('bad') });
    const { outcomes } = await retriever.retrieve({ queries, k: 2 });
    assert.deepEqual(brief(outcomes), expected);
    for (const outcome of outcomes) {
      if (outcome.ok) for (const { row, document } of outcome.hits) assert.equal(document, `{"row":${row}}`);
    }
    assert.equal(
      index.requests[0]!.count,
      queries.filter((query) => query !== 'bad').length,
      'zero rows are not searched',
    );
  }
});

test('when no query can be encoded, each has its error', async () => {
  const { retriever } = assemble({ encoder: failing('x', 'y') });
  const { outcomes } = await retriever.retrieve({ queries: ['x', 'y'], k: 2 });
  assert.deepEqual(
    outcomes.map((outcome) => (outcome.ok ? '' : outcome.error.message)),
    ['cannot encode x', 'cannot encode y'],
  );
});

test('a query that finds nothing has no hits, and the others keep theirs', async () => {
  const { retriever } = assemble();
  const { outcomes } = await retriever.retrieve({ queries: ['7', '4', '9'], k: 2 });
  assert.deepEqual(brief(outcomes), [[], [4], []]);
});

test('a call without queries calls neither encoder, index nor passages', async () => {
  const { retriever, log } = assemble();
  const { outcomes, timings } = await retriever.retrieve({ queries: [], k: 2 });
  assert.deepEqual([outcomes, timings, log], [[], NO_TIMINGS, []]);
});

test('the engine is asked for at most as many hits as there are rows', async () => {
  const { retriever, index } = assemble();
  const { outcomes } = await retriever.retrieve({ queries: ['0'], k: Number.MAX_SAFE_INTEGER });
  assert.deepEqual(brief(outcomes), [[0, 1, 2, 3, 4]]);
  assert.equal(index.requests[0]!.k, 5);
});

test('a tiny negative score rounds to 0, not to −0', async () => {
  const { retriever } = assemble({ index: { score: () => -1e-60 } });
  const { outcomes } = await retriever.retrieve({ queries: ['4'], k: 1 });
  const outcome = outcomes[0]!;
  assert.ok(outcome.ok && Object.is(outcome.hits[0]!.score, 0));
});

test('timings are the milliseconds of each stage', async () => {
  const { retriever } = assemble({
    encoder: { before: wait(60) },
    index: { before: wait(30) },
    passages: { before: wait(10) },
  });
  const start = performance.now();
  const { timings } = await retriever.retrieve({ queries: ['0'], k: 1 });
  const elapsed = performance.now() - start;
  for (const [stage, ms] of [
    ['embed', 60],
    ['search', 30],
    ['fetch', 10],
  ] as const) {
    assert.ok(timings[stage] > ms - 5, `${stage}: ${timings[stage]}`);
  }
  assert.ok(timings.embed + timings.search + timings.fetch <= elapsed, `${JSON.stringify(timings)} in ${elapsed} ms`);
});

test('a call fails with the error of its stage, and the next call is answered', async () => {
  for (const stage of ['encoder', 'index', 'passages'] as const) {
    let calls = 0;
    const before = (): void => {
      if (calls++ === 0) throw new TrawlError('SCORE_OVERFLOW', `${stage} fails`);
    };
    const { retriever } = assemble({ [stage]: { before } });
    await assert.rejects(retriever.retrieve({ queries: ['0'], k: 1 }), trawlError('SCORE_OVERFLOW', new RegExp(stage)));
    assert.deepEqual(brief((await retriever.retrieve({ queries: ['2'], k: 1 })).outcomes), [[2]]);
  }
});

test('an answer of an engine that proves nothing says that it is not exact', async () => {
  const { retriever } = assemble({ index: { exact: false } });
  const { outcomes } = await retriever.retrieve({ queries: ['0', '1'], k: 1 });
  assert.deepEqual(
    outcomes.map((outcome) => outcome.ok && outcome.certificate.exact),
    [false, false],
  );
});

test('a call with an aborted signal calls nothing, and an abort reaches a running search', async () => {
  const controller = new AbortController();
  const { retriever, log, index } = assemble({ index: { before: () => controller.abort() } });
  await assert.rejects(
    retriever.retrieve({ queries: ['0'], k: 1, signal: AbortSignal.abort() }),
    trawlError('CANCELLED'),
  );
  assert.deepEqual(log, []);
  const { signal } = controller;
  await assert.rejects(retriever.retrieve({ queries: ['0'], k: 1, signal }), trawlError('CANCELLED'));
  assert.equal(index.requests[0]!.signal!.aborted, true);
});

test('closing waits for running calls, then closes every part once, and later calls are refused', async () => {
  const { retriever, log } = assemble({ encoder: { before: wait(30) }, passages: { before: wait(10) } });
  const first = retriever.retrieve({ queries: ['0'], k: 1 });
  const second = retriever.retrieve({ queries: ['1'], k: 1 });
  const closing = retriever.close();
  await assert.rejects(retriever.retrieve({ queries: ['2'], k: 1 }), trawlError('NOT_READY'));
  await Promise.all([closing, retriever.close()]);
  assert.deepEqual(log.slice(-3).sort(), ['close encoder', 'close index', 'close passages']);
  assert.equal(log.filter((entry) => entry.startsWith('fetch')).length, 2);
  assert.deepEqual(brief([...(await first).outcomes, ...(await second).outcomes]), [[0], [1]]);
  assert.equal(log.length, 9, 'nothing is closed twice');
});

test('closing waits also for a call that fails', async () => {
  const before = async (): Promise<void> => {
    await wait(20)();
    throw new TrawlError('ENCODING_FAILED', 'no');
  };
  const { retriever, log } = assemble({ encoder: { before } });
  const running = assert.rejects(retriever.retrieve({ queries: ['0'], k: 1 }), trawlError('ENCODING_FAILED'));
  await retriever.close();
  await running;
  assert.deepEqual(log.slice(0, 1), ['encode 1']);
  assert.equal(log.length, 4);
});

test('a look-up finds live rows behind any number of deleted ones', async () => {
  const log: Log = [];
  const rows = Array.from({ length: 600 }, (_, row) => row);
  const passages = new (class extends FakeStore {
    override async find(_by: string, keys: readonly string[], limit?: number): Promise<number[][]> {
      return keys.map((key) => (key === 'none' ? [] : rows.slice(0, key === 'few' ? 5 : undefined).slice(0, limit)));
    }
  })(log);
  const liveRows = new RowBitmap(600);
  for (const row of [3, 500, 510]) liveRows.add(row);
  const { info } = new FakeRetriever();
  const retriever = new IndexRetriever(info, { passages, liveRows });
  const find = async (limit: number): Promise<number[][]> => {
    const { found } = await retriever.find({ by: 'id', keys: ['many', 'none', 'few'], limit });
    return found.map((list) => list.map(({ row }) => row));
  };
  assert.deepEqual(await find(1), [[3], [], [3]]);
  assert.deepEqual(await find(2), [[3, 500], [], [3]]);
  assert.deepEqual(await find(100), [[3, 500, 510], [], [3]]);
});

test('a live row is found by its number', async () => {
  const liveRows = new RowBitmap(600);
  for (const row of [3, 5]) liveRows.add(row);
  const log: Log = [];
  const info = { ...new FakeRetriever().info, rows: 6 };
  const keys = ['3', '4', '5', '6', '-1', '1e0', '', '0x3', '999999999999999999'];
  for (const [live, expected] of [
    [liveRows, [[3], [], [5]]],
    [undefined, [[3], [4], [5]]],
  ] as const) {
    const retriever = new IndexRetriever(info, { passages: new FakeStore(log), liveRows: live });
    const { found } = await retriever.find({ by: 'row', keys, limit: 1 });
    assert.deepEqual(
      found.map((list) => list.map(({ row }) => row)),
      [...expected, [], [], [], [], [], []],
    );
  }
});

test('without a reranker, calls that ask for one are refused', async () => {
  const retriever = new IndexRetriever(new FakeRetriever().info, { passages: new FakeStore([]) });
  const expected = trawlError('NOT_SUPPORTED', /--rerank MODEL/);
  await assert.rejects(retriever.retrieve({ queries: ['a'], k: 1, rerank: { depth: 1 } }), expected);
  await assert.rejects(retriever.rerank({ lists: [] }), expected);
});

test('closing waits for calls that are being reranked, refuses later ones and leaves the reranker open', async () => {
  let release = (): void => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const log: Log = [];
  const reranker = new FakeReranker({ before: () => held });
  const retriever = new IndexRetriever(
    new FakeRetriever().info,
    { dense: { encoder: new FakeEncoder(log), index: new FakeIndex(log) }, passages: new FakeStore(log) },
    { reranker },
  );
  const running = retriever.retrieve({ queries: ['1'], k: 1, rerank: { depth: 2 } });
  const closed = retriever.close();
  await assert.rejects(retriever.rerank({ lists: [] }), trawlError('NOT_READY'));
  release();
  assert.ok((await running).outcomes[0]!.ok);
  await closed;
  assert.ok(log.includes('close encoder') && !reranker.closed);
});
