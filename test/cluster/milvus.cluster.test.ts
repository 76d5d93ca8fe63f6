import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { withoutSharedData } from '../helpers/shared-data.ts';
import { MILVUS_VERSION } from '../peers/install-milvus.ts';
import type { ClusterFigures, ClusterMemory } from './cluster-figures.ts';
import { compareDialects, expectedReplies, UNANSWERED } from './expected-replies.ts';
import { testsInTurn } from './in-turn.ts';
import { LoadTrials, untilAnswered } from './load-trials.ts';
import { MilvusCluster } from './milvus-cluster.ts';
import { batchSearches, singleSearches } from './searches.ts';
import type { ServedIndex } from './served.ts';
import { TrialIndex } from './trial-index.ts';
import type { WatchedRequest } from './watched-load.ts';
import { agentQueries, WIKI_CORPUS } from './wiki-rows.ts';
import { writeFigures } from './write-figures.ts';

const skip = withoutSharedData(WIKI_CORPUS);
const inTurn = testsInTurn(skip);
const QUERY_NODES = 2;
const BATCH = 50;
const CLIENTS = 6;
/** How long a fault lasts: longer than Milvus's leases (30 s) and the time limit of a read (15 s). */
const FAULT_MS = 45_000;

let folder: string;
let cluster: MilvusCluster;
let index: TrialIndex;
let here: ServedIndex;
let there: ServedIndex;
let searches: WatchedRequest[];
let batches: WatchedRequest[];
let dialects: readonly WatchedRequest[];
const queries = skip === false ? agentQueries(200) : [];
const trials = new LoadTrials();
const memory: ClusterMemory[] = [];
const figures: { publishMs?: number; dialects?: ClusterFigures['dialects'] } = {};

before(async () => {
  if (skip !== false) return;
  folder = await mkdtemp(join(tmpdir(), 'trawl-cluster-'));
  cluster = await MilvusCluster.start(folder, { queryNodes: QUERY_NODES });
  index = await TrialIndex.build(folder, { env: cluster.environment });
  here = await index.serve(index.local);
  searches = await expectedReplies(here, singleSearches(queries));
  batches = await expectedReplies(here, batchSearches(queries, BATCH));
  memory.push({ name: 'nothing', bytes: cluster.memory() });
});
after(async () => {
  await here?.stop();
  await there?.stop();
  await cluster?.stop();
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
});

async function measureRates(t: TestContext, of: string): Promise<void> {
  const rate = (name: string, requests: readonly WatchedRequest[], clients: number, queriesOf = 1) =>
    trials.rate(t, `${of}: ${name}`, { server: there, requests, clients, queries: queriesOf });
  await rate('one client, one query a request', searches, 1);
  await rate(`one client, ${BATCH} queries a request`, batches, 1, BATCH);
  await rate(`${CLIENTS} clients, one query a request`, searches, CLIENTS);
}

inTurn('one copy is divided over the query nodes, and answers as the folder', async (t) => {
  const address = cluster.address('single');
  await index.publish(address, '--replicas', '1', '--channels', String(QUERY_NODES));
  await cluster.untilDivided();
  there = await index.serve(address);
  await measureRates(t, 'one copy');
  memory.push({ name: 'one copy', bytes: cluster.memory() });
});

inTurn(
  'without a further copy, requests after a kill fail with 503 until the other node has loaded the rows, and none is wrong',
  async (t) => {
    const { program } = cluster.queryNodes[0]!;
    const event = await trials.withFault(
      t,
      {
        name: 'one copy: a query node killed, started again after 45 s',
        begin: () => program.end('SIGKILL'),
        lasts: () => pause(FAULT_MS),
        end: async () => program.start(),
        untilWhole: () => cluster.untilUp(),
      },
      { server: there, searches, clients: CLIENTS },
    );
    assert.ok(event.refused > 0);
    await there.stop();
    await cluster.drop('single');
    await cluster.untilEmpty();
  },
);

inTurn('an index is published with a copy on each query node, and found complete', async (t) => {
  const address = cluster.address('wiki');
  figures.publishMs = await index.publish(address, '--replicas', String(QUERY_NODES));
  await cluster.untilLoaded();
  const doctor = await index.trawl('doctor', address);
  assert.match(doctor, /complete and ready/);
  t.diagnostic(doctor.slice(doctor.search(/^Milvus/m)).trim());
});

inTurn('every dialect gets the reply of the folder’s server', async (t) => {
  there = await index.serve(cluster.address('wiki'));
  const compared = await compareDialects(here, there, [queries.slice(0, 3), queries.slice(3, 11)]);
  assert.deepEqual(compared.refused, UNANSWERED.dense);
  dialects = compared.answered;
  figures.dialects = { requests: compared.requests, answered: dialects.length };
  t.diagnostic(`${compared.requests} requests, ${dialects.length} of them answered`);
});

inTurn('under the load of several clients every reply is that of the folder’s server', async (t) => {
  await measureRates(t, 'two copies');
  memory.push({ name: 'two copies', bytes: cluster.memory() });
});

inTurn('a query node that is killed costs no wrong answer; the other answers', async (t) => {
  const { program } = cluster.queryNodes[0]!;
  const event = await trials.withFault(
    t,
    {
      name: 'two copies: a query node killed, started again after 45 s',
      begin: () => program.end('SIGKILL'),
      lasts: () => pause(FAULT_MS),
      end: async () => program.start(),
      untilWhole: () => cluster.untilLoaded(),
    },
    { server: there, searches, dialects, clients: CLIENTS },
  );
  assert.ok(event.answersMeanwhile > 0);
});

inTurn(
  'a query node that is frozen for longer than the time limit of a read costs no wrong answer; the other answers',
  async (t) => {
    const { program } = cluster.queryNodes[1]!;
    const event = await trials.withFault(
      t,
      {
        name: 'two copies: a query node frozen for 45 s, which then ends for its lost lease, and is started again',
        begin: async () => program.signal('SIGSTOP'),
        lasts: () => pause(FAULT_MS),
        end: async () => {
          program.signal('SIGCONT');
          await program.untilEnded();
          program.start();
        },
        untilWhole: () => cluster.untilLoaded(),
      },
      { server: there, searches, dialects, clients: CLIENTS },
    );
    assert.ok(event.answersMeanwhile > 0);
  },
);

inTurn('a rolling restart of the query nodes costs no wrong answer', async (t) => {
  const event = await trials.withFault(
    t,
    {
      name: 'two copies: both query nodes restarted in turn',
      begin: async () => undefined,
      lasts: async () => {
        for (const { program } of cluster.queryNodes) {
          await program.end('SIGTERM');
          program.start();
          await cluster.untilLoaded();
          await untilAnswered(there, searches);
        }
      },
      end: async () => undefined,
      untilWhole: () => cluster.untilLoaded(),
    },
    { server: there, searches, dialects, clients: CLIENTS },
  );
  assert.ok(event.answersMeanwhile > 0);
});

inTurn('afterwards every row is there, and every query is answered as before', async (t) => {
  await trials.rate(t, 'two copies, after the faults: one client, one query a request', {
    server: there,
    requests: searches,
    clients: 1,
  });
  assert.match(await index.trawl('verify', cluster.address('wiki')), /intact/);
  writeFigures({
    engine: `Milvus ${MILVUS_VERSION}`,
    nodes: QUERY_NODES,
    shards: 1,
    copies: QUERY_NODES,
    publishMs: figures.publishMs!,
    dialects: figures.dialects!,
    memory,
    rates: trials.rates,
    events: trials.events,
  });
});
