import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { ServerReport } from '../../evaluation/systems/ask-server.ts';
import type { ComparisonReport } from '../../evaluation/systems/comparison.ts';
import type { TrajectoryReport } from '../../training/trajectories/report/trajectory-report.ts';
import { sampleServer } from '../helpers/sample-server.ts';
import { step1Item } from '../training/trajectories/step1-item.ts';
import { fileFolder, jsonOf, runTrawl, SAMPLE, SAMPLE_PASSAGES, sampleIndex, serveIndex } from './run-trawl.ts';

interface ServerEvaluation {
  readonly queries: number;
  readonly judged: number;
  readonly failed: number;
  readonly metrics: Readonly<Record<string, number>>;
  readonly server: ServerReport;
}

const cwd = await fileFolder();
const index = await sampleIndex(cwd);
const server = await sampleServer();
const QUESTIONS = join(SAMPLE, 'questions.jsonl');
const ASKED = ['--queries', QUESTIONS, '--cutoffs', '1,5'];

const evaluate = (...args: string[]) => runTrawl(['eval', ...args], { cwd });

interface OwnMetrics {
  readonly metrics: Readonly<Record<string, number>>;
}

test('a server has the metrics of its index, in a dialect with ids', async () => {
  const { metrics } = jsonOf<OwnMetrics>(await evaluate(index, ...ASKED, '--json'));
  const asked = ['--url', `${server.url}/`, ...ASKED, '--concurrency', '3', '--queries-per-request', '8', '--json'];
  const report = jsonOf<ServerEvaluation>(await evaluate(...asked));
  assert.deepEqual(report.metrics, metrics);
  assert.equal(report.failed, 0);
  const { latencyMs, questionsPerSecond, ...counts } = report.server;
  assert.deepEqual(counts, {
    dialect: 'search-r1',
    matchedBy: 'id',
    concurrency: 3,
    queriesPerRequest: 8,
    requests: Math.ceil(report.queries / 8),
    repeated: 0,
    failures: {},
  });
  const { p50, p95, p99 } = latencyMs!;
  assert.ok(0 < p50 && p50 <= p95 && p95 <= p99);
  assert.ok(questionsPerSecond > 0);
  const native = jsonOf<ServerEvaluation>(
    await evaluate('--url', server.url, '--dialect', 'native', ...ASKED, '--json'),
  );
  assert.deepEqual([native.metrics, native.server.dialect], [metrics, 'native']);
});

test('agents’ queries are sent with their question as one text', async () => {
  const asked = ['--queries', join(SAMPLE, 'sub-queries.jsonl'), '--cutoffs', '5', '--json'];
  const own = jsonOf<OwnMetrics>(await evaluate(index, ...asked));
  assert.deepEqual(jsonOf<OwnMetrics>(await evaluate('--url', server.url, ...asked)).metrics, own.metrics);
});

test('without ids in the dialect, judgements of passages need the corpus, by whose texts passages are found', async () => {
  const own = jsonOf<OwnMetrics>(await evaluate(index, ...ASKED, '--json'));
  const asked = ['--url', server.url, '--dialect', 'ultrarag', ...ASKED];
  const bare = await evaluate(...asked, '--json');
  const report = jsonOf<ServerEvaluation>(bare);
  assert.deepEqual([report.server.matchedBy, report.judged, report.metrics['recall@5']], [null, 0, undefined]);
  assert.equal(report.metrics['answer_hit@5'], own.metrics['answer_hit@5']);
  assert.match(
    bare.stderr,
    /the replies \(ultrarag\) have no ids, so judgements of passages are not used\. Pass --corpus FILE/,
  );
  const matched = jsonOf<ServerEvaluation>(await evaluate(...asked, '--corpus', SAMPLE_PASSAGES, '--json'));
  assert.equal(matched.server.matchedBy, 'text');
  assert.deepEqual(matched.metrics, own.metrics);
  // Without a title, too.
  const verl = ['--url', server.url, '--dialect', 'verl-tool', '--queries', QUESTIONS, '--cutoffs', '3'];
  const tool = jsonOf<ServerEvaluation>(await evaluate(...verl, '--corpus', SAMPLE_PASSAGES, '--json'));
  const three = jsonOf<OwnMetrics>(await evaluate(index, '--queries', QUESTIONS, '--cutoffs', '3', '--json'));
  assert.deepEqual(tool.metrics, three.metrics);
});

test('an index and a server are compared, and the text report has the latency', async () => {
  const { stdout } = await evaluate(index, ...ASKED, '--compare', `served=${server.url}?dialect=skyrl&concurrency=2`);
  assert.match(stdout, /^ {2}served: skyrl at http:\/\/127\.0\.0\.1:\d+$/m);
  assert.match(stdout, /^ {2}served: latency p50 .+, p95 .+, p99 .+; \d+\.\d questions\/s$/m);
  assert.match(stdout, /^recall@5 +0\.0000 .* 1\.000 +0 +0 +147$/m);
  const single = await evaluate('--url', server.url, ...ASKED);
  assert.match(
    single.stdout,
    /^search-r1 at http:\S+: 147 requests of 1 query, 4 at a time, 0 repeated; matched by id\nlatency p50 .*\nqueries 147/,
  );
});

/** A server in the dialect of Search-R1 or Serper whose answer to a query is decided by `answer`. */
async function fakeServer(t: TestContext, answer: (query: string, response: ServerResponse) => void): Promise<string> {
  const fake = createServer((request: IncomingMessage, response) => {
    let body = '';
    request.on('data', (part: Buffer) => (body += part.toString()));
    request.on('end', () => {
      const { queries = [], q } = JSON.parse(body) as { queries?: string[]; q?: string };
      answer(q ?? queries[0]!, response);
    });
  });
  await new Promise<void>((resolve) => fake.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    fake.closeAllConnections();
    fake.close();
  });
  return `http://127.0.0.1:${(fake.address() as AddressInfo).port}`;
}

const found = (...ids: string[]): string =>
  JSON.stringify({ result: [ids.map((id) => ({ document: { id, contents: `"T"\n${id}` }, score: 1 }))] });

function write(name: string, rows: readonly object[]): string {
  const path = join(cwd, name);
  writeFileSync(path, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  return path;
}

test('failed searches are counted by their reasons, left out of the metrics, and the exit code is 3', async (t) => {
  let refused = 0;
  const url = await fakeServer(t, (query, response) => {
    if (query === 'slow') return;
    if (query === 'busy' && refused++ < 1) response.writeHead(503, { 'retry-after': '0' }).end();
    else if (query === 'broken') response.writeHead(500).end('{"error": {"code": "ENCODER_FAILED"}}');
    else if (query === 'html') response.end('<html>');
    else if (query === 'odd') response.end('{"results": []}');
    else if (query === 'short') response.end('{"result": []}');
    else response.end(found('a', 'b'));
  });
  const queries = ['good', 'busy', 'broken', 'html', 'odd', 'short', 'slow', 'bad'];
  const file = write(
    'failing.jsonl',
    queries.map((question) => ({ id: question, question, gold_ids: [question === 'bad' ? 'elsewhere' : 'a'] })),
  );
  const asked = ['--url', url, '--queries', file, '--cutoffs', '2', '--request-timeout-ms', '300'];
  const { code, stdout, stderr } = await evaluate(...asked, '--json');
  assert.equal(code, 3, stderr);
  const report = JSON.parse(stdout) as ServerEvaluation;
  assert.deepEqual(report.server.failures, {
    'it answered 500 ENCODER_FAILED': 1,
    'its reply is not JSON': 1,
    'its reply has nothing in place of a list "result"': 1,
    'its reply has 0 lists for 1 queries': 1,
    'no answer within 300 ms': 1,
  });
  assert.deepEqual([report.failed, report.queries, report.server.repeated], [5, 3, 5]);
  // Of good, busy and bad.
  assert.equal(report.metrics['recall@2'], 2 / 3);
  assert.match(stderr, /5 of 8 searches failed, such as: .*\. Their questions are left out of the metrics\./);
});

test('a server that cannot be asked at all is refused with the reason', async (t) => {
  const file = write('one.jsonl', [{ id: 'q', question: 'good', gold_ids: ['a'] }]);
  const fails = async (url: string, message: RegExp, ...more: string[]): Promise<void> => {
    const { code, stderr } = await evaluate('--url', url, '--queries', file, ...more);
    assert.equal(code, 1);
    assert.match(stderr, message);
  };
  const url = await fakeServer(t, (_, response) => void response.writeHead(404).end('no'));
  await fails(url, /\/retrieve cannot be asked in the dialect search-r1: it answered 404\. .*--dialect names another/);
  const other = await fakeServer(t, (_, response) => void response.end('[]'));
  await fails(other, /its reply has \[\] in place of an object with "result"/);
});

test('passages without id, short lists and passages of other ids are said', async (t) => {
  const url = await fakeServer(t, (query, response) => {
    if (query === 'other') response.end(found('x'));
    else
      response.end(
        '{"result": [[{"document": {"contents": "no id"}}, {"document": {"id": 12345678901234567890, "contents": "x"}}]]}',
      );
  });
  const file = write('ids.jsonl', [
    { id: 'q', question: 'q', gold_ids: ['12345678901234567890'] },
    { id: 'r', question: 'other', gold_ids: ['a'] },
  ]);
  const { stdout, stderr } = await evaluate('--url', url, '--queries', file, '--cutoffs', '2', '--json');
  assert.equal((JSON.parse(stdout) as ServerEvaluation).metrics['recall@2'], 0.5);
  assert.match(stderr, /1 of 3 passages have no id and count as not relevant/);
  assert.match(stderr, /1 of 2 lists have fewer than 2 passages/);
});

const hit = (id: string | undefined, contents: string, score?: number) => ({
  document: { id, contents },
  score,
});
const hits = (...list: readonly object[]): string => JSON.stringify({ result: [list] });

test('passages without ids of several queries are fused by their texts, not by their ranks', async (t) => {
  const url = await fakeServer(t, (query, response) =>
    response.end(
      query === 'one'
        ? hits(hit(undefined, 'nothing'), hit(undefined, 'the answer is here'))
        : hits(hit(undefined, 'the answer is here'), hit(undefined, 'nothing else')),
    ),
  );
  const file = write('several.jsonl', [
    { id: 'q', question: 'q', queries: ['one', 'two'], golden_answers: ['answer'] },
    { id: 'r', question: 'r', queries: ['two', 'one'], golden_answers: ['nothing else'] },
  ]);
  const asked = ['--url', url, '--queries', file, '--query-form', 'queries', '--cutoffs', '1,3', '--json'];
  const { metrics } = jsonOf<ServerEvaluation>(await evaluate(...asked));
  // 1/61 + 1/62 puts the passage of both lists first; the passages of either list follow.
  assert.deepEqual([metrics['answer_hit@1'], metrics['answer_hit@3']], [0.5, 1]);
});

test('with --corpus, an id of the server that equals a judged one by chance is no relevant passage', async (t) => {
  const url = await fakeServer(t, (_, response) => response.end(hits(hit('g', 'something else'))));
  const corpus = write('chance.jsonl', [{ id: 'g', contents: 'the gold text' }]);
  const file = write('chance-q.jsonl', [{ id: 'q', question: 'q', gold_ids: ['g'], golden_answers: ['something'] }]);
  const asked = ['--url', url, '--queries', file, '--cutoffs', '1'];
  const ended = await evaluate(...asked, '--corpus', corpus, '--json');
  assert.equal(ended.code, 3);
  const { metrics } = JSON.parse(ended.stdout) as ServerEvaluation;
  assert.deepEqual([metrics['recall@1'], metrics['answer_hit@1']], [0, 1]);
  assert.match(ended.stderr, /none of 1 passages has the text of a relevant one\. Check that --corpus is/);
  assert.match(ended.stderr, /No search found a judged passage/);
});

test('a server whose ids are not those of the judgements is said, even where answers are found', async (t) => {
  const url = await fakeServer(t, (_, response) => response.end(hits(hit('7', 'the answer'))));
  const file = write('other-ids.jsonl', [{ id: 'q', question: 'q', gold_ids: ['p7'], golden_answers: ['answer'] }]);
  const ended = await evaluate('--url', url, '--queries', file, '--cutoffs', '1', '--json');
  assert.equal(ended.code, 3);
  assert.equal((JSON.parse(ended.stdout) as ServerEvaluation).metrics['answer_hit@1'], 1);
  assert.match(ended.stderr, /none of 1 passages has the id of a relevant one\. Check that the judgements use the ids/);
});

test('with --corpus, a text that relevant passages of two questions have is relevant for both', async (t) => {
  const url = await fakeServer(t, (_, response) => response.end(hits(hit(undefined, '"T"\nSame text here.'))));
  const corpus = write(
    'copies.jsonl',
    ['a', 'b', 'c'].map((id) => ({ id, title: 'T', text: 'Same text here.' })),
  );
  const file = write('copies-q.jsonl', [
    { id: 'q', question: 'q', gold_ids: ['a'] },
    { id: 'r', question: 'r', gold_ids: ['b'] },
  ]);
  const asked = ['--url', url, '--queries', file, '--cutoffs', '1', '--corpus', corpus, '--json'];
  const ended = await evaluate(...asked);
  assert.equal(jsonOf<ServerEvaluation>(ended).metrics['recall@1'], 1);
  assert.doesNotMatch(ended.stderr, /relevant passages are not in/);
});

test('a server whose limit is k is refused with the passage more that was asked for', async (t) => {
  const limited = await serveIndex(t, index, ['--max-k', '5']);
  const asked = ['--url', limited.url, '--dialect', 'native', '--queries', QUESTIONS, '--cutoffs', '5'];
  const refused = await evaluate(...asked, '--ignore-identical-ids', 'yes');
  assert.equal(refused.code, 1);
  assert.match(
    refused.stderr,
    /K_TOO_LARGE.* It was asked for 6 passages a query, because the question's own does not count; --ignore-identical-ids no asks for 5\./,
  );
  assert.equal((await evaluate(...asked)).code, 0);
});

test('with --corpus the own passage of a question counts, because only relevant passages have ids', async () => {
  const lines = readFileSync(SAMPLE_PASSAGES, 'utf8').trimEnd().split('\n').slice(0, 4);
  const rows = lines.map((line) => JSON.parse(line) as { id: string; text: string });
  // Each passage asks for the next one, as in Quora. Only the second and the third are relevant to a question.
  const asked = rows
    .slice(0, 2)
    .map(({ id, text }, i) => ({ id, question: text.slice(0, 300), gold_ids: [rows[i + 1]!.id] }));
  writeFileSync(join(cwd, 'own.jsonl'), asked.map((row) => `${JSON.stringify(row)}\n`).join(''));
  const reportOf = (...more: string[]) =>
    evaluate('--url', server.url, '--queries', 'own.jsonl', '--cutoffs', '1', '--ignore-identical-ids', 'yes', ...more);
  assert.match((await reportOf()).stderr, /2 questions of 2 found the passage with the question's own id/);
  assert.doesNotMatch((await reportOf('--corpus', SAMPLE_PASSAGES)).stderr, /own id/);
});

test('an excerpt is searched for answers as a text without title is, and the report says that it is one', async (t) => {
  const organic = [{ title: 'The answer', snippet: 'an excerpt' }];
  const url = await fakeServer(t, (_, response) => response.end(JSON.stringify({ organic })));
  const file = write('excerpts.jsonl', [
    { id: 'q', question: 'q', golden_answers: ['answer'] },
    { id: 'r', question: 'r', golden_answers: ['excerpt'] },
  ]);
  const asked = ['--url', url, '--dialect', 'serper', '--queries', file, '--cutoffs', '1', '--json'];
  const ended = await evaluate(...asked);
  assert.equal(jsonOf<ServerEvaluation>(ended).metrics['answer_hit@1'], 0.5);
  assert.match(ended.stderr, /the replies \(serper\) have excerpts, so answers are looked for in these/);
});

test('where a system fails, all systems are compared over the questions that all of them answered', async (t) => {
  const serverThatFails = (...failing: string[]): Promise<string> =>
    fakeServer(t, (query, response) => {
      if (failing.includes(query)) response.writeHead(500).end();
      else response.end(hits(hit(query.startsWith('hard') ? 'x' : 'g', 'x')));
    });
  const file = write(
    'partly.jsonl',
    ['easy', 'easy 2', 'hard', 'hard 2'].map((question) => ({ id: question, question, gold_ids: ['g'] })),
  );
  // Alone, the second has 1 and the first 0.5, with the same answers to what both answer.
  const [whole, one, two] = [await serverThatFails(), await serverThatFails('hard'), await serverThatFails('hard 2')];
  const page = join(cwd, 'partly.html');
  const asked = ['--url', whole, '--queries', file, '--cutoffs', '1', '--compare', `one=${one}`];
  const json = await evaluate(...asked, '--compare', `two=${two}`, '--html', page, '--json');
  assert.equal(json.code, 3);
  const report = JSON.parse(json.stdout) as ComparisonReport;
  assert.deepEqual([report.asked, report.answered], [4, 2]);
  assert.deepEqual(
    report.systems.map(({ failed, metrics }) => [failed, metrics['recall@1']]),
    [
      [0, 1],
      [1, 1],
      [1, 1],
    ],
  );
  for (const { metrics } of report.comparisons) {
    const { queries, first, second, difference } = metrics['recall@1']!;
    assert.deepEqual([queries, first, second, difference], [2, 1, 1, 0]);
  }
  assert.match(readFileSync(page, 'utf8'), /All metrics are of the 2 of 4 questions that every system answered\./);
  const { stdout } = await evaluate(...asked);
  assert.match(stdout, /^All metrics are of the 3 of 4 questions that every system answered\.$/m);
  assert.match(stdout, /^ {2}one: search-r1 at http:\S+, the search of 1 question failed$/m);
  assert.match(stdout, /^recall@1 +0\.6667 +0\.6667$/m);
});

test('where every question has a failed search, --by does not hide that', async (t) => {
  const good = await fakeServer(t, (_query, response) => response.end(hits(hit('g', 'x'))));
  // What is asked first shows that it is a server.
  let asked = 0;
  const failing = await fakeServer(t, (_query, response) => {
    if (asked++ === 0) response.end(hits(hit('g', 'x')));
    else response.writeHead(500).end();
  });
  const file = write('unanswered.jsonl', [{ id: 'q', question: 'easy', gold_ids: ['g'] }]);
  const compared = ['--queries', file, '--cutoffs', '1', '--compare', `failing=${failing}`, '--by', 'recall@1'];
  const { code, stdout, stderr } = await evaluate('--url', good, ...compared, '--json');
  assert.equal(code, 1, stderr);
  assert.match(stderr, /Every question has a failed search, so nothing was measured\./);
  const { answered, systems, comparisons } = JSON.parse(stdout) as ComparisonReport;
  assert.deepEqual([answered, systems.map(({ failed }) => failed), comparisons[0]!.changed], [0, [0, 1], null]);
});

test('of passages with one id all texts and ranks count, and a run has the first', async (t) => {
  const url = await fakeServer(t, (_, response) =>
    response.end(hits(hit('d', 'first', 3), hit('d', 'the answer', 2), hit('e', 'third', 1))),
  );
  const file = write('chunks.jsonl', [{ id: 'q', question: 'q', gold_ids: ['e'], golden_answers: ['answer'] }]);
  const run = join(cwd, 'chunks.run');
  const asked = ['--url', url, '--queries', file, '--cutoffs', '3', '--run', run, '--json'];
  const { metrics } = jsonOf<ServerEvaluation>(await evaluate(...asked));
  assert.deepEqual([metrics['answer_hit@3'], metrics.mrr], [1, 1 / 3]);
  assert.equal(readFileSync(run, 'utf8'), 'q Q0 d 1 3 trawl\nq Q0 e 2 1 trawl\n');
});

test('a run has −rank as the scores where those of the server rise or are missing', async (t) => {
  const scores: Readonly<Record<string, readonly (number | undefined)[]>> = {
    rising: [0.1, 0.5],
    missing: [undefined, undefined],
  };
  for (const [name, [first, second]] of Object.entries(scores)) {
    const url = await fakeServer(t, (_, response) => response.end(hits(hit('a', 'x', first), hit('b', 'y', second))));
    const file = write('scores.jsonl', [{ id: 'q', question: 'q', gold_ids: ['a'] }]);
    const run = join(cwd, `${name}.run`);
    const { stderr } = await evaluate('--url', url, '--queries', file, '--cutoffs', '2', '--run', run);
    assert.match(stderr, /scores are missing or rise with the rank, so the run has −rank as the scores/, name);
    assert.equal(readFileSync(run, 'utf8'), 'q Q0 a 1 -1 trawl\nq Q0 b 2 -2 trawl\n', name);
  }
});

test('an id with white space ends an evaluation with --run at its reply', async (t) => {
  let asked = 0;
  const url = await fakeServer(t, (query, response) => {
    asked += 1;
    response.end(query === 'q3' ? hits(hit('a b', 'x')) : hits(hit('a', 'x')));
  });
  const file = write(
    'spaced.jsonl',
    Array.from({ length: 40 }, (_, i) => ({ id: `q${i}`, question: `q${i}`, gold_ids: ['a'] })),
  );
  const args = ['--url', url, '--queries', file, '--cutoffs', '1', '--concurrency', '1'];
  const { code, stderr } = await evaluate(...args, '--run', join(cwd, 'spaced.run'));
  assert.equal(code, 2);
  assert.match(stderr, /The passage id "a b" cannot be written to a TREC run/);
  // The trial and four questions.
  assert.equal(asked, 5);
  const without = await evaluate(...args);
  assert.equal(without.code, 0, without.stderr);
});

test('a repeated request counts as repeated also if its reply is an error', async (t) => {
  let refused = 0;
  const url = await fakeServer(t, (query, response) => {
    if (query !== 'broken') response.end(hits(hit('a', 'x')));
    else if (refused++ < 2) response.writeHead(503, { 'retry-after': '0' }).end();
    else response.writeHead(500).end();
  });
  const file = write('broken.jsonl', [
    { id: 'q', question: 'good', gold_ids: ['a'] },
    { id: 'r', question: 'broken', gold_ids: ['a'] },
  ]);
  const { stdout } = await evaluate('--url', url, '--queries', file, '--cutoffs', '1', '--json');
  const { server: report, failed } = JSON.parse(stdout) as ServerEvaluation;
  assert.deepEqual([report.repeated, report.failures, failed], [2, { 'it answered 500': 1 }, 1]);
});

test('what trajectories would have been shown leaves out failed questions, and judgements without ids', async (t) => {
  let hasIds = true;
  const url = await fakeServer(t, (query, response) => {
    if (query === 'broken') response.writeHead(500).end();
    else response.end(hits(hit(hasIds ? 'a' : undefined, 'the answer')));
  });
  const gold = { gold_ids: ['a'], golden_answers: ['answer'] };
  const file = write('agents.jsonl', [
    { id: 'q', question: 'Q?', ...gold },
    { id: 'r', question: 'R?', ...gold },
  ]);
  const steps = (name: string, ...items: object[]): string => {
    const path = join(cwd, name);
    writeFileSync(path, JSON.stringify(items));
    return path;
  };
  const good = step1Item({ id: 'q', question: 'Q?', answers: ['answer'], searches: [{ query: 'good' }] });
  const broken = step1Item({
    id: 'r',
    question: 'R?',
    answers: ['answer'],
    searches: [{ query: 'good' }, { query: 'broken' }],
  });
  const asked = [
    '--url',
    url,
    '--queries',
    file,
    '--query-form',
    'queries',
    '--cutoffs',
    '1',
    '--json',
    '--trajectories',
  ];
  const reportOf = async (path: string) => {
    const { stdout, code } = await evaluate(...asked, path);
    return { code, ...(JSON.parse(stdout) as ServerEvaluation & { readonly coverage: TrajectoryReport }) };
  };
  const both = await reportOf(steps('both.json', good, broken));
  assert.deepEqual([both.code, both.failed, both.coverage.all.trajectories, both.coverage.all.goldAny], [3, 1, 1, 1]);
  // Of its two queries one was answered, but not the question.
  const alone = await reportOf(steps('broken.json', broken));
  assert.deepEqual([alone.server.questionsPerSecond, alone.server.requests], [0, 2]);
  hasIds = false;
  const { server: report, coverage } = await reportOf(steps('good.json', good));
  const { judged, goldAny, answer } = coverage.all;
  assert.deepEqual([report.matchedBy, judged, goldAny, answer], [null, 0, null, 1]);
});

test('options that a system does not use are refused', async () => {
  const cases: readonly (readonly [string[], RegExp])[] = [
    [['--queries', QUESTIONS], /Expected either an index or --url URL; neither is given/],
    [[index, '--url', server.url, '--queries', QUESTIONS], /compare both with --compare URL/],
    [
      ['--url', 'localhost:8000', '--queries', QUESTIONS],
      /--url is \\?"localhost:8000\\?"; expected the URL of a server/,
    ],
    [['--url', server.url, '--queries', QUESTIONS, '--mode', 'bm25'], /--mode has no effect with a server/],
    [[index, '--queries', QUESTIONS, '--dialect', 'skyrl'], /--dialect has no effect with an index/],
    [
      [index, '--queries', QUESTIONS, '--compare', `${server.url}?mode=bm25`],
      /mode of .* has no effect: http\S+ is a server/,
    ],
    [[index, '--queries', QUESTIONS, '--compare', '?dialect=skyrl'], /is an index, which is not asked over HTTP/],
    [
      ['--url', server.url, '--queries', QUESTIONS, '--dialect', 'rerank'],
      /--dialect is "rerank"; expected one of search-r1/,
    ],
  ];
  for (const [args, message] of cases) {
    const { code, stderr } = await evaluate(...args);
    assert.equal(code, 2, `${args.join(' ')}: ${stderr}`);
    assert.match(stderr, message);
  }
});

test('the JSON of a comparison has the latency of a server, and the page, too', async () => {
  const page = join(cwd, 'page.html');
  const asked = [index, ...ASKED, '--compare', `s=${server.url}`, '--html', page, '--json'];
  const { systems } = jsonOf<ComparisonReport>(await evaluate(...asked));
  assert.deepEqual([systems[0]!.server, systems[1]!.server?.matchedBy], [undefined, 'id']);
  assert.match(readFileSync(page, 'utf8'), /latency p50/);
});
