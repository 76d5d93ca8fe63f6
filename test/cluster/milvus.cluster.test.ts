import assert from 'node:assert/strict';
import { createReadStream, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { importModel } from '../../model-import/import-model.ts';
import { NAMEABLE_DIALECTS } from '../../src/http/dialects/dispatch.ts';
import { runTrawl } from '../cli/run-trawl.ts';
import { sharedData, withoutSharedData } from '../helpers/shared-data.ts';
import { MILVUS_VERSION } from '../peers/install-milvus.ts';
import { writeCrossEncoder } from '../rerank/tiny-cross-encoder.ts';
import { ask, dialectRequests } from './dialect-requests.ts';
import { MilvusCluster } from './milvus-cluster.ts';
import type { MilvusClusterFigures } from './milvus-figures.ts';
import { type ServedIndex, serve } from './served.ts';
import { comparable, type LoadFigures, WatchedLoad, type WatchedRequest } from './watched-load.ts';

const CORPUS = 'pool_wiki_dev/corpus.jsonl';
const CALLS = 'search_calls/all_search_calls.jsonl';
const skip = withoutSharedData(CORPUS);
const ROWS = Number(process.env.TRAWL_CLUSTER_ROWS ?? 50_000);
const QUERY_NODES = 2;
const QUERIES = 200;
const BATCH = 50;
const CLIENTS = 8;
/** How long a rate is measured, and how long a harm lasts: longer than Milvus's leases (30 s). */
const RATE_MS = 20_000;
const HARM_MS = 45_000;
/** After this the cluster has to answer again. */
const RECOVERY_MS = 240_000;

let folder: string;
let cluster: MilvusCluster;
let here: ServedIndex;
let there: ServedIndex;
let load: WatchedLoad;
let queries: string[];
const figures: Partial<Record<keyof MilvusClusterFigures, unknown>> = {};
const rates: MilvusClusterFigures['rates'][number][] = [];
const events: MilvusClusterFigures['events'][number][] = [];

async function trawl(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runTrawl(args, { env: cluster.environment });
  assert.equal(code, 0, `trawl ${args.join(' ')}: ${stderr}`);
  return stdout;
}

/** The first rows of the corpus with a column for filters. */
async function corpus(): Promise<string> {
  const path = join(folder, 'corpus.jsonl');
  const lines: string[] = [];
  for await (const line of createInterface({ input: createReadStream(sharedData(CORPUS)) })) {
    if (lines.length === ROWS) break;
    lines.push(JSON.stringify({ ...JSON.parse(line), part: lines.length % 10 }));
  }
  assert.equal(lines.length, ROWS);
  writeFileSync(path, `${lines.join('\n')}\n`);
  return path;
}

/** Distinct queries of search agents. */
function recordedQueries(): string[] {
  const found = new Set<string>();
  for (const line of readFileSync(sharedData(CALLS), 'utf8').split('\n')) {
    if (line === '' || found.size === QUERIES) break;
    for (const query of (JSON.parse(line) as { queries: string[] }).queries) if (found.size < QUERIES) found.add(query);
  }
  return [...found];
}

async function watched(path: string, body: object): Promise<WatchedRequest> {
  const reply = await ask(here.url, { dialect: '', named: undefined, method: 'POST', path, body: body as never });
  assert.equal(reply.status, 200, reply.text);
  return { path, body, expected: comparable(reply.text) };
}

before(async () => {
  if (skip !== false) return;
  folder = await mkdtemp(join(tmpdir(), 'trawl-cluster-'));
  cluster = await MilvusCluster.start(folder, { queryNodes: QUERY_NODES });
});
after(async () => {
  await here?.stop();
  await there?.stop();
  await cluster?.stop();
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
});

test('an index is published with a copy on each query node, and found complete', { skip }, async (t) => {
  const local = join(folder, 'wiki');
  await trawl('index', await corpus(), '--out', local, '--model', 'token-average-256', '--column', 'part:number');
  const start = performance.now();
  const address = cluster.address('wiki');
  const report = JSON.parse(await trawl('publish', local, address, '--replicas', String(QUERY_NODES), '--json'));
  figures.publishMs = performance.now() - start;
  assert.equal(report.rows, ROWS);
  assert.equal(report.verified.same, report.verified.questions);
  for (const node of cluster.queryNodes) await cluster.untilLoaded(node);
  assert.match(await trawl('verify', address), /intact/);
  const doctor = await trawl('doctor', address);
  assert.match(doctor, /complete and ready/);
  t.diagnostic(doctor.trim().split('\n').slice(0, 3).join('; '));
  figures.memory = cluster.memory();
});

test('every dialect gets the reply of the folder’s server', { skip }, async (t) => {
  const checkpoint = join(folder, 'checkpoint');
  writeCrossEncoder(checkpoint);
  const reranker = join(folder, 'tiny-reranker');
  await importModel(checkpoint, { out: reranker, name: 'tiny-reranker', precisions: ['float32'] });
  const settings = {
    dialects: NAMEABLE_DIALECTS,
    // Reranks only where a request asks for it.
    args: ['--rerank', reranker, '--rerank-depth', '0', '--rerank-threads', '1', '--encoder-threads', '1', '--quiet'],
    env: cluster.environment,
  };
  [here, there] = [await serve(join(folder, 'wiki'), settings), await serve(cluster.address('wiki'), settings)];
  queries = recordedQueries();
  const requests = dialectRequests([queries.slice(0, 3), queries.slice(3, 11)], {
    's-0001': '0',
    's-0003': '2',
    'Brooklyn Bridge': 'Evan Morris',
  });
  let answered = 0;
  for (const request of requests) {
    const [a, b] = await Promise.all([here, there].map((server) => ask(server.urlOf(request.named), request)));
    const shown = `${request.dialect} ${request.path} ${JSON.stringify(request.body)}: ${b!.text.slice(0, 500)}`;
    assert.equal(b!.status, a!.status, shown);
    assert.equal(comparable(b!.text), comparable(a!.text), shown);
    if (a!.status === 200) answered++;
  }
  figures.dialects = { requests: requests.length, answered };
  t.diagnostic(`${requests.length} pairs, ${answered} of them answers`);
  assert.ok(answered > requests.length / 2);
});

test('under the load of several clients every reply is that of the folder’s server', { skip }, async (t) => {
  const one = await Promise.all(
    queries.map((query, i) =>
      i % 5 === 4
        ? watched('/v1/search', { queries: [query], k: 10, filter: 'part < 3' })
        : watched('/retrieve', { queries: [query], topk: 10, return_scores: true }),
    ),
  );
  const many: WatchedRequest[] = [];
  for (let at = 0; at < queries.length; at += BATCH) {
    many.push(await watched('/retrieve', { queries: queries.slice(at, at + BATCH), topk: 10, return_scores: true }));
  }
  load = new WatchedLoad(there.url, one);
  const batches = new WatchedLoad(there.url, many, () => BATCH);
  const measure = async (name: string, of: WatchedLoad, clients: number): Promise<void> => {
    const measured = await of.during(clients, () => pause(RATE_MS));
    assert.deepEqual(of.wrong, []);
    assert.equal(measured.refused, 0);
    rates.push({ name, load: loadavg()[0]!, ...measured });
    t.diagnostic(`${name}: ${measured.queriesPerS.toFixed(1)} queries/s, slowest ${measured.slowestMs.toFixed(0)} ms`);
  };
  await measure('one client, one query a request', load, 1);
  await measure(`one client, ${BATCH} queries a request`, batches, 1);
  await measure(`${CLIENTS} clients, one query a request`, load, CLIENTS);
});

/** Harms the cluster under load, and waits until it is whole again and answers. */
async function underLoad(
  t: { diagnostic(text: string): void },
  name: string,
  harm: () => Promise<void>,
): Promise<LoadFigures> {
  const measured = await load.during(CLIENTS, async () => {
    await harm();
    for (const node of cluster.queryNodes) await cluster.untilLoaded(node);
    await untilAnswered();
    await pause(5_000);
  });
  events.push({ name, load: loadavg()[0]!, ...measured });
  t.diagnostic(JSON.stringify(measured));
  assert.deepEqual(load.wrong, []);
  assert.ok(measured.answers > 0);
  return measured;
}

/** Waits until as many requests in turn as there are clients are answered. */
async function untilAnswered(): Promise<void> {
  const end = performance.now() + RECOVERY_MS;
  for (let answered = 0; answered < CLIENTS; ) {
    const body = { queries: [queries[answered]!], topk: 1 };
    const request = { dialect: '', named: undefined, method: 'POST', path: '/retrieve', body } as const;
    const { status, text } = await ask(there.url, request);
    answered = status === 200 ? answered + 1 : 0;
    assert.ok(performance.now() < end, `no answers ${RECOVERY_MS} ms after: ${text}`);
    await pause(100);
  }
}

test('a query node that is killed costs no wrong answer; requests fail with 503 and Retry-After at most', {
  skip,
}, async (t) => {
  const { program } = cluster.queryNodes[0]!;
  await underLoad(t, 'a query node killed, started again after 45 s', async () => {
    await program.end('SIGKILL');
    await pause(HARM_MS);
    program.start();
  });
});

test('a query node that is frozen costs no wrong answer; requests fail with 503 and Retry-After at most', {
  skip,
}, async (t) => {
  const { program } = cluster.queryNodes[1]!;
  await underLoad(t, 'a query node frozen for 45 s', async () => {
    program.signal('SIGSTOP');
    await pause(HARM_MS);
    program.signal('SIGCONT');
    // Milvus ends a process that lost its lease; whoever runs it starts it again.
    await pause(5_000);
    if (!program.isRunning) program.start();
  });
});

test('a rolling restart of the query nodes costs no wrong answer', { skip }, async (t) => {
  await underLoad(t, 'both query nodes restarted in turn', async () => {
    for (const node of cluster.queryNodes) {
      await node.program.end('SIGTERM');
      node.program.start();
      await cluster.untilLoaded(node);
    }
  });
});

test('afterwards every row is there, and every query is answered as before', { skip }, async () => {
  const once = await load.during(2, () => pause(RATE_MS));
  assert.equal(once.refused, 0);
  assert.deepEqual(load.wrong, []);
  assert.match(await trawl('verify', cluster.address('wiki')), /intact/);
  const file = process.env.TRAWL_CLUSTER_FIGURES;
  if (file === undefined) return;
  const { publishMs, dialects, memory } = figures as Pick<MilvusClusterFigures, 'publishMs' | 'dialects' | 'memory'>;
  const result: MilvusClusterFigures = {
    milvus: MILVUS_VERSION,
    cores: availableParallelism(),
    rows: ROWS,
    dimension: 256,
    k: 10,
    queryNodes: QUERY_NODES,
    replicas: QUERY_NODES,
    publishMs,
    dialects,
    memory,
    rates,
    events,
  };
  writeFileSync(file, `${JSON.stringify(result, undefined, 2)}\n`);
});
