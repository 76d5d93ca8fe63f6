import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { ComparisonReport } from '../../cli/eval/comparison.ts';
import type { ServerReport } from '../../cli/eval/searched-system.ts';
import { sampleServer } from '../helpers/sample-server.ts';
import { fileFolder, jsonOf, runTrawl, SAMPLE, SAMPLE_PASSAGES, sampleIndex } from './run-trawl.ts';

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

/** A server in Search-R1's dialect whose answer to a query is decided by `answer`. */
async function fakeServer(t: TestContext, answer: (query: string, response: ServerResponse) => void): Promise<string> {
  const fake = createServer((request: IncomingMessage, response) => {
    let body = '';
    request.on('data', (part: Buffer) => (body += part.toString()));
    request.on('end', () => answer((JSON.parse(body) as { queries: string[] }).queries[0]!, response));
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
  assert.match(stderr, /5 of 8 searches failed and are left out of the metrics, such as: /);
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
