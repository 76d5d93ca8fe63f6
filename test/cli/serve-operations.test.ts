import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, openSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { before, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import {
  cleanEnvironment,
  endOf,
  fileFolder,
  postJson,
  runTrawl,
  SAMPLE_PASSAGES,
  sampleIndex,
  serveIndex,
  spawnTrawl,
  TRAWL,
} from './run-trawl.ts';

const folder = await fileFolder();
const READ = 'read-key-of-the-test-000';
const ADMIN = 'admin-key-of-the-test-00';
let first: string;
let second: string;
/** `second` has the same texts as `first`, with ids that begin with t- instead of s-. */
before(async () => {
  first = await sampleIndex(folder);
  const rows = readFileSync(SAMPLE_PASSAGES, 'utf8').trimEnd().split('\n');
  const corpus = join(folder, 'second.jsonl');
  writeFileSync(corpus, `${rows.map((row) => row.replace(/"id": ?"s-/, '"id":"t-')).join('\n')}\n`);
  second = join(folder, 'second');
  const { code, stderr } = await runTrawl(['index', corpus, '--out', second, '--quiet']);
  assert.equal(code, 0, stderr);
});

interface Native {
  readonly index: { readonly name: string; readonly generation: string };
  readonly results: readonly { readonly hits: readonly { readonly id: string }[] }[];
}

async function searchNative(url: string, headers: Record<string, string> = {}): Promise<Native> {
  const response = await fetch(`${url}/v1/search`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ queries: ['designer of the Brooklyn Bridge', 'longest river'], k: 3 }),
  });
  assert.equal(response.status, 200);
  return (await response.json()) as Native;
}

function prefixes({ results }: Native): string {
  return [...new Set(results.flatMap(({ hits }) => hits.map(({ id }) => id.slice(0, 2))))].join();
}

test('SIGHUP reloads the index under load even if the old folder is gone, and after a failed reload the old index stays', async (t) => {
  const link = join(folder, 'current');
  const copy = join(folder, 'first-copy');
  renameSync(first, copy);
  t.after(() => renameSync(`${copy}-away`, first));
  symlinkSync(copy, link);
  const { url, child, ended } = await serveIndex(t, link);
  let stop = false;
  const seen = new Map<string, Set<string>>();
  const client = async (): Promise<void> => {
    while (!stop) {
      const answer = await searchNative(url);
      assert.equal(answer.index.name, 'current');
      const found = seen.get(answer.index.generation) ?? new Set();
      seen.set(answer.index.generation, found.add(prefixes(answer)));
      await sleep(2);
    }
  };
  const clients = Promise.all([client(), client(), client()]);
  await sleep(100);
  renameSync(copy, `${copy}-away`);
  await sleep(200);
  rmSync(link);
  symlinkSync(second, link);
  child.kill('SIGHUP');
  while (seen.size < 2) await sleep(20);
  rmSync(link);
  child.kill('SIGHUP');
  let log = '';
  child.stderr!.on('data', (text: string) => (log += text));
  while (!log.includes('reload failed, the old index stays')) await sleep(20);
  await sleep(50);
  stop = true;
  await clients;
  assert.deepEqual(
    [...seen.values()].map((found) => [...found]),
    [['s-'], ['t-']],
    'never mixed',
  );
  const metrics = await (await fetch(`${url}/metrics`)).text();
  assert.match(metrics, /^trawl_index_reloads_total\{index="current",result="done"\} 1$/m);
  assert.match(metrics, /^trawl_index_reloads_total\{index="current",result="failed"\} 1$/m);
  assert.match(metrics, /^trawl_index_draining\{index="current"\} 0$/m);
  assert.match(metrics, /^nodejs_eventloop_lag_p99_seconds /m);
  child.kill('SIGTERM');
  assert.equal((await ended).code, 0);
});

test('a SIGHUP during the start causes a reload after it, and several during a reload cause one more', async (t) => {
  const keys = join(folder, 'keys.fifo');
  execFileSync('mkfifo', [keys]);
  const child = spawnTrawl(['serve', first, '--port', '0', '--json', '--keys-file', keys]);
  t.after(() => child.kill('SIGKILL'));
  const ended = endOf(child);
  const started = once(child.stdout!, 'data');
  let log = '';
  child.stderr!.on('data', (text: string) => (log += text));
  const reloaded = async (times: number): Promise<void> => {
    while (log.split('reloaded (generation').length <= times) await sleep(5);
  };
  // Opening the pipe waits until the server reads the keys; the server then waits until they are written.
  const giveKeys = async (meanwhile = (): void => {}): Promise<void> => {
    const pipe = await open(keys, 'w');
    meanwhile();
    await pipe.writeFile(`read:${READ}\n`);
    await pipe.close();
  };
  const hangUp = (): void => {
    for (let i = 0; i < 3; i++) child.kill('SIGHUP');
  };
  await giveKeys(hangUp);
  const { url } = JSON.parse(String((await started)[0])) as { url: string };
  await giveKeys(hangUp);
  await reloaded(1);
  await giveKeys();
  await reloaded(2);
  const metrics = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${READ}` } });
  assert.match(await metrics.text(), /^trawl_index_reloads_total\{index="sample",result="done"\} 2$/m);
  child.kill('SIGTERM');
  assert.equal((await ended).code, 0);
});

test('a server with two indexes, keys, a record and --warm', async (t) => {
  const record = join(folder, 'record.jsonl');
  const env = { TRAWL_API_KEYS: `read:${READ},admin:${ADMIN}` };
  const args = ['--index', `other=${second}`, '--warm', '--record', record, '--log-every', '2', '--host', '0.0.0.0'];
  const { url: bound, child, ended } = await serveIndex(t, first, args, { env });
  const url = bound.replace('0.0.0.0', '127.0.0.1');
  assert.equal((await postJson(url, { queries: ['a'] })).status, 401);
  const reader = { authorization: `Bearer ${READ}` };
  assert.equal(prefixes(await searchNative(url, reader)), 's-');
  assert.equal(prefixes(await searchNative(`${url}/indexes/other`, reader)), 't-');
  const ready = (await (await fetch(`${url}/readyz`)).json()) as { indexes: { name: string; stage: string }[] };
  assert.deepEqual(
    ready.indexes.map(({ name, stage }) => `${name} ${stage}`),
    ['sample ready', 'other ready'],
  );
  const reload = async (key: string, body: object): Promise<{ status: number; text: string }> => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const target = `${url}/admin/indexes/other/reload`;
    const response = await fetch(target, { method: 'POST', headers, body: JSON.stringify(body) });
    return { status: response.status, text: await response.text() };
  };
  assert.equal((await reload(READ, {})).status, 403);
  const failed = await reload(ADMIN, { folder: join(folder, 'nowhere') });
  assert.equal(failed.status, 409);
  assert.match(failed.text, /INDEX_NOT_FOUND/);
  assert.doesNotMatch(failed.text, /nowhere|trawl-test/);
  assert.equal((await reload(ADMIN, { folder: first })).status, 200);
  assert.equal(prefixes(await searchNative(`${url}/indexes/other`, reader)), 's-');
  child.kill('SIGTERM');
  const { code, stdout, stderr } = await ended;
  assert.equal(code, 0, stderr);
  assert.deepEqual(
    (JSON.parse(stdout) as { indexes: { index: string }[] }).indexes.map(({ index }) => index),
    ['sample', 'other'],
  );
  assert.match(stderr, /note: listening on every network of this machine without TLS: keys and queries can be read/);
  assert.doesNotMatch(stderr, new RegExp(`Brooklyn|${READ}|${ADMIN}`));
  const lines = readFileSync(record, 'utf8').trimEnd().split('\n');
  const kept = lines.map(
    (line) => JSON.parse(line) as { index: string; query: string; ids: string[]; requestId: string },
  );
  assert.deepEqual(
    kept.map(({ index, ids }) => `${index} ${ids[0]!.slice(0, 2)}`),
    ['sample s-', 'sample s-', 'other t-', 'other t-', 'other s-', 'other s-'],
  );
  assert.equal(kept[0]!.query, 'designer of the Brooklyn Bridge');
});

test('no refusal contains a path or a stack of the server', async (t) => {
  const { url, child } = await serveIndex(t, first, ['--model', 'token-average-256']);
  const texts: string[] = [];
  const send = async (method: string, path: string, body?: string, type = 'application/json'): Promise<void> => {
    const response = await fetch(`${url}${path}`, {
      method,
      ...(body === undefined ? {} : { body, headers: { 'content-type': type } }),
    });
    assert.ok(response.status >= 400, `${method} ${path} ${response.status}`);
    texts.push(await response.text(), [...response.headers.values()].join('\n'));
  };
  await send('GET', '/none');
  await send('GET', '/../../etc/passwd');
  await send('GET', '/v1/passages/none');
  await send('GET', '/v1/passages/%E0%A4%A');
  await send('DELETE', '/retrieve');
  for (const body of [
    '',
    '{',
    '[]',
    '{"queries": 3}',
    '{"queries": ["a"], "topk": 100000}',
    '{"queries": ["a"], "topk": -1}',
  ]) {
    await send('POST', '/retrieve', body);
  }
  await send('POST', '/retrieve', '{}', 'text/plain');
  await send('POST', '/retrieve?index=none', '{"queries": ["a"]}');
  await send('POST', '/rerank', '{}');
  await send('POST', '/v1/embeddings', '{"input": "a", "model": "none"}');
  await send('POST', '/admin/indexes/sample/reload', JSON.stringify({ folder: join(folder, 'gone') }));
  await send('POST', '/admin/indexes/sample/reload', JSON.stringify({ model: join(folder, 'gone') }));
  assert.doesNotMatch(texts.join('\n'), /trawl-test|\/tmp|\/root|node_modules|\.js:|\bat .*\d+:\d+/);
  child.kill('SIGTERM');
});

/** Sends a request; returns the status and the connection header of the answer, or the code of the error. */
function askOn(agent: Agent, url: string): Promise<string> {
  return new Promise((resolve) => {
    const sent = request(`${url}/retrieve`, { method: 'POST', agent, headers: { 'content-type': 'application/json' } });
    sent.on('error', ({ code }: NodeJS.ErrnoException) => resolve(String(code)));
    sent.on('response', (response) => {
      response.resume().on('end', () => resolve(`${response.statusCode} ${response.headers.connection}`));
    });
    sent.end('{"queries": ["a"], "topk": 1}');
  });
}

test('on SIGTERM every busy keep-alive client gets `connection: close`, and then finds the port closed', async (t) => {
  const { url, child, ended } = await serveIndex(t, first);
  let answered = 0;
  const clients = Array.from({ length: 30 }, async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    t.after(() => agent.destroy());
    for (let answers = 0; ; answers++) {
      const answer = await askOn(agent, url);
      if (answer !== '200 keep-alive') return [answer, await askOn(agent, url)];
      if (answers === 0) answered++;
      await sleep(Math.random() * 30);
    }
  });
  while (answered < 30) await sleep(5);
  child.kill('SIGTERM');
  const answers = await Promise.all(clients);
  for (const [last, next] of answers) {
    assert.match(last!, /^(200|503) close$/);
    assert.equal(next, 'ECONNREFUSED');
  }
  assert.equal((await ended).code, 0);
});

/** Starts the server as npm does: in a shell that waits for it. Returns the shell, the pid of the server and the end of its output. */
async function serveInShell(
  t: TestContext,
  env: Record<string, string>,
): Promise<{ shell: ChildProcess; pid: number; url: string; ended: Promise<unknown> }> {
  const command = [...TRAWL, 'serve', first, '--port', '0', '--json'].map((word) => `'${word}'`).join(' ');
  const shell = spawn('sh', ['-c', `${command}; exit $?`], {
    env: { ...cleanEnvironment(), ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  // The server has the other end of the pipe too.
  const ended = once(shell.stdout!, 'close');
  const [line] = (await once(shell.stdout!, 'data')) as [Buffer];
  const { pid, url } = JSON.parse(String(line)) as { pid: number; url: string };
  t.after(() => {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended.
    }
  });
  return { shell, pid, url, ended };
}

test('after npx the server stops when the shell of npm ends, on which npm passes SIGTERM', async (t) => {
  const { shell, ended, url } = await serveInShell(t, { npm_lifecycle_script: "'trawl'" });
  assert.equal((await postJson(url, { queries: ['x'] })).status, 200);
  shell.kill('SIGTERM');
  await ended;
  await assert.rejects(fetch(`${url}/livez`));
});

test('a server that npm did not start outlives the shell that started it, and its pid stops it', async (t) => {
  const { shell, pid, ended, url } = await serveInShell(t, { npm_lifecycle_script: 'nohup trawl serve &' });
  shell.kill('SIGKILL');
  await once(shell, 'exit');
  // Longer than the time between two looks at the parent process.
  await sleep(600);
  assert.equal((await postJson(url, { queries: ['x'] })).status, 200);
  process.kill(pid, 'SIGTERM');
  await ended;
});

test('the server keeps answering if the disk of its log is full', {
  skip: !existsSync('/dev/full') && '/dev/full does not exist',
}, async (t) => {
  const program = fileURLToPath(new URL('../../cli/trawl.js', import.meta.url));
  const full = openSync('/dev/full', 'w');
  const child = spawn(process.execPath, [program, 'serve', first, '--port', '0', '--json'], {
    stdio: ['ignore', 'pipe', full],
  });
  t.after(() => child.kill('SIGKILL'));
  const ended = endOf(child);
  let line = '';
  child.stdout!.on('data', (text: string) => (line += text));
  while (!line.includes('\n')) await once(child.stdout!, 'data');
  const { url } = JSON.parse(line) as { url: string };
  for (let i = 0; i < 200; i++) assert.equal((await postJson(url, { queries: ['a'] })).status, 200);
  child.kill('SIGTERM');
  assert.deepEqual([(await ended).code, (await ended).signal], [0, null]);
});

test('invalid options of trawl serve are refused with the reason', async () => {
  const bad = join(folder, 'bad.keys');
  writeFileSync(bad, 'read:short\n');
  const utf16 = join(folder, 'utf16.keys');
  writeFileSync(utf16, Buffer.from('read:0123456789abcdef\n', 'utf16le'));
  const pem = join(folder, 'no.pem');
  writeFileSync(pem, 'nothing');
  const cases: readonly [readonly string[], RegExp][] = [
    [[], /<index> is missing.*\[USAGE\]/],
    [[first, '--index', `sample=${second}`], /Two indexes have the name sample.*\[USAGE\]/],
    [[first, '--index', `a b=${second}`], /"a b" cannot be the name of an index.*\[USAGE\]/],
    [[first, '--index', `x=${folder}/none`], /\[INDEX_NOT_FOUND\]/],
    [[first, '--keys-file', `${folder}/none`], /--keys-file .* cannot be read.*\[CONFIG_INVALID\]/],
    [[first, '--keys-file', bad], /bad\.keys, line 1: the key has 5 characters.*\[CONFIG_INVALID\]/],
    [[first, '--keys-file', utf16], /utf16\.keys cannot be used: the file is UTF-16.*iconv.*\[CONFIG_INVALID\]/],
    [[first, '--tls-cert', pem], /--tls-cert and --tls-key must be given together.*\[USAGE\]/],
    [[first, '--tls-cert', pem, '--tls-key', pem], /cannot be used for TLS.*\[CONFIG_INVALID\]/],
    [[first, '--record', `${folder}/none/x`], /cannot be written.*--record.*\[OUTPUT_NOT_WRITABLE\]/],
  ];
  for (const [args, message] of cases) {
    const { code, stderr } = await runTrawl(['serve', ...args, '--port', '0', '--quiet']);
    assert.ok(code === 1 || code === 2, stderr);
    assert.match(stderr, message);
  }
});
