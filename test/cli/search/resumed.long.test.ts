import assert from 'node:assert/strict';
import { once } from 'node:events';
import { appendFileSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { importedCrossEncoder } from '../../encoder/rerank/tiny-cross-encoder.ts';
import { faultLibrary } from '../../helpers/fault-library.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { endOf, jsonOf, runTrawl, spawnTrawl } from '../run-trawl.ts';
import { index, type Line, linesOf, QUERIES, queries, search } from './searched-index.ts';

test('SIGTERM ends with the code to resume, and the same command completes the same output', async (t) => {
  const cwd = await tempFolder(t);
  const library = faultLibrary(cwd);
  if ('missing' in library) return t.skip(library.missing);
  // More batches than are in flight at a time.
  const many = join(cwd, 'many.jsonl');
  writeFileSync(many, readFileSync(queries, 'utf8').repeat(10));
  const argsFor = (file: string): string[] => [
    'search',
    index,
    '--queries',
    many,
    '--k',
    '7',
    '--out',
    join(cwd, file),
  ];
  assert.equal((await runTrawl(argsFor('expected.jsonl'))).code, 0);
  const [out, args] = [join(cwd, 'hits.jsonl'), argsFor('hits.jsonl')];
  // The second write of results.
  const env = library.environment({ under: `${out}.partial`, calls: 'write', at: 2, do: 'term' });
  const stopped = await endOf(spawnTrawl(args, { env }));
  assert.equal(stopped.code, 75, stopped.stderr);
  assert.match(stopped.stderr, /Stopped after \d+ of 7000 queries\. The same command resumes there/);
  assert.equal(existsSync(out), false);
  const changed = await runTrawl([...args, '--filter', 'part < 9', '--k', '8']);
  assert.equal(changed.code, 1);
  assert.match(
    changed.stderr,
    /--k was 7 and is 8; --filter was not set and is "part < 9".*--restart.*\[OUTPUT_DIFFERS\]/s,
  );
  const resumed = await runTrawl([...args, '--json']);
  const report = jsonOf<{ queries: number; resumed: number; failed: number }>(resumed);
  assert.ok(report.resumed > 0 && report.resumed < 10 * QUERIES, `resumed after ${report.resumed}`);
  assert.deepEqual({ ...report, resumed: 0 }, { out, queries: 10 * QUERIES, k: 7, resumed: 0, failed: 0 });
  assert.ok(readFileSync(out).equals(readFileSync(join(cwd, 'expected.jsonl'))));
});

test('a complete output is not searched again, unless its queries, options or bytes changed or --restart says so', async (t) => {
  const cwd = await tempFolder(t);
  const own = join(cwd, 'q.jsonl');
  writeFileSync(own, '{"id":"a","question":"word1"}\n{"id":"b","question":"word2"}\n');
  const out = join(cwd, 'rows.npy');
  const scores = join(cwd, 'scores.npy');
  const run = async (...args: string[]) => {
    const files = ['--queries', own, '--out', out, '--scores-out', scores];
    const ended = await runTrawl(['search', index, '--k', '3', ...files, ...args]);
    assert.equal(ended.code, 0, ended.stderr);
    // A new file has another inode, because it is renamed into its place.
    return { ...ended, isComplete: / is complete, /.test(ended.stderr), inode: statSync(out).ino };
  };
  const first = await run();
  assert.equal(first.isComplete, false);
  const again = await run();
  assert.match(
    again.stderr,
    /rows\.npy is complete, with the same queries, index and options\. Search again with --restart\./,
  );
  assert.equal(again.inode, first.inode);
  assert.deepEqual(readdirSync(cwd).sort(), ['q.jsonl', 'rows.npy', 'rows.npy.report.json', 'scores.npy']);
  const asJson = await run('--json');
  assert.deepEqual(jsonOf(asJson), { out, queries: 2, k: 3, resumed: 2, failed: 0 });
  assert.equal((await run('--restart')).isComplete, false);
  assert.equal((await run()).isComplete, true);
  assert.equal((await run('--k', '2')).isComplete, false);
  assert.equal((await run()).isComplete, false, 'the output is that of --k 2');
  appendFileSync(scores, 'x');
  assert.equal((await run()).isComplete, false);
  appendFileSync(own, '{"id":"c","question":"word3"}\n');
  assert.equal((await run()).isComplete, false);
});

test('--rerank orders the hits of every query as single queries with it do', async (t) => {
  const cwd = await tempFolder(t);
  const reranking = ['--rerank', await importedCrossEncoder(t), '--rerank-depth', '10', '--rerank-threads', '1'];
  const some = join(cwd, 'some.jsonl');
  writeFileSync(some, `${readFileSync(queries, 'utf8').split('\n').slice(0, 12).join('\n')}\n`);
  const lines = linesOf(await search(join(cwd, 'hits.jsonl'), '--queries', some, ...reranking));
  assert.equal(lines.length, 12);
  const places = new Set<number>();
  for (const [i, line] of readFileSync(some, 'utf8').trim().split('\n').entries()) {
    const {
      question,
      query,
      history_queries: history = [],
    } = JSON.parse(line) as {
      question: string;
      query?: string;
      history_queries?: string[];
    };
    const single = query === undefined ? [question] : [query, '--question', question];
    const args = [...single, ...history.flatMap((each) => ['--history', each]), '--k', '7', '--json', ...reranking];
    const { hits } = jsonOf<{ hits: Line['hits'] }>(await runTrawl(['search', index, ...args]));
    const shown = (hit: Line['hits'][number]): unknown => [hit.row, hit.score, hit.firstStage];
    assert.deepEqual(lines[i]!.hits.map(shown), hits.map(shown));
    for (const { firstStage } of lines[i]!.hits) places.add(firstStage!.rank);
  }
  assert.ok(Math.max(...places) > 7, 'hits that the search has beyond k');
});

test('a rerank server that fails ends the search, and the same command completes the same output', async (t) => {
  const cwd = await tempFolder(t);
  let requests = 0;
  let failsFrom = Number.POSITIVE_INFINITY;
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const part of request) body += String(part);
    if (++requests >= failsFrom) {
      response.writeHead(500).end();
      return;
    }
    const { texts } = JSON.parse(body) as { texts: string[] };
    response.end(JSON.stringify(texts.map((text, i) => ({ index: i, score: text.length / 1000 }))));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const reranking = ['--rerank', url, '--rerank-api', 'tei', '--rerank-depth', '30'];
  const expected = await search(join(cwd, 'expected.jsonl'), ...reranking);
  // One request a query. At most four batches of 136 queries are at work, so the first one is complete then.
  failsFrom = requests + 600;
  const out = join(cwd, 'hits.jsonl');
  const args = ['search', index, '--queries', queries, '--k', '7', '--out', out, ...reranking];
  const failed = await runTrawl(args);
  assert.equal(failed.code, 1, failed.stderr);
  assert.match(
    failed.stderr,
    /Query \d+ of 700 \(id "[^"]+"\): The rerank server failed: status 500\. The same command resumes after \d+ of 700 queries\. \[RERANK_FAILED\]/,
  );
  assert.deepEqual(readdirSync(cwd).sort(), [
    'expected.jsonl',
    'expected.jsonl.report.json',
    'hits.jsonl.lock',
    'hits.jsonl.partial',
    'hits.jsonl.progress',
  ]);
  failsFrom = Number.POSITIVE_INFINITY;
  const { resumed } = jsonOf<{ resumed: number }>(await runTrawl([...args, '--json']));
  assert.ok(resumed > 0 && resumed < QUERIES, `resumed after ${resumed}`);
  assert.ok(readFileSync(out).equals(expected));
});
