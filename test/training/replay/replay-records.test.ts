import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { EXIT } from '../../../cli/program/command.ts';
import { type ErrorCode, TrawlError } from '../../../src/base/errors.ts';
import { Perturbation } from '../../../training/perturbation/perturbation.ts';
import { perturbationSettings } from '../../../training/perturbation/settings.ts';
import type { RecordedQuery } from '../../../training/records/recorded-query.ts';
import { goldQuestions } from '../../../training/replay/gold-questions.ts';
import { type ReplayOptions, type ReplayReport, replayRecords } from '../../../training/replay/replay-records.ts';
import { Comparisons } from '../../../training/replay/replay-report.ts';
import { indexTarget } from '../../../training/replay/replay-target.ts';
import { serverTarget } from '../../../training/replay/server-target.ts';
import { jsonOf, runTrawl } from '../../cli/run-trawl.ts';
import assert from '../../helpers/assert.ts';
import { FakeRetriever } from '../../helpers/fake-retriever.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { recordedServer, serveRetriever } from './recorded-server.ts';

const server = await recordedServer();

/** Passages of an index whose answers are known: the fake retriever orders them by the text of the query. */
const DOCUMENTS = ['a', 'b', 'c', 'd'].map((id) =>
  JSON.stringify({ id, title: `Title ${id}`, text: `The text of ${id}.` }),
);

/** A line of --record. */
function line(fields: object): string {
  const basic = {
    time: '2026-01-01T00:00:00.000Z',
    requestId: 'r',
    dialect: 'search-r1',
    index: 'old',
    generation: 'old',
  };
  return `${JSON.stringify({ ...basic, place: 0, query: 'q', k: 3, rows: [], scores: [], ids: [], ...fields })}\n`;
}

interface LettersOptions {
  readonly generation?: string;
  readonly documents?: readonly string[];
  /** The error of the query "bad". Default: it is searched. */
  readonly fails?: ErrorCode;
}

/** A retriever that finds the passages with the letters of the query, in their order. */
function letters({ documents = DOCUMENTS, generation = 'new', fails }: LettersOptions = {}): FakeRetriever {
  return new FakeRetriever({
    documents,
    generation,
    outcome(input) {
      const text = typeof input === 'string' ? input : input.query;
      if (fails !== undefined && text === 'bad')
        return { ok: false, error: new TrawlError(fails, 'It has no vector.') };
      const rows = [...text].map((letter) => 'abcd'.indexOf(letter)).filter((row) => row >= 0);
      const hits = rows.map((row, i) => ({ row, score: 1 - i / 10, document: documents[row]! }));
      return {
        ok: true,
        hits,
        tokens: 1,
        truncated: false,
        text,
        cut: 'nothing',
        vector: null,
        certificate: { exact: true, rescored: null },
      };
    },
  });
}

async function replay(
  t: Parameters<typeof tempFolder>[0],
  lines: readonly string[],
  options: Partial<ReplayOptions> = {},
): Promise<ReplayReport> {
  const records = join(await tempFolder(t), 'calls.jsonl');
  writeFileSync(records, lines.join(''));
  return replayRecords({
    records: [records],
    target: indexTarget(letters()),
    changes: {},
    p: 0.9,
    cutoffs: [1, 2, 3, 5],
    examples: 5,
    ...options,
  });
}

const found = (ids: string): object => ({
  rows: [...ids].map((_, i) => 100 + i),
  scores: [...ids].map((_, i) => 1 - i / 10),
  ids: [...ids],
});

test('lists are compared by id: equal lists, overlap at each k, rank-biased overlap and the biggest differences', async (t) => {
  const report = await replay(t, [
    line({ query: 'abc', ...found('abc'), turn: 1 }),
    line({ query: 'bad', ...found('abc'), turn: 1 }),
    line({ query: 'd', ...found('abc'), turn: 2, trajectory: 't-1' }),
  ]);
  assert.deepEqual([report.records, report.all.queries, report.all.identical], [3, 3, 1]);
  assert.deepEqual(report.all.overlap, [
    // 1, 0 and 0; 1, 2/2 and 0; 1, 2/3 and 0. A k larger than the recorded one is not measured.
    { k: 1, mean: 1 / 3, queries: 3, same: 1 },
    { k: 2, mean: 2 / 3, queries: 3, same: 2 },
    { k: 3, mean: (1 + 2 / 3) / 3, queries: 3, same: 1 },
    { k: 5, mean: null, queries: 0, same: 0 },
  ]);
  assert.deepEqual(
    report.turns.map(({ turn, queries, rbo }) => [turn, queries, rbo! > 0]),
    [
      [1, 2, true],
      [2, 1, false],
    ],
  );
  assert.deepEqual(report.against, { index: 'fake-sample', generations: ['new'] });
  assert.deepEqual(
    report.differences.map(({ query, rbo }) => [query, rbo === 0]),
    [
      ['d', true],
      ['bad', false],
    ],
  );
  const [worst] = report.differences;
  assert.deepEqual([worst!.trajectory, worst!.turn], ['t-1', 2]);
  assert.deepEqual(
    worst!.before.map(({ id, title }) => [id, title]),
    [
      ['a', 'Title a'],
      ['b', 'Title b'],
      ['c', 'Title c'],
    ],
  );
  assert.deepEqual(
    worst!.now.map(({ id, title }) => [id, title]),
    [['d', 'Title d']],
  );
});

test('with golds, relevant passages and answers that are gained and lost are counted', async (t) => {
  const questions = [
    { id: 'q1', question: 'What is d?', goldIds: ['d', 'a'], goldenAnswers: ['text of d'] },
    { id: 'q2', question: 'Which letter?', goldIds: ['b'] },
  ];
  const report = await replay(
    t,
    [
      // By the question's id: a is lost, d and the answer are gained.
      line({ query: 'bd', ...found('ab'), questionId: 'q1' }),
      // By the question's text.
      line({ query: 'c', ...found('b'), question: 'Which letter?', template: 'query' }),
      // By the part before [SEP] of a text that the client composed: d is lost.
      line({ query: 'What is d? [SEP] b', ...found('d') }),
      line({ query: 'b', ...found('b'), question: 'Unknown' }),
    ],
    { gold: goldQuestions(questions), target: indexTarget(lettersAfterSeparator()) },
  );
  assert.deepEqual(report.all.gold, {
    queries: 3,
    before: 3,
    now: 1,
    gained: 1,
    lost: 3,
    gainedQueries: 0,
    lostQueries: 2,
  });
  assert.deepEqual(report.all.answers, { queries: 2, before: 1, now: 1, gained: 1, lost: 1 });
  assert.equal(report.answersUnknown, 0);
});

/** As `letters`, for queries that have their question before them. */
function lettersAfterSeparator(): FakeRetriever {
  const retriever = letters();
  const asked = retriever.retrieve.bind(retriever);
  retriever.retrieve = (call) =>
    asked({
      ...call,
      queries: call.queries.map((query) => (typeof query === 'string' ? query.split(' [SEP] ').at(-1)! : query)),
    });
  return retriever;
}

test('an answer is not judged where a recorded passage is gone that may have had it', async (t) => {
  const gold = goldQuestions([{ id: 'q1', question: 'Q', goldenAnswers: ['text of d'] }]);
  const report = await replay(t, [line({ query: 'a', ...found('ax'), questionId: 'q1' })], { gold });
  assert.equal(report.answersUnknown, 1);
  assert.equal(report.all.answers.queries, 0);
});

test('records are compared by row where the generation is the same, also without ids', async (t) => {
  const documents = ['x', 'y', 'z', 'w'].map((text) => JSON.stringify({ text }));
  const target = indexTarget(letters({ documents, generation: 'old' }));
  const report = await replay(t, [line({ query: 'ab', k: 2, rows: [0, 2], scores: [1, 0.5], ids: [null, null] })], {
    target,
  });
  assert.equal(report.all.overlap[1]!.mean, 1 / 2);
  const other = await replay(
    t,
    [line({ query: 'ab', k: 2, rows: [0, 2], scores: [1, 0.5], ids: [null, null], generation: 'older' })],
    { target },
  );
  assert.deepEqual([other.all.queries, other.notCompared.withoutIds], [0, 1]);
});

test('what cannot be compared is counted by its reason', async (t) => {
  const report = await replay(t, [
    line({ error: 'INTERNAL' }),
    line({ ...found('a'), view: 'v' }),
    line({ ...found('a'), dialect: 'elasticsearch' }),
    line({ ...found('a'), selection: { fuse: 'rrf' } }),
    line({ ...found('a'), perturbed: { distractors: 1, delayMs: 5 } }),
    // Held back, and otherwise as the search found it.
    line({ query: 'ab', ...found('cx'), perturbed: { delayMs: 5 } }),
    line({ ...found('a'), indexes: ['one'] }),
    line({ ...found('a'), mode: 'sparse' }),
    // An index with other ids.
    line({ query: 'ab', ...found('xyz'), generation: 'foreign' }),
    // It has some of them, so nothing in common is a difference.
    line({ query: 'ab', ...found('cx') }),
  ]);
  assert.deepEqual(report.notCompared, {
    error: 1,
    group: 1,
    view: 1,
    queryTree: 1,
    selection: 1,
    perturbed: 1,
    rerankFailed: 0,
    unknown: 1,
    otherIds: 1,
    withoutIds: 0,
  });
  assert.deepEqual([report.all.queries, report.all.rbo], [2, 0]);
});

test('passages that are gone are differences, unless the other index has no id of their generation', async (t) => {
  const records = [
    line({ query: 'ab', ...found('xyz'), generation: 'one', turn: 1 }),
    line({ query: 'ab', ...found('xy'), generation: 'two', turn: 1 }),
    // Of generation one, the index has d, although it does not find it.
    line({ query: 'ab', ...found('dxy'), generation: 'one', turn: 2 }),
    line({ query: 'ab', ...found('abz'), generation: 'three', turn: 2 }),
  ];
  for (const lines of [records, [...records].reverse()]) {
    const report = await replay(t, lines);
    assert.deepEqual([report.all.queries, report.notCompared.otherIds], [3, 1]);
    assert.deepEqual(report.all.overlap[0], { k: 1, mean: 1 / 3, queries: 3, same: 1 });
    assert.deepEqual(
      report.turns.map(({ turn, queries, identical }) => [turn, queries, identical]),
      [
        [1, 1, 0],
        [2, 2, 0],
      ],
    );
    assert.deepEqual(report.differences.map(({ rbo }) => rbo === 0).sort(), [false, true, true]);
  }
});

test('a query that fails now by itself has nothing in common with its recorded list, and loses its gold passages', async (t) => {
  const failing = (fails: ErrorCode) => indexTarget(letters({ fails }));
  const gold = goldQuestions([{ id: 'q1', question: 'Q', goldIds: ['a', 'b'], goldenAnswers: ['text of a'] }]);
  const lines = [
    line({ query: 'bad', ...found('abc'), questionId: 'q1' }),
    line({ query: 'ab', ...found('ab'), questionId: 'q1' }),
    // It found nothing then: that was an answer, too.
    line({ query: 'bad', ...found('') }),
  ];
  const report = await replay(t, lines, { target: failing('ENCODING_FAILED'), gold });
  assert.deepEqual([report.failedQueries, report.failed], [{ ENCODING_FAILED: 2 }, {}]);
  assert.deepEqual([report.all.queries, report.all.identical, report.all.rbo], [3, 1, 1 / 3]);
  assert.deepEqual(report.all.overlap[2], { k: 3, mean: 1 / 3, queries: 3, same: 1 });
  assert.deepEqual([report.all.gold.before, report.all.gold.lost, report.all.gold.lostQueries], [4, 2, 1]);
  assert.deepEqual([report.all.answers.before, report.all.answers.lost], [2, 1]);
  // A failure that is not of the query says nothing about the index.
  await assert.rejects(replay(t, lines, { target: failing('ENCODER_FAILED') }), trawlError('ENCODER_FAILED'));
});

test('a text that a server refuses does not hide the answers of the others', async (t) => {
  const url = await serveRetriever(t, letters(), { maxQueryChars: 10 });
  const lines = [
    line({ query: 'ab', ...found('ab') }),
    line({ query: 'a'.repeat(11), ...found('ab') }),
    line({ query: 'ba', ...found('ba') }),
  ];
  const report = await replay(t, lines, { target: serverTarget(url) });
  assert.deepEqual([report.failedQueries, report.all.queries, report.all.identical], [{ QUERY_TOO_LONG: 1 }, 3, 2]);
});

test('lists that the asked server changes on purpose are not compared', async (t) => {
  const searchHook = new Perturbation(perturbationSettings({ distractors: 1 }));
  const url = await serveRetriever(t, letters(), { searchHook });
  const report = await replay(t, [line({ query: 'ab', ...found('ab') })], { target: serverTarget(url) });
  assert.deepEqual([report.failed, report.all.queries], [{ PERTURBED: 1 }, 0]);
});

test('changes replace the recorded settings, and another mode drops those of the recorded one', async (t) => {
  const retriever = letters();
  const target = indexTarget(retriever);
  const hybrid = { fusion: 'rrf', rrfK: 60, denseWeight: 1, bm25Weight: 1, depth: 100 };
  const lines = [
    line({ query: 'a', ...found('a'), mode: 'hybrid', hybrid, truncate: 'tail' }),
    line({ query: 'b', ...found('b') }),
  ];
  await replay(t, lines, { target });
  await replay(t, lines, { target, changes: { k: 7, mode: 'bm25', template: 'query' } });
  assert.deepEqual(
    retriever.calls.map(({ queries, signal: _, ...call }) => [queries.length, call]),
    [
      [1, { k: 3, mode: 'hybrid', hybrid, truncate: 'tail' }],
      [1, { k: 3 }],
      [1, { k: 7, mode: 'bm25', template: 'query', truncate: 'tail' }],
      [1, { k: 7, mode: 'bm25', template: 'query' }],
    ],
  );
});

test('a search that the target refuses is counted by its code, and the others are compared', async (t) => {
  const retriever = letters();
  const asked = retriever.retrieve.bind(retriever);
  retriever.retrieve = async (call) => {
    if (call.mode === 'bm25') throw new TrawlError('NOT_SUPPORTED', 'no words');
    return asked(call);
  };
  const lines = [line({ query: 'a', ...found('a'), mode: 'bm25' }), line({ query: 'a', ...found('a') })];
  const report = await replay(t, lines, { target: indexTarget(retriever) });
  assert.deepEqual([report.failed, report.all.queries], [{ NOT_SUPPORTED: 1 }, 1]);
});

test('a server is asked over its socket and gives the same report as its index', async (t) => {
  const url = await serveRetriever(t, letters());
  const lines = [
    line({ query: 'bad', ...found('abc') }),
    line({ query: 'ab', ...found('xyz') }),
    line({ query: 'c', ...found('c'), question: 'Q', filter: undefined }),
  ];
  const gold = goldQuestions([{ id: '1', question: 'Q', goldIds: ['c'], goldenAnswers: ['text of c'] }]);
  const byIndex = await replay(t, lines, { gold });
  const byServer = await replay(t, lines, { gold, target: serverTarget(`${url}/`) });
  assert.deepEqual(byServer, byIndex);
  assert.equal(byServer.all.answers.before, 1);
});

/** A server with one answer after another; it records the times of the requests. */
async function scripted(
  t: { after(work: () => void): void },
  answers: readonly { status: number; body?: string; headers?: Record<string, string> }[],
): Promise<{ url: string; count: () => number }> {
  let next = 0;
  const http: Server = createServer((request, response) => {
    request.resume().on('end', () => {
      const { status, body = '{}', headers = {} } = answers[Math.min(next++, answers.length - 1)]!;
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body);
    });
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  t.after(() => void http.close());
  return { url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`, count: () => next };
}

const EMPTY_REPLY = JSON.stringify({ index: { name: 'n', generation: 'g' }, results: [{ ok: true, hits: [] }] });
const QUICK = { firstWaitMs: 1, maxWaitMs: 2 };

test('after 429 and 503 a server is asked again, up to a number of tries', async (t) => {
  const busy = await scripted(t, [
    { status: 429, headers: { 'retry-after': '0' } },
    { status: 503 },
    { status: 200, body: EMPTY_REPLY },
  ]);
  const target = serverTarget(busy.url, QUICK);
  assert.deepEqual((await target.search(['q'], { k: 1 }, { texts: false })).outcomes, [
    { ok: true, generation: 'g', hits: [] },
  ]);
  assert.equal(busy.count(), 3);
  const stuck = await scripted(t, [{ status: 503 }]);
  const searching = serverTarget(stuck.url, { ...QUICK, attempts: 3 }).search(['q'], { k: 1 }, { texts: false });
  await assert.rejects(searching, trawlError('CONFIG_INVALID', /answered 503, also after 3 tries/));
  assert.equal(stuck.count(), 3);
});

test('a server that is no Trawl server, or refuses everything, ends the replay with its answer', async (t) => {
  for (const [answer, message] of [
    [{ status: 401, body: '{"error":{"code":"UNAUTHORIZED","message":"A key is needed."}}' }, /401: A key is needed/],
    [{ status: 200, body: '<html>' }, /not JSON/],
    [{ status: 200, body: '{"result":[]}' }, /not a reply of \/v1\/search/],
    [{ status: 404, body: 'not here' }, /answered 404/],
  ] as const) {
    const { url } = await scripted(t, [answer]);
    const searching = serverTarget(url, QUICK).search(['q'], { k: 1 }, { texts: false });
    await assert.rejects(searching, trawlError('CONFIG_INVALID', message));
  }
  const none = serverTarget('http://127.0.0.1:9', { ...QUICK, attempts: 2 });
  await assert.rejects(none.search(['q'], { k: 1 }, { texts: false }), trawlError('CONFIG_INVALID', /after 2 tries/));
});

test('trawl replay --against the index that was recorded finds equal lists, and --k another number', async () => {
  const turn = (n: number, query: string): Promise<unknown> =>
    server.ask(
      '/v1/search',
      { queries: [{ query, question: 'Which river flows through Vienna?' }], k: 3 },
      { 'x-trawl-turn': `${n}` },
    );
  await turn(1, 'river in Vienna');
  await turn(2, 'length of the Danube');
  await server.ask('/v1/search', { queries: ['Danube'], k: 3, mode: 'hybrid' });
  await server.flush();
  const same = jsonOf<ReplayReport>(await runTrawl(['replay', server.records, '--against', server.index, '--json']));
  assert.deepEqual([same.all.queries, same.all.identical, same.all.rbo], [3, 3, 1]);
  assert.deepEqual(same.differences, []);
  const words = jsonOf<ReplayReport>(
    await runTrawl(['replay', server.records, '--against', server.index, '--mode', 'bm25', '--k', '5', '--json']),
  );
  assert.equal(words.all.queries, 3);
  assert.deepEqual(
    words.all.overlap.map(({ k, queries }) => [k, queries]),
    [
      [1, 3],
      [3, 3],
      [5, 0],
      [10, 0],
    ],
  );
  const { code, stdout } = await runTrawl(['replay', server.records, '--against', server.index, '--mode', 'bm25']);
  assert.equal(code, EXIT.ok);
  assert.match(stdout, /^3 records, 3 compared/);
  assert.match(stdout, /overlap@1 {2}overlap@3/);
});

test('trawl replay refuses contradicting options and values out of range', async () => {
  for (const [args, message] of [
    [[], /either --against/],
    [['--against', 'x', '--bundle', 'y'], /either --against/],
    [['--bundle', 'y'], /--bundle needs --index/],
    [['--against', 'x', '--index', 'y'], /--index has no effect/],
    [['--bundle', 'y', '--index', 'x', '--k', '3'], /--k has no effect with --bundle/],
    [['--against', 'http://127.0.0.1:9', '--model', 'm'], /--model has no effect with a URL/],
    [['--against', server.index, '--key-file', 'k'], /--key-file has no effect/],
    [['--against', server.index, '--p', '1'], /--p is 1/],
    [['--against', server.index, '--p', '0'], /--p is 0/],
    [['--against', server.index, '--cutoffs', '1,x'], /--cutoffs is/],
  ] as const) {
    const { code, stderr } = await runTrawl(['replay', server.records, ...args]);
    assert.equal(code, EXIT.usage, stderr);
    assert.match(stderr, message);
  }
});

test('a server that reloads between two requests gives each query the generation that answered it', async (t) => {
  const reply = (generation: string, count: number): { status: number; body: string } => ({
    status: 200,
    body: JSON.stringify({ index: { name: 'n', generation }, results: Array(count).fill({ ok: true, hits: [] }) }),
  });
  const { url } = await scripted(t, [reply('before', 64), reply('after', 1)]);
  const { outcomes } = await serverTarget(url, QUICK).search(Array(65).fill('q'), { k: 1 }, { texts: false });
  const generations = outcomes.map((outcome) => (outcome.ok ? outcome.generation : ''));
  assert.deepEqual(generations, [...Array<string>(64).fill('before'), 'after']);
});

test('only the queries that differ most are kept, in order, without the texts of their hits', () => {
  const comparisons = new Comparisons([1], 2);
  const hit = { row: 1, id: 'a', score: 1, title: undefined, contents: 'a long text' };
  for (const rbo of [0.5, 0.2, 0.2, 0.1, 0.9]) {
    const compared = { turn: null, identical: false, rbo, overlaps: [null], gold: null, answer: null };
    comparisons.add(compared, { query: `${rbo}` } as RecordedQuery, [hit]);
  }
  assert.deepEqual(
    comparisons.differences.map(({ rbo, now }) => [rbo, now]),
    [0.1, 0.2].map((rbo) => [rbo, [{ row: 1, id: 'a', score: 1, title: null }]]),
  );
});
