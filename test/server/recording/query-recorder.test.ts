import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { mkdir, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { TrawlError } from '../../../src/base/errors.ts';
import type { QueryOutcome } from '../../../src/search/calls/query-outcome.ts';
import { GroupRetriever } from '../../../src/search/group/group-retriever.ts';
import { hybridSettings } from '../../../src/search/hybrid/hybrid-settings.ts';
import { QueryRecorder } from '../../../src/server/recording/query-recorder.ts';
import type { RecordedSearch } from '../../../src/server/recording/recorded-search.ts';
import { type AnyLine, readAllRecords, readRecords } from '../../../training/records/read-records.ts';
import { FakeRetriever } from '../../helpers/fake-retriever.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { parseRecord } from '../../training/records/parse-record.ts';

const LARGE = 1024 ** 3;

async function answer(asked: Omit<RecordedSearch, 'outcomes'>): Promise<RecordedSearch> {
  return { ...asked, outcomes: (await new FakeRetriever().retrieve(asked)).outcomes };
}

function linesOf(path: string): Record<string, unknown>[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

test('a line has the history of the query and the template of the request', async (t) => {
  const path = join(await tempFolder(t), 'record.jsonl');
  const recorder = await QueryRecorder.open({ path, maxFileBytes: LARGE, keep: 1 });
  const query = { question: 'Q?', history: ['first', 'second'], query: 'sub' };
  recorder.record({}, await answer({ queries: [query], k: 1, template: 'question-history-query' }));
  recorder.record({}, await answer({ queries: [query], k: 1 }));
  await recorder.close();
  assert.deepEqual(
    linesOf(path).map(({ history, template }) => [history, template]),
    [
      [['first', 'second'], 'question-history-query'],
      [['first', 'second'], undefined],
    ],
  );
});

test('a line has the trajectory of the query, and the settings of hybrid search', async (t) => {
  const path = join(await tempFolder(t), 'record.jsonl');
  const recorder = await QueryRecorder.open({ path, maxFileBytes: LARGE, keep: 1 });
  const hybrid = hybridSettings({ fusion: 'rrf', depth: 20 }, 1);
  const call = { queries: ['x', 'y'], k: 1 };
  recorder.record(
    {},
    await answer({ ...call, mode: 'hybrid', hybrid, origins: [{ trajectory: 'r-1' }, { trajectory: 'r-2' }] }),
  );
  recorder.record({}, await answer(call));
  await recorder.close();
  const lines = linesOf(path);
  assert.deepEqual(
    lines.map(({ trajectory }) => trajectory),
    ['r-1', 'r-2', undefined, undefined],
  );
  assert.deepEqual([lines[0]!.hybrid, lines[2]!.hybrid], [hybrid, undefined]);
});

test('a line has the BM25 settings of the request, how it chose hits, and what the answer says beside them', async (t) => {
  const path = join(await tempFolder(t), 'record.jsonl');
  const recorder = await QueryRecorder.open({ path, maxFileBytes: LARGE, keep: 1 });
  const settings = {
    bm25: { k1: 2, b: 0.5, k1Factor: false },
    bm25Order: 'pyserini',
    selection: { excluded: 2 },
  } as const;
  const found = await answer({ queries: ['x'], k: 2, mode: 'bm25', ...settings });
  const outcome = found.outcomes[0]!;
  assert.ok(outcome.ok);
  const places = { dense: null, bm25: { rank: 1, score: 2 } };
  const hits = outcome.hits.map((hit, i) => ({ ...hit, places, firstStage: { rank: i + 1, score: 3 } }));
  const rerank = { ok: true, model: 'm', passages: 9, truncated: 1 } as const;
  recorder.record({}, { ...found, outcomes: [{ ...outcome, hits, rerank }] });
  await recorder.close();
  const [{ bm25, bm25Order, selection, answer: facts }] = linesOf(path) as [Record<string, unknown>];
  assert.deepEqual({ bm25, bm25Order, selection }, settings);
  assert.deepEqual(facts, {
    tokens: 3,
    rescored: 2,
    places: [places, places],
    firstStage: [
      { rank: 1, score: 3 },
      { rank: 2, score: 3 },
    ],
    rerank: { model: 'm', passages: 9, truncated: 1 },
  });
});

test('the hits of several indexes are recorded with the index and the row in it', async (t) => {
  const path = join(await tempFolder(t), 'record.jsonl');
  const recorder = await QueryRecorder.open({ path, maxFileBytes: LARGE, keep: 1 });
  const group = new GroupRetriever('ab', [new FakeRetriever({ index: 'a' }), new FakeRetriever({ index: 'b' })]);
  const call = { queries: ['x'], k: 2 };
  recorder.record({}, { ...call, outcomes: (await group.retrieve(call)).outcomes });
  await recorder.close();
  const [{ indexes, rows }] = linesOf(path) as [{ indexes: string[]; rows: number[] }];
  assert.deepEqual([indexes, rows[0]], [['a', 'b'], rows[1]]);
});

test('a query becomes a line with the request, the text and its hits', async (t) => {
  const path = join(await tempFolder(t), 'record.jsonl');
  const recorder = await QueryRecorder.open({ path, maxFileBytes: LARGE, keep: 1 });
  const call = { queries: ['line\nbreak "q"', { question: 'Q?', query: 'sub' }], k: 5, truncate: 'question' } as const;
  recorder.record({ requestId: 'r1', dialect: 'native', index: 'wiki', generation: 'g' }, await answer(call));
  await recorder.close();
  const [first, second] = linesOf(path);
  const { time, rows, scores, ids, ...rest } = first!;
  assert.deepEqual(rest, {
    requestId: 'r1',
    dialect: 'native',
    index: 'wiki',
    generation: 'g',
    place: 0,
    query: 'line\nbreak "q"',
    k: 5,
    truncate: 'question',
    answer: { tokens: 16, rescored: 5 },
  });
  assert.deepEqual(
    second!.answer,
    { tokens: 14, text: 'Q? [SEP] sub', rescored: 5 },
    'the text that both are parts of',
  );
  assert.match(String(time), /^\d{4}-\d\d-\d\dT/);
  assert.deepEqual([(rows as number[]).length, (scores as number[]).length, (ids as unknown[]).length], [5, 5, 5]);
  assert.deepEqual([second!.question, second!.query, second!.place], ['Q?', 'sub', 1]);
  // An id beyond 2^53 keeps its digits.
  assert.match(readFileSync(path, 'utf8'), /9007199254740993/);
  assert.equal(statSync(path).mode & 0o777, 0o600);
});

test('a line has what the client says about the query, and the reader reads what was written', async (t) => {
  const path = join(await tempFolder(t), 'record.jsonl');
  const recorder = await QueryRecorder.open({ path, maxFileBytes: LARGE, keep: 1 });
  const origin = {
    trajectory: 't',
    trajectoryFrom: 'guess',
    turn: 0,
    questionId: 'train_1',
    dataset: 'd',
    policy: 'p',
    step: 3,
    split: 'train',
    tags: { a: 'b' },
    traceId: 'f'.repeat(32),
    spanId: 'e'.repeat(16),
  } as const;
  const head = { requestId: 'r', dialect: 'native', index: 'i', generation: 'g' };
  recorder.record(head, await answer({ queries: ['q'], k: 2, origins: [origin] }));
  await recorder.close();
  const [line] = linesOf(path);
  const read = parseRecord(JSON.stringify(line));
  assert.ok(read.ok);
  const { time, rows, scores, ids, ...rest } = read.query;
  assert.deepEqual(rest, { ...head, place: 0, ...origin, query: 'q', k: 2 });
  assert.deepEqual([rows.length, scores.length, ids.length], [2, 2, 2]);
});

test('a question that was not searched for is written with a template that leaves it out', async (t) => {
  const path = join(await tempFolder(t), 'record.jsonl');
  const recorder = await QueryRecorder.open({ path, maxFileBytes: LARGE, keep: 1 });
  const origins = [{ question: 'Original?' }];
  const history = ['earlier'];
  for (const [query, template] of [
    ['q', undefined],
    [{ question: '', query: 'q', history }, 'question-history-query'],
    [{ question: 'Searched?', query: 'q' }, undefined],
  ] as const) {
    recorder.record({}, await answer({ queries: [query], k: 1, origins, template }));
  }
  await recorder.close();
  assert.deepEqual(
    linesOf(path).map(({ question, template }) => [question, template]),
    [
      ['Original?', 'query'],
      ['Original?', 'history-query'],
      ['Searched?', undefined],
    ],
  );
});

test('what the token limit cut off is recorded', async (t) => {
  const path = join(await tempFolder(t), 'record.jsonl');
  const recorder = await QueryRecorder.open({ path, maxFileBytes: LARGE, keep: 1 });
  const search = await answer({ queries: ['a', 'b'], k: 1 });
  const [whole, other] = search.outcomes;
  recorder.record({}, { ...search, outcomes: [whole!, { ...other!, cut: 'question-and-tail' } as QueryOutcome] });
  await recorder.close();
  assert.deepEqual(
    linesOf(path).map(({ cut }) => cut),
    [undefined, 'question-and-tail'],
  );
});

test('a query that failed is kept with its code', async (t) => {
  const path = join(await tempFolder(t), 'record.jsonl');
  const recorder = await QueryRecorder.open({ path, maxFileBytes: LARGE, keep: 1 });
  const failed = { ok: false, error: new TrawlError('ENCODING_FAILED', 'x') } as const;
  recorder.record({}, { queries: ['q'], k: 3, outcomes: [failed] });
  await recorder.close();
  assert.deepEqual([linesOf(path)[0]!.query, linesOf(path)[0]!.error], ['q', 'ENCODING_FAILED']);
});

test('an opening is a line of its own, which readers of queries skip', async (t) => {
  const path = join(await tempFolder(t), 'record.jsonl');
  const recorder = await QueryRecorder.open({ path, maxFileBytes: 1e9, keep: 1 });
  const request = { requestId: 'r', dialect: 'mcp', index: 'wiki', generation: 'g1' };
  recorder.record(request, await answer({ queries: ['q'], k: 1 }));
  const passages = [
    { row: 7, idJson: '9007199254740993' },
    { row: 8, idJson: undefined },
  ];
  const origin = { trajectory: 't', turn: 2 };
  recorder.recordOpenings(request, [
    { opened: 'https://example.org/p', passages, origin },
    { opened: 'none', passages: [] },
  ]);
  recorder.recordOpenings(request, [{ opened: 'in a group', passages: [{ row: 1, index: 'news', idJson: '"n"' }] }]);
  await recorder.close();
  const lines: AnyLine[] = [];
  for await (const line of readAllRecords([path])) lines.push(line);
  assert.deepEqual(
    lines.flatMap((line) => ('opening' in line ? [{ ...line.opening, time: '' }] : [])),
    [
      {
        ...request,
        time: '',
        place: 0,
        ...origin,
        opened: 'https://example.org/p',
        rows: [7, 8],
        ids: ['9007199254740993', null],
      },
      { ...request, time: '', place: 1, opened: 'none', rows: [], ids: [] },
      { ...request, time: '', place: 0, opened: 'in a group', indexes: ['news'], rows: [1], ids: ['n'] },
    ],
  );
  const queries: string[] = [];
  for await (const { query } of readRecords([path])) queries.push(query.query);
  assert.deepEqual(queries, ['q']);
});

test('openings above the limit of waiting bytes are dropped and counted', async (t) => {
  const path = join(await tempFolder(t), 'record.jsonl');
  const recorder = await QueryRecorder.open({ path, maxFileBytes: 1e9, keep: 1, maxWaitingBytes: 2_000 });
  for (let i = 0; i < 4; i++)
    recorder.recordOpenings({}, [
      { opened: 'x', passages: [] },
      { opened: 'y', passages: [] },
    ]);
  await recorder.close();
  assert.equal(recorder.dropped + readFileSync(path, 'utf8').split('\n').length - 1, 8);
  assert.ok(recorder.dropped > 0);
});

test('an existing file is appended to, and rotated at its size', async (t) => {
  const path = join(await tempFolder(t), 'record.jsonl');
  for (let run = 0; run < 2; run++) {
    const recorder = await QueryRecorder.open({ path, maxFileBytes: LARGE, keep: 1 });
    recorder.record({}, await answer({ queries: [`run ${run}`], k: 1 }));
    await recorder.close();
  }
  assert.deepEqual(
    linesOf(path).map(({ query }) => query),
    ['run 0', 'run 1'],
  );
  const small = await QueryRecorder.open({ path, maxFileBytes: 400, keep: 2 });
  for (let i = 0; i < 8; i++) {
    small.record({}, await answer({ queries: [`q${i}`], k: 1 }));
    // A write of its own.
    await small.flush();
  }
  await small.close();
  assert.equal(small.dropped, 0);
  assert.ok(!existsSync(`${path}.3`), 'older files are deleted');
  const kept = [`${path}.2`, `${path}.1`, path].flatMap((file) => linesOf(file).map(({ query }) => String(query)));
  assert.deepEqual(kept, Array.from({ length: 8 }, (_, i) => `q${i}`).slice(-kept.length), 'in order, without a gap');
  assert.ok(kept.length >= 4);
  for (const file of [`${path}.2`, `${path}.1`, path]) assert.ok(statSync(file).size <= 400);
});

test('when no new file can be created nothing is lost: the open file grows until one can', async (t) => {
  const path = join(await tempFolder(t), 'record.jsonl');
  const recorder = await QueryRecorder.open({ path, maxFileBytes: 400, keep: 2 });
  const record = async (query: string): Promise<void> => {
    recorder.record({}, await answer({ queries: [query], k: 1 }));
    await recorder.flush();
  };
  for (let i = 0; i < 8; i++) await record(`q${i}`);
  const files = [path, `${path}.1`, `${path}.2`];
  const before = files.map((file) => readFileSync(file, 'utf8'));
  await mkdir(`${path}.next`);
  for (let i = 0; i < 5; i++) await record(`more${i}`);
  assert.deepEqual(
    files.slice(1).map((file) => readFileSync(file, 'utf8')),
    before.slice(1),
  );
  await rmdir(`${path}.next`);
  for (let i = 0; i < 5; i++) await record(`later${i}`);
  await recorder.close();
  assert.equal(recorder.dropped, 0);
  assert.equal(linesOf(path).at(-1)!.query, 'later4');
  const kept = files.flatMap((file) => linesOf(file).map(({ query }) => query));
  assert.ok(
    Array.from({ length: 5 }, (_, i) => `more${i}`).every((query) => kept.includes(query)),
    kept.join(),
  );
});

test('searches above the limit of waiting bytes are dropped and counted', async (t) => {
  const path = join(await tempFolder(t), 'record.jsonl');
  const recorder = await QueryRecorder.open({ path, maxFileBytes: LARGE, keep: 1, maxWaitingBytes: 20_000 });
  const search = await answer({ queries: ['a', 'b'], k: 5 });
  // In one time slice, before anything can be written.
  for (let i = 0; i < 200; i++) recorder.record({ i }, search);
  assert.ok(recorder.dropped > 0);
  await recorder.close();
  assert.equal(linesOf(path).length + recorder.dropped, 400);
  recorder.record({}, search);
  await recorder.flush();
  assert.equal(linesOf(path).length + recorder.dropped, 402, 'after closing everything is dropped');
});

test('a disk without space loses lines, reports it once and stops nothing', {
  skip: !existsSync('/dev/full') && '/dev/full does not exist',
}, async () => {
  const failures: unknown[] = [];
  const recorder = await QueryRecorder.open({
    path: '/dev/full',
    maxFileBytes: LARGE,
    keep: 0,
    onFailure: (error) => failures.push((error as NodeJS.ErrnoException).code),
  });
  for (let i = 0; i < 3; i++) {
    recorder.record({}, await answer({ queries: ['a', 'b'], k: 2 }));
    await recorder.flush();
  }
  await recorder.close();
  assert.deepEqual([recorder.dropped, failures], [6, ['ENOSPC']]);
});

test('a file that cannot be written is refused at the start', async (t) => {
  const folder = await tempFolder(t);
  await mkdir(join(folder, 'taken'));
  for (const path of [join(folder, 'none', 'x.jsonl'), join(folder, 'taken')]) {
    await assert.rejects(QueryRecorder.open({ path, maxFileBytes: LARGE, keep: 1 }), {
      code: 'OUTPUT_NOT_WRITABLE',
      message: /--record/,
    });
  }
});
