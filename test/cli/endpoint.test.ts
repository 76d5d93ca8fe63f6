import assert from 'node:assert/strict';
import { copyFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { before, test } from 'node:test';
import { EXIT } from '../../cli/program/command.ts';
import { readIndexManifest } from '../../src/index/manifest/read-manifest.ts';
import { embeddingServer } from '../helpers/embedding-server.ts';
import { sampleServer } from '../helpers/sample-server.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { linesOf } from '../training/mining/mining-corpus.ts';
import {
  endOf,
  fileFolder,
  jsonOf,
  postJson,
  runTrawl,
  SAMPLE,
  SAMPLE_PASSAGES,
  sampleIndex,
  serveIndex,
  spawnTrawl,
} from './run-trawl.ts';

interface Report {
  readonly hits: readonly { readonly row: number; readonly score: number }[];
}

const QUERY = 'Which river flows through Vienna?';
const QUESTIONS = join(SAMPLE, 'questions.jsonl');
const trawl = await sampleServer();
const folder = await fileFolder();
const remote = join(folder, 'remote');
let local = '';

before(async () => {
  local = await sampleIndex(folder);
  await trawl.started;
  const ended = await runTrawl([
    'index',
    SAMPLE_PASSAGES,
    '--model',
    trawl.url,
    '--out',
    remote,
    '--shard-rows',
    '100',
    '--json',
  ]);
  assert.equal(ended.code, 0, ended.stderr);
  assert.equal(jsonOf<{ model: string }>(ended).model, 'token-average-256');
});

function vectorsOf(index: string): Buffer {
  const shards = readdirSync(index).filter((name) => name.startsWith('shard-'));
  return Buffer.concat(shards.map((shard) => readFileSync(join(index, shard, 'vectors.faiss')).subarray(45)));
}

async function hitsOf(index: string, args: readonly string[]): Promise<Report['hits']> {
  return jsonOf<Report>(await runTrawl(['search', index, QUERY, '--k', '7', '--json', ...args])).hits;
}

test('an index that a second Trawl embeds has the vectors of one that is embedded here, and finds the same', async () => {
  assert.deepEqual(vectorsOf(remote), vectorsOf(local));
  const hits = await hitsOf(local, []);
  assert.deepEqual(await hitsOf(remote, ['--model', trawl.url]), hits);
  assert.deepEqual(await hitsOf(remote, ['--model', `${trawl.url}/v1/embeddings`]), hits);
  assert.deepEqual(await hitsOf(remote, ['--model', 'token-average-256']), hits, 'the model runs here too');
  assert.deepEqual(await hitsOf(local, ['--model', trawl.url]), hits, 'queries alone are embedded there');
});

test('the manifest has a version of its own, the probes and no address; old programs refuse it by its version', async () => {
  const { version, model } = readIndexManifest(remote);
  assert.equal(version, 3);
  assert.deepEqual(
    [model!.name, model!.architecture, model!.precision, model!.batchInvariant, model!.endpoint!.software],
    ['token-average-256', 'endpoint', null, false, 'trawl'],
  );
  assert.deepEqual(model!.endpoint!.requests, { query: { input_type: 'query' }, passage: { input_type: 'passage' } });
  assert.ok(model!.endpoint!.probes.every(({ vector }) => vector !== null));
  for (const file of ['manifest.json', 'shard-00000/shard.json']) {
    assert.doesNotMatch(readFileSync(join(remote, file), 'utf8'), /127\.0\.0\.1/);
  }
  assert.match((await runTrawl(['inspect', remote])).stdout, /token-average-256 \(endpoint, trawl\)/);
});

test('verify, eval, bulk search and a server use the endpoint', async (t) => {
  const verified = await runTrawl(['verify', remote, '--model', trawl.url, '--require-model', '--json']);
  assert.deepEqual(jsonOf<{ sample: object }>(verified).sample, { passages: 32, equal: 32, largestDistance: 0 });
  const evaluation = ['eval', '--queries', QUESTIONS, '--cutoffs', '5', '--json', '--quiet'];
  const [own, there] = await Promise.all([
    runTrawl([...evaluation, local]),
    runTrawl([...evaluation, remote, '--model', trawl.url]),
  ]);
  const metrics = (ended: typeof own): unknown => jsonOf<{ metrics: unknown }>(ended).metrics;
  assert.deepEqual(metrics(there), metrics(own));
  const out = join(folder, 'hits.jsonl');
  const bulk = await runTrawl([
    'search',
    remote,
    '--queries',
    QUESTIONS,
    '--k',
    '2',
    '--out',
    out,
    '--model',
    trawl.url,
    '--quiet',
  ]);
  assert.equal(bulk.code, 0, bulk.stderr);
  const { url } = await serveIndex(t, remote, ['--model', trawl.url]);
  const { body } = await postJson<{ result: { title: string }[][] }>(url, {
    queries: ['designer of the Brooklyn Bridge'],
  });
  assert.equal(body.result[0]![0]!.title, 'Brooklyn Bridge');
  const reload = await fetch(`${url}/admin/indexes/remote/reload`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'http://127.0.0.1:9/' }),
  });
  assert.match(await reload.text(), /RELOAD_FAILED.*NOT_SUPPORTED/);
});

test('trawl mine finds the same negatives through the endpoint', async () => {
  const mined = async (index: string, ...args: readonly string[]): Promise<{ negative_passages: object[] }[]> => {
    const out = join(folder, `mined-${basename(index)}.jsonl`);
    const run = ['mine', index, '--queries', QUESTIONS, '--out', out, '--format', 'tevatron', '--num-negatives', '5'];
    const ended = await runTrawl([...run, '--range-max', '40', '--quiet', ...args]);
    assert.equal(ended.code, 0, ended.stderr);
    // Generation and model are those of the index.
    const rows = linesOf<{ generation: string; model: string; negative_passages: object[] }>(out);
    return rows.map(({ generation: _, model: __, ...row }) => row);
  };
  const [here, there] = await Promise.all([mined(local), mined(remote, '--model', trawl.url)]);
  assert.ok(here.length > 20 && here.every((row) => row.negative_passages.length > 0));
  assert.equal(there.length, here.length);
  for (const [i, row] of here.entries()) assert.deepEqual(there[i], row);
});

test('another model behind the address is refused with the similarities, or reported by option', async (t) => {
  const other = await embeddingServer(t);
  for (const [index, reason] of [
    [remote, /MODEL_MISMATCH/],
    [local, /vectors of the index have 256 values, .* runs another model.*--model/],
  ] as const) {
    const { code, stderr } = await runTrawl(['search', index, QUERY, '--model', other.url]);
    assert.notEqual(code, 0);
    assert.match(stderr, reason);
  }
  let seed = '';
  const fake = await embeddingServer(t, { seed: () => seed });
  const made = join(await tempFolder(t), 'made');
  const built = await runTrawl(['index', SAMPLE_PASSAGES, '--model', fake.url, '--out', made]);
  assert.equal(built.code, 0, built.stderr);
  assert.equal((await runTrawl(['verify', made, '--model', fake.url, '--require-model'])).code, 0);
  const missing = await runTrawl(['search', made, QUERY]);
  assert.match(missing.stderr, /behind an endpoint\. Name its address with --model http/);
  seed = 'other';
  const refused = await runTrawl(['search', made, QUERY, '--model', fake.url]);
  assert.match(refused.stderr, /gives other vectors.*passage -?0\.\d{4}.*MODEL_MISMATCH/s);
  const reported = await runTrawl([
    'search',
    made,
    QUERY,
    '--model',
    fake.url,
    '--endpoint-changed',
    'report',
    '--json',
  ]);
  assert.match(reported.stderr, /gives other vectors/);
  assert.equal(jsonOf<Report>(reported).hits.length, 5);
});

test('a server refuses an endpoint that changes while it serves, and a reload onto it', async (t) => {
  let seed = '';
  const fake = await embeddingServer(t, { seed: () => seed });
  const made = join(await tempFolder(t), 'made');
  assert.equal((await runTrawl(['index', SAMPLE_PASSAGES, '--model', fake.url, '--out', made])).code, 0);
  const { url } = await serveIndex(t, made, ['--model', fake.url, '--endpoint-check-s', '1']);
  // Another query each time, because the cache has the answers of before.
  let asked = 0;
  const ask = (): Promise<{ status: number; body: object }> => postJson(url, { queries: [`bridge ${asked++}`] });
  /** Asks until the server is ready, or is not. */
  const until = async (status: number): Promise<void> => {
    while ((await fetch(`${url}/readyz`)).status !== status) {
      await ask();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  await until(200);
  seed = 'other';
  const reload = await fetch(`${url}/admin/indexes/made/reload`, { method: 'POST' });
  assert.match(await reload.text(), /RELOAD_FAILED.*MODEL_MISMATCH/);
  await until(503);
  const refused = await ask();
  assert.equal(refused.status, 503);
  assert.match(JSON.stringify(refused.body), /MODEL_MISMATCH/);
  assert.doesNotMatch(JSON.stringify(refused.body), /127\.0\.0\.1|Start the endpoint/, 'clients learn no address');
  seed = '';
  await until(200);
  assert.equal((await ask()).status, 200);
});

test('a build that an endpoint breaks off is resumed, and refused with another model', async (t) => {
  let seed = '';
  let left = Number.POSITIVE_INFINITY;
  const fake = await embeddingServer(t, {
    seed: () => seed,
    answer: (_asked, _count, response) => left-- <= 0 && Boolean(response.writeHead(500).end('{}')),
  });
  const cwd = await tempFolder(t);
  const args = ['index', SAMPLE_PASSAGES, '--model', fake.url, '--shard-rows', '100', '--checkpoint-seconds', '0'];
  assert.equal((await runTrawl([...args, '--out', 'whole'], { cwd })).code, 0);
  // One text and 8 probes at the opening, 3 requests and 8 probes for the first shard, a request of the second.
  left = 21;
  const broken = await runTrawl([...args, '--out', 'made'], { cwd });
  assert.notEqual(broken.code, 0);
  assert.match(broken.stderr, /row \d+ .*could not be embedded: .*status 500.*ENDPOINT_FAILED/s);
  left = Number.POSITIVE_INFINITY;
  seed = 'other';
  const other = await runTrawl([...args, '--out', 'made'], { cwd });
  assert.match(other.stderr, /vectors of the endpoint: other ones for its probes .*BUILD_DIFFERS/s);
  seed = '';
  const resumed = jsonOf<{ resumedRows: number }>(await runTrawl([...args, '--out', 'made', '--json'], { cwd }));
  assert.ok(resumed.resumedRows > 0);
  assert.deepEqual(vectorsOf(join(cwd, 'made')), vectorsOf(join(cwd, 'whole')));
});

test('a build ends when the model behind the endpoint changes, and keeps no row of the other model', async (t) => {
  let seed = '';
  let changesAt = Number.POSITIVE_INFINITY;
  const fake = await embeddingServer(t, {
    seed: () => seed,
    answer() {
      if (changesAt-- === 0) seed = 'other';
      return false;
    },
  });
  const cwd = await tempFolder(t);
  const args = ['index', SAMPLE_PASSAGES, '--model', fake.url, '--shard-rows', '100'];
  assert.equal((await runTrawl([...args, '--out', 'whole'], { cwd })).code, 0);
  // One text and 8 probes at the opening, 3 requests and 8 probes for the first shard, a request of the second.
  changesAt = 21;
  const broken = await runTrawl([...args, '--out', 'made'], { cwd });
  assert.notEqual(broken.code, 0);
  assert.match(broken.stderr, /changed during the build.*same command resumes.*MODEL_MISMATCH/s);
  seed = '';
  const resumed = jsonOf<{ resumedRows: number }>(await runTrawl([...args, '--out', 'made', '--json'], { cwd }));
  assert.equal(resumed.resumedRows, 90);
  assert.deepEqual(vectorsOf(join(cwd, 'made')), vectorsOf(join(cwd, 'whole')));
});

test('an index of cut vectors of an endpoint is opened with a model folder', async (t) => {
  const out = join(await tempFolder(t), 'cut');
  const built = await runTrawl(['index', SAMPLE_PASSAGES, '--model', trawl.url, '--dimension', '64', '--out', out]);
  assert.equal(built.code, 0, built.stderr);
  const [here, there] = [
    await hitsOf(out, ['--model', 'token-average-256']),
    await hitsOf(out, ['--model', trawl.url]),
  ];
  assert.deepEqual(
    here.map(({ row }) => row),
    there.map(({ row }) => row),
  );
  for (const [i, { score }] of here.entries()) assert.ok(Math.abs(score - there[i]!.score) < 1e-6);
});

test('shards of a server whose bits vary are merged, updated and verified', async (t) => {
  let noise = 0;
  const fake = await embeddingServer(t, {
    sendsNumbers: true,
    change(reply) {
      for (const item of reply.data) {
        noise = (noise + 0.37) % 1;
        item.embedding = (item.embedding as number[]).map((value, i) => value + 1e-4 * noise * (i % 3));
      }
      return reply;
    },
  });
  const cwd = await tempFolder(t);
  const lines = readFileSync(SAMPLE_PASSAGES, 'utf8').split('\n');
  writeFileSync(join(cwd, 'some.jsonl'), `${lines.slice(0, 200).join('\n')}\n`);
  copyFileSync(SAMPLE_PASSAGES, join(cwd, 'all.jsonl'));
  for (const shard of ['0/2', '1/2']) {
    const ended = await runTrawl(['index', 'some.jsonl', '--model', fake.url, '--out', 'made', '--shard', shard], {
      cwd,
    });
    assert.equal(ended.code, 0, ended.stderr);
  }
  const merged = await runTrawl(['merge', 'made'], { cwd });
  assert.equal(merged.code, 0, merged.stderr);
  const updated = await runTrawl(['index', 'all.jsonl', '--update', '--model', fake.url, '--out', 'made', '--json'], {
    cwd,
  });
  assert.equal(jsonOf<{ added: number }>(updated).added, 70);
  const verify = ['verify', 'made', '--model', fake.url, '--require-model', '--json'];
  const { sample } = jsonOf<{ sample: { passages: number; equal: number; largestDistance: number } }>(
    await runTrawl(verify, { cwd }),
  );
  assert.ok(sample.equal < sample.passages && sample.largestDistance > 0 && sample.largestDistance < 0.01);
  const strict = await runTrawl([...verify, '--sample-distance', '0.0000001'], { cwd });
  assert.equal(strict.code, 3);
});

test('vectors of another program are imported after a check with the endpoint', async (t) => {
  const fake = await embeddingServer(t);
  const cwd = await tempFolder(t);
  const vectors = join(cwd, 'vectors.faiss');
  copyFileSync(join(local, 'shard-00000', 'vectors.faiss'), vectors);
  const args = ['import', vectors, '--corpus', SAMPLE_PASSAGES, '--out', 'made', '--overwrite'];
  const checked = await runTrawl([...args, '--model', trawl.url], { cwd });
  assert.equal(checked.code, 0, checked.stderr);
  assert.match(
    checked.stderr,
    /32 passages embedded again with token-average-256: the median similarity to their vectors is 1\.00000/,
  );
  const other = await runTrawl([...args, '--model', fake.url], { cwd });
  assert.match(other.stderr, /VECTORS_MISMATCH/);
  const made = await runTrawl(['index', SAMPLE_PASSAGES, '--model', fake.url, '--out', 'own'], { cwd });
  assert.equal(made.code, 0, made.stderr);
  const own = ['import', join(cwd, 'own', 'shard-00000', 'vectors.faiss'), ...args.slice(2), '--model', fake.url];
  assert.equal((await runTrawl(own, { cwd })).code, 0);
  const wrong = await runTrawl([...own, '--passage-prefix', ''], { cwd });
  assert.match(wrong.stderr, /made with prefix "passage: ".*--passage-prefix 'passage: '/s);
});

test('the key comes from a file or the environment, and is in no output and no file', async (t) => {
  const fake = await embeddingServer(t, {
    answer: ({ authorization }, _count, response) =>
      authorization !== 'Bearer sk-secret-7' && Boolean(response.writeHead(401).end('{"error":"sk-secret-7"}')),
  });
  const cwd = await tempFolder(t);
  writeFileSync(join(cwd, 'key'), 'sk-secret-7\n');
  const args = ['index', SAMPLE_PASSAGES, '--model', fake.url, '--out', 'made', '--overwrite'];
  const without = await runTrawl(args, { cwd });
  assert.match(without.stderr, /status 401.*--endpoint-key-file/);
  const runs = [
    await runTrawl([...args, '--endpoint-key-file', 'key'], { cwd }),
    await runTrawl(args, { cwd, env: { TRAWL_ENDPOINT_API_KEY: 'sk-secret-7' } }),
  ];
  for (const { code, stdout, stderr } of runs) {
    assert.equal(code, 0, stderr);
    assert.doesNotMatch(stdout + stderr, /secret/);
  }
  for (const file of ['manifest.json', 'shard-00000/shard.json']) {
    assert.doesNotMatch(readFileSync(join(cwd, 'made', file), 'utf8'), /secret/);
  }
  writeFileSync(join(cwd, 'empty'), '\n');
  const empty = await runTrawl([...args, '--endpoint-key-file', 'empty'], { cwd });
  assert.match(empty.stderr, /has no key.*CONFIG_INVALID/s);
});

test('a key is in no output, reply, page or log of searches, evaluations and a server, also if the endpoint repeats it', async (t) => {
  let isRevoked = false;
  const fake = await embeddingServer(t, {
    answer: ({ authorization }, _count, response) =>
      (isRevoked || authorization !== 'Bearer sk-secret-7') &&
      Boolean(response.writeHead(401).end(`{"error":"unknown key ${authorization}"}`)),
  });
  const cwd = await tempFolder(t);
  const env = { TRAWL_ENDPOINT_API_KEY: 'sk-secret-7' };
  const built = await runTrawl(['index', SAMPLE_PASSAGES, '--model', fake.url, '--out', 'made'], { cwd, env });
  assert.equal(built.code, 0, built.stderr);
  const search = ['search', 'made', QUERY, '--model', fake.url, '--json'];
  const evaluation = ['eval', 'made', '--queries', QUESTIONS, '--model', fake.url, '--json'];
  const shown: string[] = [];
  for (const args of [search, evaluation]) {
    const { code, stdout, stderr } = await runTrawl(args, { cwd, env });
    assert.equal(code, 0, stderr);
    shown.push(stdout, stderr);
  }
  const { url, child, ended } = await serveIndex(t, 'made', ['--model', fake.url], { cwd, env });
  assert.equal((await postJson(url, { queries: ['a river'] })).status, 200);
  isRevoked = true;
  const refused = await postJson(url, { queries: ['another river'] });
  assert.equal(refused.status, 503);
  shown.push(JSON.stringify(refused.body));
  for (const page of ['/metrics', '/v1/indexes', '/readyz', '/admin/indexes']) {
    shown.push(await (await fetch(`${url}${page}`)).text());
  }
  for (const args of [search, evaluation]) {
    const { code, stdout, stderr } = await runTrawl(args, { cwd, env });
    assert.equal(code, EXIT.failed, stderr);
    shown.push(stdout, stderr);
  }
  child.kill('SIGTERM');
  const { stdout, stderr } = await ended;
  assert.match(stderr, /401/);
  shown.push(stdout, stderr);
  for (const text of shown) assert.doesNotMatch(text, /sk-secret/);
});

test('a signal ends a command while the endpoint is opened', async (t) => {
  let asked = (): void => undefined;
  const silent = await embeddingServer(t, {
    answer() {
      asked();
      return true;
    },
  });
  const cwd = await tempFolder(t);
  const build = ['index', SAMPLE_PASSAGES, '--out', 'made'];
  for (const [args, signal, code, message] of [
    [build, 'SIGINT', EXIT.interrupted, /Stopped before the encoder was open\. Run the same command again\./],
    [build, 'SIGTERM', EXIT.resumable, /Stopped before the encoder was open\. Run the same command again\./],
    [['search', remote, QUERY], 'SIGINT', EXIT.interrupted, /^trawl: Interrupted\. \[CANCELLED\]\n$/],
    [['serve', remote, '--port', '0'], 'SIGTERM', EXIT.ok, /stopping before the start was complete/],
  ] as const) {
    const wasAsked = new Promise<void>((resolve) => (asked = resolve));
    const child = spawnTrawl([...args, '--model', silent.url], { cwd });
    const ended = endOf(child);
    await wasAsked;
    child.kill(signal);
    const { code: found, stderr } = await ended;
    assert.equal(found, code, `${args[0]} ${signal}: ${stderr}`);
    assert.match(stderr, message);
  }
  assert.equal(existsSync(join(cwd, 'made')), false);
});

test('options without effect end the command with the reason', async () => {
  const mistakes: [string[], RegExp][] = [
    [['search', local, QUERY, '--endpoint-batch', '5'], /--endpoint-batch has no effect unless --model is a URL/],
    [
      ['search', remote, QUERY, '--model', trawl.url, '--precision', 'int8'],
      /--precision has no effect: --model is a URL/,
    ],
    [['search', remote, QUERY, '--model', trawl.url, '--query-request', '[1]'], /--query-request is not a JSON object/],
    [['index', SAMPLE_PASSAGES, '--model', trawl.url, '--out', 'x', '--pooling', 'cls'], /--pooling has no effect/],
    [['verify', remote, '--model', trawl.url, '--sample-distance', '3'], /--sample-distance/],
    [['search', remote, QUERY, '--model', trawl.url, '--endpoint-timeout-ms', '300001'], /--endpoint-timeout-ms/],
  ];
  for (const [args, message] of mistakes) {
    const { code, stderr } = await runTrawl(args);
    assert.notEqual(code, 0);
    assert.match(stderr, message);
  }
});
