import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { METRICS } from '../../src/engine/metric.ts';
import { referenceSearch } from '../../src/engine/reference/reference-search.ts';
import { RowBitmap } from '../../src/engine/row-bitmap.ts';
import { TopK } from '../../src/engine/top-k.ts';
import { MILVUS_METRIC, milvusCandidates } from '../../src/stores/milvus/milvus-candidates.ts';
import { rowFields } from '../../src/stores/milvus/published-rows.ts';
import { MILVUS_SCORES } from '../../src/stores/milvus/score-bound.ts';
import { CandidateIndex } from '../../src/stores/published/candidate-index.ts';
import { upperNorm } from '../../src/stores/published/published-row.ts';
import { type Ended, endOf, runTrawl, SAMPLE, SAMPLE_PASSAGES, spawnTrawl, TRAWL } from '../cli/run-trawl.ts';
import { toyModel } from '../encoder/model-fixtures.ts';
import { normalRows, ternaryRows } from '../engine/vectors/index-files.ts';
import { seededRandom } from '../helpers/seeded-random.ts';
import { sharedData, withoutSharedData } from '../helpers/shared-data.ts';
import { MilvusNode, withoutMilvus } from './milvus-node.ts';

const skip = withoutMilvus();
const HOTPOT = 'hotpot_val500_pooled/corpus.jsonl';
const skipHotpot = skip === false ? withoutSharedData(HOTPOT) : skip;
let node: MilvusNode;
let folder: string;

before(async () => {
  if (skip !== false) return;
  folder = await mkdtemp(join(tmpdir(), 'trawl-test-'));
  node = await MilvusNode.start();
  await trawl('index', SAMPLE_PASSAGES, '--out', join(folder, 'other'), '--model', 'token-average-256');
  await trawl('publish', join(folder, 'other'), node.address('steady'));
});
after(async () => {
  await node?.stop();
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
});

function run(...args: string[]): Promise<Ended> {
  return runTrawl(args, { env: node.environment });
}

/** Runs a command that has to succeed. */
async function trawl(...args: string[]): Promise<string> {
  const ended = await run(...args);
  assert.equal(ended.code, 0, `trawl ${args.join(' ')}: ${ended.stderr}`);
  return ended.stdout;
}

const QUESTIONS = ['Which river flows through Vienna?', 'a mountain', 'who wrote it?', ''];

/** Starts `trawl serve` and returns its URL; `started` gets the process. */
async function serve(
  t: { after(end: () => Promise<void>): void },
  place: string,
  args: readonly string[] = [],
  started: (child: ChildProcess) => void = () => undefined,
): Promise<string> {
  const child = spawnTrawl(['serve', place, '--port', '0', '--json', '--quiet', ...args], {
    env: node.environment,
  });
  t.after(async () => {
    child.kill('SIGTERM');
    if (child.exitCode === null) await once(child, 'exit');
  });
  started(child);
  let stderr = '';
  child.stderr!.on('data', (text) => (stderr += text));
  const failed = once(child, 'exit').then(() => assert.fail(`trawl serve ended: ${stderr}`));
  failed.catch(() => undefined);
  const [line] = (await Promise.race([once(child.stdout!, 'data'), failed])) as [Buffer];
  return (JSON.parse(String(line)) as { url: string }).url;
}

async function post(url: string, body: unknown): Promise<{ status: number; retryAfter: string | null; text: string }> {
  const reply = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: reply.status, retryAfter: reply.headers.get('retry-after'), text: await reply.text() };
}

/** Corpus rows with columns, long documents, odd ids and repeated texts. */
function corpus(): string {
  const path = join(folder, 'corpus.jsonl');
  const lines = Array.from({ length: 300 }, (_, i) =>
    JSON.stringify({
      ...(i % 11 === 0 ? {} : { id: i % 2 === 0 ? i : `p-${i}` }),
      title: `Title ${i % 40}`,
      // Each text three times, so that scores tie.
      text: `River number ${i % 100} flows "through" the town of Vienna ${'ü😀\\'.repeat(i === 7 ? 30_000 : 1)}`,
      url: `https://example.org/${i}`,
      year: 1900 + (i % 100),
      source: ['wiki', 'news'][i % 2],
    }),
  );
  writeFileSync(path, `${lines.join('\n')}\n`);
  return path;
}

for (const metric of METRICS) {
  test(`real FLAT candidates with ${metric} are proved: the bits of a scan, with ties, filters and deleted rows`, {
    skip,
  }, async () => {
    const dimension = 24;
    const count = 9_000;
    const { values } = normalRows(count, dimension, 3);
    // Milvus's own float32 scores decide among equal and nearly equal rows.
    for (let row = 0; row < count; row++) {
      const target = values.subarray(row * dimension, (row + 1) * dimension);
      if (row % 3 === 1)
        target.set(
          values.subarray(0, dimension).map((value, j) => (j === row % dimension ? value * (1 + 2 ** -22) : value)),
        );
      if (row % 3 === 2)
        target.set(ternaryRows(1, dimension, row % 50).values.map((value, j) => (j === 0 ? value || 1 : value)));
    }
    const random = seededRandom(2);
    const liveRows = new RowBitmap(count);
    for (let row = 0; row < count; row++) if (random() < 0.9) liveRows.add(row);
    const client = await node.client();
    const collection = `proof_${MILVUS_METRIC[metric]}`;
    try {
      await client.create(collection, { description: '', fields: rowFields(dimension, { pieces: 1 }).slice(0, 2) });
      const live = [...liveRows];
      for (let at = 0; at < live.length; at += 1_000) {
        const entities = live
          .slice(at, at + 1_000)
          .map((row) => ({ row, vector: Array.from(values.subarray(row * dimension, (row + 1) * dimension)) }));
        await client.upsert(collection, entities);
      }
      await client.flush(collection);
      await client.createIndex(collection, 'vector', { type: 'FLAT', metric: MILVUS_METRIC[metric] });
      while ((await client.indexes(collection)).get('vector')!.pendingRows > 0) await pause(200);
      await client.load(collection, 1);
      const source = milvusCandidates(client, {
        collection,
        dimension,
        metric,
        indexType: 'FLAT',
        rows: live.length,
      });
      let largestNorm = 0;
      for (let row = 0; row < count; row++)
        largestNorm = Math.max(largestNorm, upperNorm(values, row * dimension, dimension));
      const index = new CandidateIndex(source, {
        dimension,
        rows: count,
        metric,
        liveRows,
        largestNorm,
        scores: MILVUS_SCORES,
        scoresEveryRow: true,
      });
      const queries = Float32Array.from([...normalRows(6, dimension, 8).values, ...values.subarray(0, 3 * dimension)]);
      const filters = [0.002, 0.4, 0.6, 0.999].map((share) => {
        const filter = new RowBitmap(count);
        for (const row of live) if (random() < share) filter.add(row);
        return filter;
      });
      for (const filter of [undefined, ...filters]) {
        for (const k of [1, 20, 400]) {
          const heaps = Array.from({ length: 9 }, () => new TopK(k));
          referenceSearch(
            { rows: values, rowCount: count, dimension, metric, queries, queryCount: 9, filter: filter ?? liveRows },
            heaps,
          );
          const found = await index.search({ queries, count: 9, k, filter });
          for (const [q, heap] of heaps.entries()) {
            const { rows, scores } = heap.sorted();
            assert.deepEqual([...found.rows.subarray(q * k, q * k + found.counts[q]!)], rows);
            assert.deepEqual([...found.scores.subarray(q * k, q * k + found.counts[q]!)], scores);
          }
          assert.equal(found.exact, true);
        }
      }
    } finally {
      await client.close();
    }
  });
}

test('a published index answers as its folder, with filters, deleted rows, look-ups and long documents', {
  skip,
}, async (t) => {
  const local = join(folder, 'local');
  await trawl(
    'index',
    corpus(),
    '--out',
    local,
    '--model',
    'token-average-256',
    '--passage-template',
    '{text}',
    '--column',
    'year:number',
    '--column',
    'source:string',
  );
  await trawl('remove', local, 'p-1', '4', 'p-299');
  const address = node.address('answers');
  const report = JSON.parse(await trawl('publish', local, address, '--json'));
  const { verified, address: shown, ...facts } = report;
  assert.deepEqual(facts, { collection: 'answers', rows: 297, resumed: false, wasComplete: false, alias: null });
  assert.equal(shown, address);
  // Two samples may be the row after the same deleted one.
  assert.ok(verified.rows > 60 && verified.questions === verified.rows && verified.same === verified.rows);
  assert.equal(JSON.parse(await trawl('publish', local, address, '--json')).wasComplete, true);
  assert.match(await trawl('verify', address), /intact/);
  assert.match(
    await trawl('inspect', address),
    /300 × 256, inner-product; 297 in Milvus.*\n.*\n.*FLAT, exact.*\n.*year \(number\), source \(string\)/,
  );
  assert.match(
    await trawl('doctor', address),
    /answers, FLAT, 297 rows in .*\n {2}copies +1 of each row.*\n {2}query node .*: 297 rows.*\n.*ms for 10 rows.*\n.*complete and ready/,
  );

  const [here, there] = await Promise.all([serve(t, local), serve(t, `local=${address}`)]);
  const bodies: [string, unknown][] = [
    ['/retrieve', { queries: QUESTIONS.slice(0, 3), topk: 7, return_scores: true }],
    ['/v1/search', { queries: QUESTIONS.slice(0, 3), k: 300 }],
    ...["source = 'wiki'", 'year >= 1990', "year = 1933 and source = 'news'", 'year != 1900', 'year > 3000'].map(
      (filter): [string, unknown] => ['/v1/search', { queries: QUESTIONS.slice(0, 3), k: 12, filter }],
    ),
  ];
  const comparable = (text: string): unknown =>
    JSON.parse(text, (key, value) => (key === 'timings' || key === 'rescored' || key === 'took' ? undefined : value));
  for (const [path, body] of bodies) {
    const [a, b] = await Promise.all([post(here + path, body), post(there + path, body)]);
    assert.equal(a.status, 200, a.text);
    assert.deepEqual(comparable(b.text), comparable(a.text), JSON.stringify(body));
  }
  for (const path of ['/v1/passages/p-3', '/v1/passages/6', '/v1/passages/p-6', '/v1/passages/p-1', '/v1/passages/7']) {
    const [a, b] = await Promise.all([here, there].map(async (url) => (await fetch(url + path)).text()));
    assert.deepEqual(comparable(b!), comparable(a!), path);
  }

  const refused = await run('publish', join(folder, 'other'), address);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /is of another index.*\[INDEX_EXISTS\]/);

  const client = await node.client();
  t.after(() => client.close());
  const [row] = await client.query('answers', { filter: 'row == 10', fields: ['*'], consistency: 'Strong' });
  await client.upsert('answers', [{ ...row, document: '{"text":"changed"}' }]);
  await client.flush('answers');
  await pause(6_000);
  const damaged = await run('verify', address);
  assert.equal(damaged.code, 3, damaged.stdout + damaged.stderr);
});

test('an approximate index says exact: false in every reply', { skip }, async (t) => {
  const local = join(folder, 'other');
  await trawl('publish', local, node.address('approximate'), '--index-type', 'HNSW');
  const url = await serve(t, node.address('approximate'));
  const { status, text } = await post(`${url}/v1/search`, { queries: QUESTIONS.slice(0, 2), k: 5 });
  assert.equal(status, 200, text);
  for (const [path, body] of [
    ['/v1/search', { queries: QUESTIONS.slice(0, 2), k: 5 }],
    ['/retrieve', { queries: QUESTIONS.slice(0, 2), topk: 5 }],
    ['/search', { query: QUESTIONS[0], top_n: 5 }],
  ] as const) {
    const reply = await fetch(url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    assert.equal(reply.headers.get('x-trawl-exact'), 'false', path);
    await reply.text();
  }
  const rllm = JSON.parse((await post(`${url}/retrieve`, { query: QUESTIONS[0], top_k: 5 })).text);
  assert.equal(rllm.method, 'dense');
  assert.equal(JSON.parse(await trawl('search', node.address('approximate'), 'a mountain', '--json')).exact, false);
  const { results } = JSON.parse(text) as { results: { certificate: { exact: boolean }; hits: unknown[] }[] };
  assert.deepEqual(
    results.map(({ certificate, hits }) => [certificate.exact, hits.length]),
    [
      [false, 5],
      [false, 5],
    ],
  );
});

test('a build into Milvus that is killed while it embeds and while it publishes is resumed, and is an index only after its end', {
  skip: skipHotpot,
}, async () => {
  const local = join(folder, 'hotpot');
  const address = node.address('resumed');
  const build = ['index', sharedData(HOTPOT), '--out', address, '--work', local, '--model', 'token-average-256'];
  const start = (): ChildProcess => spawnTrawl([...build, '--quiet'], { env: node.environment });
  const building = start();
  while (!existsSync(`${local}.partial`)) {
    assert.equal(building.exitCode, null, 'the build ended before it was killed');
    await pause(5);
  }
  building.kill('SIGKILL');
  await endOf(building);
  assert.ok(!existsSync(local));
  const publishing = start();
  const client = await node.client();
  try {
    // Killed after the first record of progress, before the last.
    for (;;) {
      const found = await client
        .query('resumed_trawl', { filter: 'part == 100000', fields: ['bytes'], consistency: 'Strong' })
        .catch(() => []);
      if (found.length > 0 && !Buffer.from(String(found[0]!.bytes), 'base64').toString().includes('"nextRow":0')) break;
      assert.equal(publishing.exitCode, null, 'the publication ended before it was killed');
      await pause(20);
    }
    publishing.kill('SIGKILL');
    await endOf(publishing);
    const unfinished = await run('search', address, 'x');
    assert.match(unfinished.stderr, /the publication into resumed is unfinished.*\[INDEX_NOT_FOUND\]/);
    const [built, report] = (await trawl(...build, '--json'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    assert.equal(built.built, false, 'a complete folder is not built again');
    assert.equal(report.resumed, true);
    assert.equal(report.rows, 4_937);
    const again = JSON.parse(await trawl('publish', local, address, '--json'));
    assert.equal(again.wasComplete, true);
    assert.equal(again.verified.same, again.verified.questions);
    assert.match(await trawl('verify', address), /intact/);
  } finally {
    await client.close();
  }
});

test('an alias is moved under the load of several clients, of whom none gets a failed or mixed answer', {
  skip,
}, async (t) => {
  const first = join(folder, 'other');
  const second = join(folder, 'next');
  await trawl('index', corpus(), '--out', second, '--model', 'token-average-256', '--passage-template', '{text}');
  await trawl('publish', first, node.address('swap_1'), '--alias', 'live');
  let server: ChildProcess | undefined;
  const url = await serve(t, node.address('live'), ['--cache-bytes', '0'], (child) => (server = child));
  const queries = QUESTIONS.slice(0, 3);
  const ask = async (): Promise<string> => {
    const { status, text } = await post(`${url}/retrieve`, { queries, topk: 3, return_scores: true });
    assert.equal(status, 200, text);
    return text;
  };
  const before = await ask();
  const answers = Array.from({ length: 4 }, (): string[] => []);
  let isOver = false;
  const clients = answers.map(async (own) => {
    while (!isOver) own.push(await ask());
  });
  const load = Promise.all(clients);
  try {
    await trawl('publish', second, node.address('swap_2'), '--alias', 'live');
    assert.equal(await ask(), before, 'a running server stays with the collection that it opened');
    server!.kill('SIGHUP');
    const end = performance.now() + 60_000;
    while ((await ask()) === before) assert.ok(performance.now() < end, 'the server did not take the next index');
    for (let i = 0; i < 20; i++) await ask();
  } finally {
    isOver = true;
    await load;
  }
  const after = await ask();
  assert.notEqual(after, before);
  for (const own of answers) {
    const changed = own.indexOf(after);
    assert.ok(changed > 0 && own.every((answer, i) => answer === (i < changed ? before : after)));
  }
  t.diagnostic(`${answers.flat().length} answers of 4 clients`);
  const same = await run('publish', first, node.address('live'));
  assert.match(same.stderr, /live is an alias of swap_2.*\[INDEX_EXISTS\]/);
});

test('eval and MCP give the same figures and passages as the folder', { skip }, async (t) => {
  const local = join(folder, 'other');
  const lines = readFileSync(SAMPLE_PASSAGES, 'utf8').split('\n').filter(Boolean).slice(0, 20);
  const questions = join(folder, 'questions.jsonl');
  const rows = lines.map((line, i) => {
    const { id, title } = JSON.parse(line) as { id: string; title: string };
    return JSON.stringify({ id: `q${i}`, question: title, gold_ids: [id] });
  });
  writeFileSync(questions, `${rows.join('\n')}\n`);
  const [here, there] = [
    JSON.parse(await trawl('eval', local, '--queries', questions, '--json')),
    JSON.parse(await trawl('eval', node.address('steady'), '--queries', questions, '--json')),
  ];
  assert.deepEqual(there.metrics, here.metrics);
  assert.deepEqual(there.queries, 20);
  assert.ok(here.metrics['recall@10'] > 0.5);

  const found = await Promise.all(
    [local, node.address('steady')].map(async (place) => {
      const client = new Client({ name: 'test', version: '1' });
      t.after(() => client.close());
      const env = { ...process.env, ...node.environment } as Record<string, string>;
      await client.connect(
        new StdioClientTransport({ command: process.execPath, args: [...TRAWL.slice(1), 'mcp', place], env }),
      );
      const call = { name: 'search', arguments: { query: 'who designed the Brooklyn Bridge', k: 2 } };
      const { structuredContent } = await client.callTool(call);
      const { results } = structuredContent as { results: { id: string }[] };
      const fetched = await client.callTool({ name: 'fetch', arguments: { id: results[0]!.id } });
      // The name of the index is in addresses of passages.
      const text = JSON.stringify({ results, fetched: fetched.structuredContent });
      return JSON.parse(
        text.replaceAll(/trawl:\/\/\w+\//g, 'trawl://index/').replaceAll(/"index":"\w+"/g, '"index":""'),
      );
    }),
  );
  assert.equal(found[0].results.length, 2);
  assert.deepEqual(found[1], found[0]);
});

test('an index in Milvus is opened with its own encoder alone, also by a reload of an alias', { skip }, async (t) => {
  const toy = await toyModel(t);
  const place = node.address('steady');
  for (const args of [
    ['search', place, 'a mountain'],
    ['serve', place, '--port', '0'],
    ['eval', place, '--queries', join(SAMPLE, 'questions.jsonl')],
  ]) {
    const { code, stderr } = await run(...args, '--model', toy);
    assert.equal(code, 1, args[0]);
    assert.match(stderr, /built with token-average-256, but the query encoder is toy\. .*sha256.*\[MODEL_MISMATCH\]/);
  }
  await trawl('publish', join(folder, 'other'), place, '--alias', 'models');
  const url = await serve(t, node.address('models'), ['--model', 'token-average-256']);
  const ask = (): Promise<{ status: number; text: string }> =>
    post(`${url}/retrieve`, { queries: QUESTIONS.slice(0, 2), topk: 3 });
  const before = await ask();
  assert.equal(before.status, 200, before.text);
  const few = join(folder, 'few.jsonl');
  writeFileSync(few, Array.from({ length: 40 }, (_, i) => JSON.stringify({ id: i, text: `river ${i}` })).join('\n'));
  await trawl('index', few, '--out', join(folder, 'toy'), '--model', toy);
  await trawl('publish', join(folder, 'toy'), node.address('toy'), '--alias', 'models');
  const { indexes } = (await (await fetch(`${url}/v1/indexes`)).json()) as { indexes: { name: string }[] };
  const reload = await post(`${url}/admin/indexes/${indexes[0]!.name}/reload`, {});
  assert.match(reload.text, /RELOAD_FAILED.*MODEL_MISMATCH.*The old index still answers/);
  assert.equal((await ask()).text, before.text, 'the server stays with the index that it opened');
});

test('a wrong or missing password of Milvus is refused with where it was looked for, and never shown', {
  skip,
}, async () => {
  const credentials = join(folder, 'credentials');
  writeFileSync(credentials, `milvus://root:Milvus@127.0.0.1:${node.port}\n`);
  const search = (env: Record<string, string>) => runTrawl(['inspect', node.address('steady')], { env });
  assert.equal((await search({ TRAWL_MILVUS_CREDENTIALS_FILE: credentials })).code, 0);
  const wrong = { TRAWL_MILVUS_CREDENTIALS: `milvus://root:secret@127.0.0.1:${node.port}` };
  const ofAnother = { TRAWL_MILVUS_CREDENTIALS: `milvus://root:secret@localhost:${node.port}` };
  for (const [env, reason] of [
    [{}, /neither TRAWL_MILVUS_CREDENTIALS_FILE nor TRAWL_MILVUS_CREDENTIALS is set.*\[STORE_REFUSED\]/],
    [ofAnother, /TRAWL_MILVUS_CREDENTIALS has no line for milvus:\/\/127\.0\.0\.1:\d+.*\[STORE_REFUSED\]/],
    [wrong, /Check user and password in the line for milvus:\/\/127.* of TRAWL_MILVUS_CREDENTIALS.*\[STORE_REFUSED\]/],
  ] as const) {
    const { code, stderr } = await search(env);
    assert.equal(code, 1);
    assert.match(stderr, reason);
    assert.doesNotMatch(stderr, /secret/);
  }
});

test('a build into a taken name or a missing database of Milvus ends before it embeds', { skip }, async () => {
  const work = join(folder, 'never');
  const build = (address: string) =>
    run('index', SAMPLE_PASSAGES, '--out', address, '--work', work, '--model', './none');
  for (const [address, reason] of [
    [node.address('steady'), /has rows of an index already.*\[INDEX_EXISTS\]/],
    [node.address('steady_trawl'), /was not made by `trawl publish`.*\[INDEX_EXISTS\]/],
    [node.address('live'), /live is an alias of swap_2.*\[INDEX_EXISTS\]/],
    [node.address('steady').replace('/default/', '/missing/'), /no such database.*\[INDEX_NOT_FOUND\]/],
    [node.address('free'), /\[MODEL_NOT_FOUND\]/],
  ] as const) {
    const { code, stderr } = await build(address);
    assert.equal(code, 1);
    assert.match(stderr, reason);
  }
  const client = await node.client();
  try {
    // As an unfinished publication of another index leaves it, killed before its first record.
    await trawl('publish', join(folder, 'other'), node.address('fields'));
    const files = await client.query('fields_trawl', { filter: 'part >= 0', fields: ['part'], consistency: 'Strong' });
    assert.ok(files.length > 0);
    await client.drop('fields');
    await client.create('fields', { description: '', fields: rowFields(24, { pieces: 1 }) });
    const refused = await run('publish', join(folder, 'other'), node.address('fields'));
    assert.match(
      refused.stderr,
      /has other fields than this index needs: no vector \(FloatVector of 256\).*\[INDEX_EXISTS\]/,
    );
  } finally {
    await client.close();
  }
});

test('a server whose Milvus is frozen or killed answers 503 with Retry-After, never a partial list, and recovers by itself', {
  skip,
}, async (t) => {
  const url = await serve(t, node.address('steady'), ['--cache-bytes', '0']);
  const ask = () => post(`${url}/retrieve`, { queries: QUESTIONS.slice(0, 3), topk: 3, return_scores: true });
  const before = await ask();
  assert.equal(before.status, 200);
  for (const [fault, repair] of [
    ['freeze', 'thaw'],
    ['kill', 'start'],
  ] as const) {
    await node.tell(fault);
    const start = performance.now();
    // The request's time limit is 15 s, Milvus's lease 30 s: it is thawed before it has lost its lease.
    const failed = await ask();
    assert.equal(failed.status, 503, failed.text);
    assert.ok(Number(failed.retryAfter) >= 1);
    assert.ok(performance.now() - start < 40_000);
    await node.tell(repair);
    const repaired = performance.now();
    const ready = node.untilReady().then(() => performance.now() - repaired);
    let refused = 0;
    let recoveredMs = 0;
    // Milvus may answer before it notices that it has lost its lease and ends itself: the server has recovered with many answers in a row.
    for (let inARow = 0; inARow < 10; ) {
      const answer = await ask();
      if (answer.status === 200) {
        assert.equal(answer.text, before.text);
        if (inARow === 0) recoveredMs = performance.now() - repaired;
        inARow++;
        continue;
      }
      inARow = 0;
      refused++;
      assert.equal(answer.status, 503, answer.text);
      assert.ok(Number(answer.retryAfter) >= 1);
      assert.ok(performance.now() - repaired < 240_000, `refused four minutes after ${repair}: ${answer.text}`);
      await pause(250);
    }
    t.diagnostic(
      `${repair}: Milvus ready after ${Math.round(await ready)} ms, the server after ${Math.round(recoveredMs)} ms, ${refused} refused`,
    );
  }
});
