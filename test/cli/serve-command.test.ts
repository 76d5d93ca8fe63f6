import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { EXIT } from '../../cli/program/command.ts';
import { toyModel } from '../encoder/model-fixtures.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { freePort } from './free-port.ts';
import {
  endOf,
  fileFolder,
  postJson,
  type RunOptions,
  runTrawl,
  sampleIndex,
  serveIndex,
  spawnTrawl,
} from './run-trawl.ts';

const folder = await fileFolder();
let index: string;
before(async () => {
  index = await sampleIndex(folder);
});

interface Answer {
  readonly result: readonly (readonly { readonly document: { readonly id: string }; readonly score: number }[])[];
}

/** A request that takes long enough to be running when a signal arrives. */
function longRequest(count: number): { queries: string[]; topk: number } {
  return { queries: Array.from({ length: count }, (_, i) => `query ${i} about rivers, bridges and painters`), topk: 3 };
}

const TO_BE_ANSWERED = longRequest(4_000);
/** Takes so long that it is disconnected on any machine. */
const TO_BE_DISCONNECTED = longRequest(20_000);

test('trawl serve answers /retrieve, /livez, /readyz and the search page, and ends on SIGTERM', async (t) => {
  const { url, child, ended } = await serveIndex(t, index);
  const { status, body } = await postJson<Answer>(url, {
    queries: ['designer of the Brooklyn Bridge', 'longest river in the Czech Republic'],
    topk: 2,
    return_scores: true,
  });
  assert.equal(status, 200);
  assert.deepEqual(
    body.result.map((hits) => [hits.length, hits[0]!.document.id]),
    [
      [2, 's-0001'],
      [2, 's-0066'],
    ],
  );
  assert.deepEqual(await (await fetch(`${url}/livez`)).json(), { status: 'alive' });
  const ready = (await (await fetch(`${url}/readyz`)).json()) as Record<string, unknown>;
  assert.deepEqual([ready.status, ready.index, ready.rows], ['ready', 'sample', 270]);
  assert.match(await (await fetch(url)).text(), /<html/);
  child.kill('SIGTERM');
  const { code, signal, stdout, stderr } = await ended;
  assert.deepEqual([code, signal], [0, null]);
  const facts = JSON.parse(stdout) as Record<string, unknown>;
  assert.deepEqual([facts.url, facts.pid, facts.rows], [url, child.pid, 270]);
  const log = stderr
    .trimEnd()
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  const answered = log.find(({ msg }) => msg === 'retrieved')!;
  assert.deepEqual([answered.queries, answered.k, typeof answered.totalMs], [2, 2, 'number']);
  assert.match(String(answered.time), /^\d{4}-\d\d-\d\dT/);
  assert.doesNotMatch(stderr, /Brooklyn/);
});

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test(`on ${signal} the server finishes the running request, refuses new ones and exits with 0`, async (t) => {
    const { url, child, ended } = await serveIndex(t, index);
    const running = postJson<Answer>(url, TO_BE_ANSWERED);
    await new Promise((resolve) => setTimeout(resolve, 300));
    child.kill(signal);
    const { status, body } = await running;
    assert.equal(status, 200);
    assert.equal(body.result.length, TO_BE_ANSWERED.queries.length);
    const { code, stderr } = await ended;
    assert.equal(code, 0);
    assert.match(stderr, /stopping after the running requests/);
    await assert.rejects(fetch(`${url}/livez`));
  });
}

test('a second signal stops the server at once, without an abort of native code', async (t) => {
  const { url, child, ended } = await serveIndex(t, index);
  const running = postJson(url, TO_BE_DISCONNECTED).then(
    () => 'answered',
    () => 'disconnected',
  );
  await new Promise((resolve) => setTimeout(resolve, 200));
  child.kill('SIGTERM');
  await new Promise((resolve) => setTimeout(resolve, 50));
  child.kill('SIGTERM');
  const { code, signal } = await ended;
  assert.deepEqual([code, signal], [EXIT.interrupted, null]);
  assert.equal(await running, 'disconnected');
});

test('with --grace-s 0 running requests are disconnected, and the exit code is still 0', async (t) => {
  const { url, child, ended } = await serveIndex(t, index, ['--grace-s', '0']);
  const running = postJson(url, TO_BE_DISCONNECTED).then(
    () => 'answered',
    () => 'disconnected',
  );
  await new Promise((resolve) => setTimeout(resolve, 300));
  child.kill('SIGTERM');
  const { code, signal } = await ended;
  assert.deepEqual([code, signal, await running], [0, null, 'disconnected']);
});

/** Preloads a module with which the requests and the closing of an index never end. */
async function stuckIndex(): Promise<RunOptions> {
  const file = join(folder, 'stuck.mjs');
  const retriever = new URL('../../src/search/index-retriever.js', import.meta.url).href;
  await writeFile(
    file,
    `import { isMainThread } from 'node:worker_threads';
    if (isMainThread) {
      const { IndexRetriever } = await import(${JSON.stringify(retriever)});
      const { retrieve } = IndexRetriever.prototype;
      let calls = 0;
      // The first query is the server's own at the start; without its answer the server is not ready.
      IndexRetriever.prototype.retrieve = function (call) {
        return calls++ === 0 ? retrieve.call(this, call) : new Promise(() => {});
      };
      IndexRetriever.prototype.close = () => new Promise(() => {});
    }`,
  );
  return { env: { NODE_OPTIONS: `--import=${pathToFileURL(file).href}` }, unbundled: true };
}

test('after the grace period the server abandons requests that hang, and exits with 0', async (t) => {
  const { url, child, ended } = await serveIndex(t, index, ['--grace-s', '1'], await stuckIndex());
  const running = postJson(url, { queries: ['x'] }).then(
    () => 'answered',
    () => 'disconnected',
  );
  await new Promise((resolve) => setTimeout(resolve, 200));
  const start = performance.now();
  child.kill('SIGTERM');
  const { code, signal, stderr } = await ended;
  assert.deepEqual([code, signal, await running], [0, null, 'disconnected']);
  assert.match(stderr, /stopping: the time limit .* is over, but not all parts are closed/);
  const tookMs = performance.now() - start;
  assert.ok(tookMs >= 1_000 && tookMs < 20_000, `${tookMs} ms`);
});

test('a second signal ends a server that hangs, before the grace period is over', async (t) => {
  const { child, ended } = await serveIndex(t, index, ['--grace-s', '60'], await stuckIndex());
  child.kill('SIGTERM');
  await new Promise((resolve) => setTimeout(resolve, 300));
  child.kill('SIGTERM');
  const { code } = await ended;
  assert.equal(code, EXIT.interrupted);
});

test('a signal during the start of the server ends it without a crash', async () => {
  for (const pause of [300, 600]) {
    const child = spawnTrawl(['serve', index, '--port', '0']);
    const ended = endOf(child);
    await new Promise((resolve) => setTimeout(resolve, pause));
    child.kill('SIGINT');
    const { code, signal, stderr } = await ended;
    // Before the program handles signals, the signal itself ends it.
    assert.ok(code === 0 || signal === 'SIGINT', `${code} ${signal}: ${stderr}`);
    assert.doesNotMatch(stderr, /core dumped|terminate called|INTERNAL/);
  }
});

test('the server prints its address, a command to try and how to stop it; with --quiet it prints nothing', async (t) => {
  const child = spawnTrawl(['serve', index, '--port', '0']);
  t.after(() => child.kill('SIGKILL'));
  const ended = endOf(child);
  let stderr = '';
  child.stderr!.on('data', (text: string) => (stderr += text));
  while (!stderr.includes('Ctrl-C')) await once(child.stderr!, 'data');
  const [, url] = /on (http:\/\/127\.0\.0\.1:\d+)\n/.exec(stderr)!;
  assert.match(stderr, /Serving sample \(270 passages, token-average-256\) on http/);
  assert.ok(stderr.includes(`search page   ${url}/\n`));
  const [, curl] = /try it {8}(curl .*)\n/.exec(stderr)!;
  const answer = spawn('bash', ['-c', curl!], { stdio: ['ignore', 'pipe', 'inherit'] });
  const { stdout } = await endOf(answer);
  assert.equal((JSON.parse(stdout) as Answer).result[0]!.length, 3);
  child.kill('SIGINT');
  assert.equal((await ended).code, 0);

  const quiet = await serveIndex(t, index, ['--quiet']);
  assert.equal((await postJson(quiet.url, { queries: ['x'] })).status, 200);
  quiet.child.kill('SIGINT');
  assert.equal((await quiet.ended).stderr, '');
});

test('the server applies the limits of its options to k and to the number of queries', async (t) => {
  const { url, child, ended } = await serveIndex(t, index, ['--topk', '2', '--max-k', '4', '--max-queries', '3']);
  const answer = await postJson<{ result: unknown[][] }>(url, { queries: ['a'] });
  assert.equal(answer.body.result[0]!.length, 2);
  assert.equal((await postJson(url, { queries: ['a'], topk: 5 })).status, 422);
  assert.equal((await postJson(url, { queries: ['a', 'b', 'c', 'd'] })).status, 413);
  child.kill('SIGTERM');
  assert.equal((await ended).code, 0);
});

test('the server applies the limits of its options to length and waiting, and those of a --listen address only there', async (t) => {
  const port = await freePort();
  const { url, child, ended } = await serveIndex(t, index, [
    ...['--max-query-chars', '40', '--cache-bytes', '0', '--no-single-flight', '--max-waiting-mib', '8'],
    ...['--listen', `${port}=search-r1:deadline-ms=1:shed-after-ms=60000`],
  ]);
  assert.equal((await postJson(url, { queries: ['x'.repeat(41)] })).status, 413);
  const queries = Array.from({ length: 3_000 }, (_, i) => `a text of its own ${i}`);
  assert.equal((await postJson(url, { queries })).status, 200);
  const late = await postJson<{ error: { code: string } }>(`http://127.0.0.1:${port}`, { queries });
  assert.deepEqual([late.status, late.body.error.code], [503, 'DEADLINE_EXCEEDED']);
  child.kill('SIGTERM');
  assert.equal((await ended).code, 0);
});

test('a port in use is an error that names the port and --port', async (t) => {
  const taken = createServer().listen(0, '127.0.0.1');
  t.after(() => taken.close());
  await once(taken, 'listening');
  const { port } = taken.address() as { port: number };
  const { code, stderr } = await runTrawl(['serve', index, '--port', `${port}`]);
  assert.equal(code, 1);
  assert.match(
    stderr,
    new RegExp(`^trawl: 127\\.0\\.0\\.1:${port} is in use by another program\\. .*--port\\. \\[PORT_IN_USE\\]\n$`),
  );
});

test('an address that the machine does not have is an error that names it and --host', async () => {
  const { code, stderr } = await runTrawl(['serve', index, '--host', '192.0.2.1', '--port', '0']);
  assert.equal(code, 2);
  assert.match(
    stderr,
    /Cannot listen on 192\.0\.2\.1:0: this machine does not have that address\. Choose another --host or --port\. \[USAGE\]\n$/,
  );
});

test('the server does not start with a missing or different encoder', async (t) => {
  const missing = await runTrawl(['serve', index, '--port', '0', '--model', './none', '--quiet']);
  assert.equal(missing.code, 1);
  assert.match(missing.stderr, /none.*\[MODEL_NOT_FOUND\]\n$/);
  const other = await runTrawl(['serve', index, '--port', '0', '--model', await toyModel(t), '--quiet']);
  assert.equal(other.code, 1);
  assert.match(other.stderr, /built with token-average-256, but the query encoder is toy\. .*\[MODEL_MISMATCH\]\n$/);
});

test('a request that waits for a start that fails is answered 503 with the reason, and the server ends with 1', async (t) => {
  // The trial request to the rerank server holds the start until a client waits, and then fails.
  const events = new EventEmitter();
  const [trial, released] = [once(events, 'trial'), once(events, 'released')];
  const rerankServer = createHttpServer(async ({ method }, response) => {
    if (method === 'POST') {
      events.emit('trial');
      await released;
    }
    response.writeHead(400).end('{"error": "this server does not rerank"}');
  }).listen(0, '127.0.0.1');
  t.after(() => rerankServer.close());
  await once(rerankServer, 'listening');
  const port = `${await freePort()}`;
  const rerank = `http://127.0.0.1:${(rerankServer.address() as { port: number }).port}`;
  const ended = endOf(spawnTrawl(['serve', index, '--port', port, '--rerank', rerank, '--rerank-api', 'tei']));
  await trial;
  const waiting = postJson<{ detail: unknown; error: { code: string } }>(`http://127.0.0.1:${port}`, {
    queries: ['a'],
  });
  const readiness = (await (await fetch(`http://127.0.0.1:${port}/readyz`)).json()) as { status: string };
  assert.equal(readiness.status, 'starting');
  events.emit('released');
  const { status, body } = await waiting;
  assert.equal(status, 503);
  assert.equal(body.error.code, 'NOT_READY');
  const { code, stderr } = await ended;
  assert.equal(code, 1);
  assert.match(stderr, /cannot be used.*\[RERANK_FAILED\]\n$/);
});

test('on a terminal the log has readable lines instead of JSON', {
  skip: process.platform === 'linux' ? false : 'the options of `script` are those of Linux',
}, async (t) => {
  const program = fileURLToPath(new URL('../../cli/trawl.js', import.meta.url));
  // `script` runs the program on a terminal; the test types Ctrl-C when the server listens.
  const line = `"${process.execPath}" "${program}" serve "${index}" --port 0`;
  const child = spawn('script', ['-qec', line, '/dev/null'], { stdio: ['pipe', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  let seen = '';
  child.stdout.on('data', (text: string) => {
    if (seen.includes('Server listening')) return;
    seen += text;
    if (seen.includes('Server listening')) child.stdin.write('\x03');
  });
  const { stdout } = await endOf(child);
  assert.match(stdout, /\[\d\d:\d\d:\d\d\] .*INFO.*: .*Server listening at http/);
  assert.match(stdout, /stopping after the running requests/);
  assert.doesNotMatch(stdout, /^\{/m);
});

test('--listen opens an address with a preferred dialect of its own', async (t) => {
  const port = await freePort();
  const { url, child, ended } = await serveIndex(t, index, ['--listen', `${port}=zerosearch`]);
  const ask = async (at: string): Promise<unknown> => {
    const response = await fetch(`${at}/retrieve`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"query": "a river", "top_k": 2}',
    });
    return response.json();
  };
  assert.equal(((await ask(url)) as { num_results: number }).num_results, 2);
  assert.equal(((await ask(`http://127.0.0.1:${port}`)) as unknown[]).length, 2);
  child.kill('SIGTERM');
  assert.equal((await ended).code, 0);
});

test('--listen without a dialect opens an address that answers every dialect', async (t) => {
  const [plain, named] = [await freePort(), await freePort()];
  const args = ['--listen', `${plain}`, '--listen', `${named}=r1-searcher`];
  const { url } = await serveIndex(t, index, args);
  for (const at of [url, `http://127.0.0.1:${plain}`, `http://127.0.0.1:${named}`]) {
    const response = await fetch(`${at}/queries`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"queries": ["a river"], "k": 1}',
    });
    assert.equal(((await response.json()) as { answers: string[][] }).answers[0]!.length, 1);
  }
});

test('--truncate, or truncate of a --listen address, decides whether question or query is truncated', async (t) => {
  const port = await freePort();
  const { url } = await serveIndex(t, index, ['--truncate', 'question', '--listen', `${port}:truncate=tail`]);
  const ask = async (at: string, query: string): Promise<string> => {
    const questions = ['Which of the rivers is the one that is asked for here? '.repeat(60)];
    const { body } = await postJson<{ result: unknown[][] }>(at, { queries: [query], questions, return_scores: true });
    return JSON.stringify(body.result);
  };
  const tail = `http://127.0.0.1:${port}`;
  assert.notEqual(await ask(url, 'a bridge'), await ask(url, 'a capital'));
  assert.equal(await ask(tail, 'a bridge'), await ask(tail, 'a capital'));
});

test('--address-dir holds a file with the address until the server stops, as ASearcher’s and RLinf’s clients expect', async (t) => {
  const directory = join(await tempFolder(t), 'addresses');
  const { url, child, ended } = await serveIndex(t, index, ['--address-dir', directory]);
  const [name, ...others] = readdirSync(directory);
  assert.deepEqual(others, []);
  assert.match(name!, /^Host127\.0\.0\.1_IP\d+\.txt$/);
  const address = readFileSync(join(directory, name!), 'utf8');
  assert.equal(`http://${address}`, url);
  child.kill('SIGTERM');
  assert.equal((await ended).code, 0);
  assert.deepEqual(readdirSync(directory), []);
});

test('an invalid dialect or address is refused with the allowed ones', async () => {
  const cases: readonly [string[], RegExp][] = [
    [['--dialect', 'zero'], /Dialect "zero" cannot be preferred.*zerosearch.*\[CONFIG_INVALID\]/],
    [['--listen', '6002='], /"6002="; expected \[HOST:\]PORT\[=DIALECT\].*\[USAGE\]/],
    [['--listen', '6980=reranker'], /"reranker" cannot be preferred/],
    [['--address-dir', join(index, 'manifest.json')], /cannot be written.*\[OUTPUT_NOT_WRITABLE\]/],
    [['--listen', '99999=rllm'], /expected \[HOST:\]PORT/],
    [['--listen', '6002=none'], /"none" cannot be preferred/],
    [['--listen', '6002=rllm:deadline=3'], /expected \[HOST:\]PORT.*:deadline-ms=N/],
    [['--listen', '6002=rllm:deadline-ms='], /expected \[HOST:\]PORT/],
  ];
  for (const [args, message] of cases) {
    const { code, stderr } = await runTrawl(['serve', index, '--port', '0', '--quiet', ...args]);
    assert.ok(code === 1 || code === 2, stderr);
    assert.match(stderr, message);
  }
});
