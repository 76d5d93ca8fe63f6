import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { withoutSharedData } from '../helpers/shared-data.ts';
import { OPENSEARCH_VERSION } from '../peers/opensearch-node.ts';
import type { ClusterFigures, ClusterMemory } from './cluster-figures.ts';
import { ask, post } from './dialect-requests.ts';
import { compareDialects, expectedReplies, UNANSWERED } from './expected-replies.ts';
import { testsInTurn } from './in-turn.ts';
import { LoadTrials } from './load-trials.ts';
import { OpenSearchCluster } from './opensearch-cluster.ts';
import { batchSearches, searchesInMode, singleSearches } from './searches.ts';
import type { ServedIndex } from './served.ts';
import { TrialIndex } from './trial-index.ts';
import { comparable, type WatchedRequest } from './watched-load.ts';
import { agentQueries, WIKI_CORPUS } from './wiki-rows.ts';
import { writeFigures } from './write-figures.ts';

const skip = withoutSharedData(WIKI_CORPUS);
const inTurn = testsInTurn(skip);
const NODES = 3;
const SHARDS = 3;
/** Of each shard: one more, so that any one node may fail. */
const COPIES = 2;
const BATCH = 20;
const CLIENTS = 4;
/** How long a kill lasts: longer than OpenSearch takes to give up a node (30 s). */
const KILL_MS = 45_000;
/** How long a freeze lasts: longer than the time limit of a read (60 s). */
const FREEZE_MS = 75_000;
/** Settings with which the interface of Elasticsearch answers too: its k1 and b. */
const WORDS = ['--bm25', '--analyser', 'standard', '--bm25-fields', 'title,text', '--k1', '1.2', '--b', '0.75'];

let folder: string;
let cluster: OpenSearchCluster;
let index: TrialIndex;
let here: ServedIndex;
let there: ServedIndex;
let dense: WatchedRequest[];
let words: WatchedRequest[];
let both: WatchedRequest[];
/** Of all modes in turn. */
let searches: WatchedRequest[];
let dialects: readonly WatchedRequest[];
const queries = skip === false ? agentQueries(60) : [];
const trials = new LoadTrials();
const memory: ClusterMemory[] = [];
const figures: { publishMs?: number; diskBytes?: number; dialects?: ClusterFigures['dialects'] } = {};

before(async () => {
  if (skip !== false) return;
  folder = await mkdtemp(join(tmpdir(), 'trawl-cluster-'));
  cluster = await OpenSearchCluster.start(folder, { nodes: NODES });
  memory.push({ name: 'nothing', bytes: cluster.memory() });
  index = await TrialIndex.build(folder, { args: WORDS });
  here = await index.serve(index.local);
  dense = await expectedReplies(here, singleSearches(queries));
  words = await expectedReplies(here, searchesInMode(queries, 'bm25'));
  both = await expectedReplies(here, searchesInMode(queries, 'hybrid'));
  searches = dense.flatMap((request, i) => [request, words[i]!, both[i]!]);
});
after(async () => {
  await here?.stop();
  await there?.stop();
  await cluster?.stop();
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
});

inTurn('an index is published with three shards and a further copy of each, and found complete', async (t) => {
  const address = cluster.address('wiki');
  figures.publishMs = await index.publish(address, '--shards', String(SHARDS), '--replicas', String(COPIES));
  await cluster.untilWhole();
  figures.diskBytes = await cluster.diskBytes('wiki');
  const doctor = await index.trawl('doctor', address);
  assert.match(doctor, /data nodes: 3\n.*6 of 6 shards with copies/);
  assert.match(doctor, /complete and ready/);
  t.diagnostic(doctor.slice(doctor.search(/^OpenSearch/m)).trim());
});

inTurn('every dialect gets the reply of the folder’s server', async (t) => {
  there = await index.serve(cluster.address('wiki'));
  const compared = await compareDialects(here, there, [queries.slice(0, 3), queries.slice(3, 11)]);
  assert.deepEqual(compared.refused, UNANSWERED.words);
  dialects = compared.answered;
  figures.dialects = { requests: compared.requests, answered: dialects.length };
  t.diagnostic(`${compared.requests} requests, ${dialects.length} of them answered`);
});

inTurn('under the load of several clients every reply is that of the folder’s server', async (t) => {
  const rate = (name: string, requests: readonly WatchedRequest[], clients: number, queriesOf = 1) =>
    trials.rate(t, name, { server: there, requests, clients, queries: queriesOf });
  const batches = await expectedReplies(here, batchSearches(queries, BATCH));
  await rate('dense: one client, one query a request', dense, 1);
  await rate(`dense: one client, ${BATCH} queries a request`, batches, 1, BATCH);
  await rate(`dense: ${CLIENTS} clients, one query a request`, dense, CLIENTS);
  await rate('bm25: one client, one query a request', words, 1);
  await rate(`bm25: ${CLIENTS} clients, one query a request`, words, CLIENTS);
  await rate(`hybrid: ${CLIENTS} clients, one query a request`, both, CLIENTS);
  memory.push({ name: 'two copies', bytes: cluster.memory() });
});

inTurn('a node that is killed costs no wrong answer; the others answer', async (t) => {
  const { program } = cluster.nodes[0]!;
  const event = await trials.withFault(
    t,
    {
      name: 'two copies: a node killed, started again after 45 s',
      begin: () => program.end('SIGKILL'),
      lasts: () => pause(KILL_MS),
      end: async () => program.start(),
      untilWhole: () => cluster.untilWhole(),
    },
    { server: there, searches, dialects, clients: CLIENTS },
  );
  assert.ok(event.answersMeanwhile > 0);
});

inTurn(
  'a node that is frozen for longer than the time limit of a read costs no wrong answer; the others answer',
  async (t) => {
    const { program } = cluster.nodes[1]!;
    const event = await trials.withFault(
      t,
      {
        name: 'two copies: a node frozen for 75 s',
        begin: async () => program.signal('SIGSTOP'),
        lasts: () => pause(FREEZE_MS),
        end: async () => program.signal('SIGCONT'),
        untilWhole: () => cluster.untilWhole(),
      },
      { server: there, searches, dialects, clients: CLIENTS },
    );
    assert.ok(event.answersMeanwhile > 0);
  },
);

inTurn('a rolling restart of the nodes costs no wrong answer', async (t) => {
  const event = await trials.withFault(
    t,
    {
      name: 'two copies: the three nodes restarted in turn',
      begin: async () => undefined,
      lasts: async () => {
        for (const { program } of cluster.nodes) {
          await program.end('SIGTERM');
          program.start();
          await cluster.untilWhole();
        }
      },
      end: async () => undefined,
      untilWhole: () => cluster.untilWhole(),
    },
    { server: there, searches, dialects, clients: CLIENTS },
  );
  assert.ok(event.answersMeanwhile > 0);
});

inTurn('afterwards every row is there, and every query is answered as before', async (t) => {
  const rate = { server: there, requests: dense, clients: 1 };
  await trials.rate(t, 'dense, after the faults: one client, one query a request', rate);
  assert.match(await index.trawl('verify', cluster.address('wiki')), /intact/);
});

inTurn(
  'without a further copy, a killed node costs answers, not parts of them: 503, or the cached answer',
  async (t) => {
    await there.stop();
    await index.publish(cluster.address('single'), '--shards', String(SHARDS), '--replicas', '1');
    await cluster.untilWhole();
    there = await index.serve(cluster.address('single'));
    const caching = await index.serve(cluster.address('single'), { hasCache: true });
    try {
      const [cached, other] = await expectedReplies(here, [
        post('/retrieve', { queries: [queries[0]!], topk: 10 }),
        post('/retrieve', { queries: [queries[1]!], topk: 10 }),
      ]);
      // Equal requests at once are one search.
      const computed = await metric(caching, 'trawl_computed_queries_total');
      const atOnce = await Promise.all(Array.from({ length: 8 }, () => ask(caching, cached!.request)));
      for (const { text } of atOnce) assert.equal(comparable(text), cached!.expected);
      assert.equal((await metric(caching, 'trawl_computed_queries_total')) - computed, 1);
      const { program } = await cluster.nodeWithShardOf('single');
      const event = await trials.withFault(
        t,
        {
          name: 'one copy: a node killed, started again after 45 s',
          begin: () => program.end('SIGKILL'),
          lasts: async () => {
            await pause(KILL_MS);
            assert.equal(comparable((await ask(caching, cached!.request)).text), cached!.expected);
            const reply = await ask(caching, other!.request);
            assert.equal(reply.status, 503, reply.text);
            assert.ok(reply.retryAfter >= 1);
          },
          end: async () => program.start(),
          untilWhole: () => cluster.untilWhole(),
        },
        { server: there, searches, clients: CLIENTS },
      );
      assert.ok(event.refused > 0);
      assert.equal(comparable((await ask(caching, other!.request)).text), other!.expected);
    } finally {
      await caching.stop();
    }
    writeFigures({
      engine: `OpenSearch ${OPENSEARCH_VERSION}`,
      nodes: NODES,
      shards: SHARDS,
      copies: COPIES,
      publishMs: figures.publishMs!,
      diskBytes: figures.diskBytes!,
      dialects: figures.dialects!,
      memory,
      rates: trials.rates,
      events: trials.events,
    });
  },
);

async function metric({ url }: ServedIndex, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const [, value] = new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(text) ?? [];
  return Number(value);
}
