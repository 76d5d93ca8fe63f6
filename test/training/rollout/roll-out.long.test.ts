import assert from 'node:assert/strict';
import { cpSync, mkdirSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { removePassages } from '../../../indexer/update/remove-passages.ts';
import { TrawlClient } from '../../../src/client/client.ts';
import { EncoderPools } from '../../../src/encoder/pool/encoder-pools.ts';
import { readIndexManifest } from '../../../src/index/manifest/read-manifest.ts';
import { openRetriever } from '../../../src/search/opening/open-retriever.ts';
import { AccessKeys } from '../../../src/server/access/access-keys.ts';
import { buildApp } from '../../../src/server/app.ts';
import { IndexRegistry } from '../../../src/server/indexes/index-registry.ts';
import { type RolloutOptions, type RolloutReport, rollOut } from '../../../training/rollout/roll-out.ts';
import { rolloutProbe } from '../../../training/rollout/rollout-probe.ts';
import { RolloutServer } from '../../../training/rollout/rollout-server.ts';
import { fileFolder, runTrawl, SAMPLE, sampleIndex } from '../../cli/run-trawl.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

const base = await fileFolder();
const index = await sampleIndex(base);
const changed = join(base, 'changed');
cpSync(index, changed, { recursive: true });
await removePassages(changed, ['s-0001', 's-0002', 's-0010'], {});
// One encoder for all servers, which stays open.
const encoderPools = new EncoderPools();
const kept = await openRetriever(index, { encoderPools });
after(() => kept.close());
const [old, next] = [index, changed].map((each) => readIndexManifest(each).generation) as [string, string];

interface Replica {
  readonly url: string;
  /** A link to the old or the new index of this server. */
  readonly link: string;
  readonly folder: string;
  point(to: 'old' | 'new'): void;
  stop(): Promise<unknown>;
}

/** Servers whose folder is a link, each with its own copies of both indexes. */
async function startReplicas(t: TestContext, count: number, keys?: AccessKeys): Promise<Replica[]> {
  const root = await tempFolder(t);
  return Promise.all(
    Array.from({ length: count }, async (_, i) => {
      const folder = join(root, `server${i}`);
      mkdirSync(folder);
      cpSync(index, join(folder, 'old'), { recursive: true });
      cpSync(changed, join(folder, 'new'), { recursive: true });
      const link = join(folder, 'wiki');
      const point = (to: 'old' | 'new'): void => {
        symlinkSync(to, `${link}.tmp`);
        renameSync(`${link}.tmp`, link);
      };
      point('old');
      const holder = IndexRegistry.opening([{ name: 'wiki', folder: link }], (name, target) =>
        openRetriever(target.folder, { name, encoderPools }),
      );
      await holder.open();
      const app = buildApp(holder, keys === undefined ? {} : { keys });
      const url = await app.listen({ host: '127.0.0.1', port: 0 });
      t.after(async () => {
        await app.close();
        await holder.close();
      });
      return { url, link, folder, point, stop: async () => app.close() };
    }),
  );
}

function roll(
  replicas: readonly { readonly url: string }[],
  options: Partial<RolloutOptions<undefined>> & { apiKey?: string } = {},
): Promise<RolloutReport> {
  const { apiKey, ...others } = options;
  return rollOut({
    servers: replicas.map(({ url }) => new RolloutServer(url, 'wiki', apiKey)),
    to: undefined,
    back: undefined,
    expected: undefined,
    probe: undefined,
    dryRun: false,
    stay: false,
    oneWay: false,
    signal: new AbortController().signal,
    onStep: () => undefined,
    ...others,
  });
}

async function answering(replicas: readonly Replica[]): Promise<string[]> {
  return Promise.all(replicas.map(async ({ url }) => (await new TrawlClient(url).indexes())[0]!.generation));
}

const statesOf = ({ servers }: RolloutReport): string[] => servers.map(({ state }) => state);

test('servers are swapped one after another; repeated, nothing is left to do; and they go back', async (t) => {
  const replicas = await startReplicas(t, 3);
  for (const { point } of replicas) point('new');
  const planned = await roll(replicas, { dryRun: true });
  assert.deepEqual([planned.state, planned.generation, statesOf(planned)], ['planned', next, Array(3).fill('planned')]);
  assert.deepEqual(await answering(replicas), [old, old, old]);
  const steps: string[] = [];
  const report = await roll(replicas, { onStep: (text) => steps.push(text) });
  assert.deepEqual([report.state, report.generation, statesOf(report)], ['done', next, Array(3).fill('swapped')]);
  assert.deepEqual(await answering(replicas), [next, next, next]);
  assert.deepEqual(
    steps.map((text) => replicas.findIndex(({ url }) => text.startsWith(url))),
    [0, 0, 1, 1, 2, 2],
  );
  assert.equal((await roll(replicas)).state, 'current');
  // A stopped rollout is completed.
  const back = await roll(replicas, { back: { generation: old } });
  assert.deepEqual([back.state, await answering(replicas)], ['done', [old, old, old]]);
  assert.equal((await roll(replicas, { back: { generation: old } })).state, 'current');
  assert.equal((await roll([replicas[0]!])).state, 'done');
  const rest = await roll(replicas);
  assert.deepEqual(statesOf(rest), ['current', 'swapped', 'swapped']);
});

test('a way back without a generation needs servers that agree', async (t) => {
  const replicas = await startReplicas(t, 2);
  await assert.rejects(
    roll(replicas, { back: { generation: undefined } }),
    trawlError('ROLLOUT_FAILED', /has opened no other generation.*--to/s),
  );
  for (const { point } of replicas) point('new');
  await roll(replicas);
  assert.equal((await roll(replicas, { back: { generation: undefined } })).generation, old);
  await roll([replicas[1]!]);
  await assert.rejects(
    roll(replicas, { back: { generation: undefined } }),
    trawlError('ROLLOUT_FAILED', /do not agree.*--generation/s),
  );
  await assert.rejects(
    roll(replicas, { back: { generation: '0'.repeat(32) } }),
    trawlError('ROLLOUT_FAILED', /has not opened generation 0000/),
  );
});

test('a server that cannot open the new index takes all back that were swapped', async (t) => {
  const replicas = await startReplicas(t, 3);
  for (const { point } of replicas) point('new');
  truncateSync(join(replicas[1]!.folder, 'new', 'shard-00000', 'vectors.faiss'), 100);
  const report = await roll(replicas);
  assert.equal(report.state, 'taken back');
  assert.deepEqual(statesOf(report), ['taken back', 'taken back', 'untouched']);
  assert.match(report.servers[1]!.problem!, /refused the reload.*INDEX_FILE_TRUNCATED/);
  assert.deepEqual(await answering(replicas), [old, old, old]);
  const stopped = await roll(replicas, { stay: true });
  assert.deepEqual([stopped.state, statesOf(stopped)], ['stopped', ['swapped', 'failed', 'untouched']]);
  assert.deepEqual(await answering(replicas), [next, old, old]);
});

test('answers that are worse than the limits take all back', async (t) => {
  const replicas = await startReplicas(t, 2);
  for (const { point } of replicas) point('new');
  const urls = replicas.map(({ url }) => url);
  const questions = join(SAMPLE, 'questions.jsonl');
  const run = (...args: string[]) => runTrawl(['admin', 'rollout', ...urls, '--index', 'wiki', '--json', ...args]);
  const refused = await run('--eval', questions);
  assert.equal(refused.code, 3, refused.stderr);
  const report = JSON.parse(refused.stdout) as RolloutReport;
  assert.deepEqual([report.state, statesOf(report)], ['taken back', ['taken back', 'untouched']]);
  assert.match(report.servers[0]!.problem!, /recall@10 is 0\.\d+, and 0\.\d+ before/);
  assert.deepEqual(await answering(replicas), [old, old]);
  const changes = await run('--eval', questions, '--max-recall-drop', '1', '--max-changed', '0');
  assert.match((JSON.parse(changes.stdout) as RolloutReport).servers[0]!.problem!, /share of answers that change/);
  const accepted = await run('--eval', questions, '--max-recall-drop', '0.1', '--max-changed', '0.5');
  assert.equal(accepted.code, 0, accepted.stderr);
  const { figures } = (JSON.parse(accepted.stdout) as RolloutReport).servers[0]!;
  assert.ok(figures!['recall@10']! < figures!['recall@10 before']!);
  assert.deepEqual(await answering(replicas), [next, next]);
});

test('nothing is changed if a server is down, does not let in, or has another index', async (t) => {
  const keys = AccessKeys.parse('admin:admin-key-0123456789\nread:read-key-0123456789', 'test');
  const replicas = await startReplicas(t, 2, keys);
  const admin = { apiKey: 'admin-key-0123456789' };
  await assert.rejects(roll(replicas), trawlError('ROLLOUT_FAILED', /status 401.*--key-file.*No server was changed/s));
  await assert.rejects(roll(replicas, { apiKey: 'read-key-0123456789' }), trawlError('ROLLOUT_FAILED', /status 403/));
  replicas[0]!.point('new');
  await assert.rejects(roll(replicas, admin), trawlError('ROLLOUT_FAILED', /do not have the same index.*trawl sync/s));
  replicas[1]!.point('new');
  await assert.rejects(
    roll([...replicas, { url: 'http://127.0.0.1:9' }], admin),
    trawlError('ROLLOUT_FAILED', /127\.0\.0\.1:9 is not ready/),
  );
  await assert.rejects(
    roll(replicas, { ...admin, to: join(replicas[0]!.folder, 'none') }),
    trawlError('ROLLOUT_FAILED', /finds no index/),
  );
  await assert.rejects(roll(replicas, { ...admin, expected: old }), trawlError('ROLLOUT_FAILED', /not .*No server/));
  const servers = replicas.map(({ url }) => new RolloutServer(url, 'other', admin.apiKey));
  await assert.rejects(roll(replicas, { servers }), trawlError('ROLLOUT_FAILED', /status 404/));
  assert.equal((await roll(replicas, { ...admin, dryRun: true })).servers[0]!.before, old);
});

test('an index that was updated in its folder has no way back, which must be accepted', async (t) => {
  const [replica] = (await startReplicas(t, 1)) as [Replica];
  rmSync(join(replica.folder, 'new'), { recursive: true });
  await removePassages(join(replica.folder, 'old'), ['s-0005'], {});
  await assert.rejects(roll([replica]), trawlError('ROLLOUT_FAILED', /could not go back.*--one-way/s));
  assert.equal((await roll([replica], { oneWay: true })).state, 'done');
});

test('an index that got inverted indexes, without another generation, is opened again', async (t) => {
  const [replica] = (await startReplicas(t, 1)) as [Replica];
  rmSync(join(replica.folder, 'new'), { recursive: true });
  cpSync(index, join(replica.folder, 'new'), { recursive: true });
  assert.equal((await runTrawl(['optimize', join(replica.folder, 'new'), '--bm25', '--quiet'])).code, 0);
  replica.point('new');
  const report = await roll([replica]);
  assert.deepEqual([report.state, report.generation], ['done', old]);
  assert.deepEqual((await new TrawlClient(replica.url).indexes())[0]!.modes, ['dense', 'bm25', 'hybrid']);
});

/** A probe that accepts all, and does something when a server is asked. */
function probeThat(act: (server: RolloutServer) => Promise<unknown>): RolloutOptions<undefined>['probe'] {
  return {
    async ask(server) {
      await act(server);
      return undefined;
    },
    refusals: () => [],
    figures: () => ({}),
  };
}

test('a server that dies before any swap is named, and nothing is changed', async (t) => {
  const replicas = await startReplicas(t, 2);
  for (const { point } of replicas) point('new');
  const [first, second] = replicas as [Replica, Replica];
  await assert.rejects(
    roll(replicas, { probe: probeThat(() => second.stop()) }),
    trawlError('ROLLOUT_FAILED', new RegExp(`${second.url} is not ready.*No server was changed`, 's')),
  );
  assert.deepEqual(await answering([first]), [old]);
});

test('a server that dies while another is swapped is the one that is blamed', async (t) => {
  const replicas = await startReplicas(t, 3);
  for (const { point } of replicas) point('new');
  let asked = 0;
  const report = await roll(replicas, {
    probe: probeThat(async () => (++asked === 2 ? replicas[2]!.stop() : undefined)),
  });
  assert.equal(report.state, 'taken back');
  assert.deepEqual(
    report.servers.map(({ problem }) => problem !== null),
    [false, false, true],
  );
  assert.deepEqual(await answering(replicas.slice(0, 2)), [old, old]);
});

test('after a way back, the next one names its generation', async (t) => {
  const [replica] = (await startReplicas(t, 1)) as [Replica];
  replica.point('new');
  await roll([replica]);
  await roll([replica], { back: { generation: undefined } });
  await assert.rejects(
    roll([replica], { back: { generation: undefined } }),
    trawlError('ROLLOUT_FAILED', /went back.*--generation/s),
  );
  assert.deepEqual(await answering([replica]), [old]);
  assert.equal((await roll([replica], { back: { generation: next } })).state, 'done');
});

test('an index that was moved away from its folder is named, also by a dry run', async (t) => {
  const [{ url, folder }] = (await startReplicas(t, 1)) as [Replica];
  const plain = join(folder, 'old');
  mkdirSync(`${plain}.copies`);
  renameSync(plain, join(`${plain}.copies`, 'original'));
  cpSync(changed, join(`${plain}.copies`, 'next'), { recursive: true });
  symlinkSync('old.copies/next', plain);
  for (const dryRun of [true, false]) {
    await assert.rejects(
      roll([{ url }], { dryRun }),
      trawlError('ROLLOUT_FAILED', /no longer is.*old\.copies\/original.*--one-way.*No server was changed/s),
    );
  }
  assert.equal((await roll([{ url }], { oneWay: true })).state, 'done');
  assert.equal((await roll([{ url }], { to: join(`${plain}.copies`, 'original') })).generation, old);
});

test('an index that the limits refused is refused again when the command is repeated', async (t) => {
  const replicas = await startReplicas(t, 2);
  for (const { point } of replicas) point('new');
  const questions = join(SAMPLE, 'questions.jsonl');
  const run = (urls: readonly string[], ...args: string[]) =>
    runTrawl(['admin', 'rollout', ...urls, '--index', 'wiki', '--eval', questions, ...args]);
  const urls = replicas.map(({ url }) => url);
  const stopped = await run(urls, '--stay');
  assert.equal(stopped.code, 3, stopped.stderr);
  assert.match(stopped.stdout, new RegExp(`--back --generation ${old}`));
  assert.deepEqual(await answering(replicas), [next, old]);
  const again = await run(urls, '--stay');
  assert.equal(again.code, 1, again.stderr);
  assert.match(again.stderr, /has the new index already: recall@10 is.*No server was changed/s);
  assert.deepEqual(await answering(replicas), [next, old]);
  const alone = await run(urls.slice(0, 1), '--max-changed', '0.5');
  assert.equal(alone.code, 1, alone.stderr);
  assert.match(alone.stderr, /--max-changed cannot be measured/);
});

test('questions without judgements limit no recall, and refuse answers that became empty', async (t) => {
  const questions = join(await tempFolder(t), 'questions.jsonl');
  writeFileSync(questions, '{"id": "q1", "question": "Where is the Eiffel Tower?"}\n');
  const refused = await runTrawl([
    ...['admin', 'rollout', 'http://127.0.0.1:9', '--index', 'wiki', '--eval', questions, '--max-recall-drop', '0.1'],
  ]);
  assert.equal(refused.code, 2, refused.stderr);
  assert.match(refused.stderr, /no --min-recall and --max-recall-drop/);
  const probe = await rolloutProbe({
    questions,
    qrels: undefined,
    form: 'question',
    recallK: 10,
    changedK: 3,
    gates: { minRecall: undefined, maxRecallDrop: 0, maxChanged: undefined, maxReplaced: undefined },
    isRecallDropGiven: false,
    signal: new AbortController().signal,
  });
  const answers = (passages: string[]) => ({
    generation: old,
    lists: new Map([['q1', { passages, scores: passages.map(() => 1) }]]),
    means: { 'recall@10': 0 },
  });
  assert.deepEqual(probe.refusals(answers(['a']), answers(['b'])), []);
  assert.match(probe.refusals(answers(['a']), answers([])).join(' '), /1 questions get no passage.*q1/);
});
