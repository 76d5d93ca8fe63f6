import assert from 'node:assert/strict';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { discardIteration } from '../../iteration/claim-iteration.ts';
import { goBack } from '../../iteration/go-back.ts';
import { IterationsFolder } from '../../iteration/iterations-folder.ts';
import { pruneIterations } from '../../iteration/prune.ts';
import { type Measures, readJournal, writeHistory } from '../../iteration/records.ts';
import { type IterationOptions, type IterationSummary, runIteration } from '../../iteration/run-iteration.ts';
import { ServedIndex, type ServerOptions } from '../../iteration/served-index.ts';
import { withChecksum } from '../../src/manifest/manifest-checksum.ts';
import { readIndexManifest } from '../../src/manifest/read-manifest.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { trawlError } from '../helpers/trawl-error.ts';

const RECALL: Readonly<Record<string, number>> = { '0': 0.5 };
const generation = (number: number): string => String(number).padStart(32, '0');

/** A loop whose steps write folders and return fixed measures. */
class FakeLoop {
  readonly folder: IterationsFolder;
  readonly corpus: string;
  readonly checkpoints: string;
  /** The steps that were done. */
  readonly steps: string[] = [];
  /** Called within the step of this name. */
  during: Record<string, () => Promise<void> | void> = {};
  recall: Record<number, number> = {};

  private constructor(root: string, folder: IterationsFolder) {
    this.folder = folder;
    this.corpus = join(root, 'corpus.jsonl');
    this.checkpoints = join(root, 'checkpoints');
    writeFileSync(this.corpus, '{"id": 1, "contents": "x"}\n');
  }

  static async make(t: TestContext): Promise<FakeLoop> {
    const temp = await tempFolder(t);
    const root = join(temp, 'loop');
    const start = join(temp, 'start');
    makeIndex(start);
    mkdirSync(join(root, 'iterations'), { recursive: true });
    const first = { number: 0, index: start, generation: generation(0), model: 'm', inputs: null, base: null };
    await writeHistory(root, {
      format: 'trawl-iterations',
      version: 1,
      next: 1,
      iterations: [{ ...first, measures: null, publishedAt: null, kept: true }],
    });
    const folder = IterationsFolder.open(root);
    await folder.pointTo({ index: start });
    return new FakeLoop(temp, folder);
  }

  checkpoint(name: string): string {
    const path = join(this.checkpoints, name);
    mkdirSync(path, { recursive: true });
    writeFileSync(join(path, 'config.json'), JSON.stringify({ name }));
    return path;
  }

  run(name: string, options: Partial<IterationOptions> & { settings?: Record<string, unknown> } = {}) {
    const { settings = {}, ...others } = options;
    const step = async (what: string): Promise<void> => {
      this.steps.push(what);
      await this.during[what]?.();
    };
    return runIteration({
      folder: this.folder,
      inputs: { checkpoint: join(this.checkpoints, name), corpus: [this.corpus], corpusFormat: undefined, settings },
      work: {
        model: async ({ model }) => {
          await step('model');
          mkdirSync(model, { recursive: true });
          return { name, precision: 'float32', overrides: {}, changes: [] };
        },
        index: async ({ index }, { number }) => {
          await step('index');
          makeIndex(index);
          return { generation: generation(number), sameCorpus: true };
        },
        measure: async (_, { number, base }) => {
          await step(`measure ${number} against ${base}`);
          return this.#measures(base, number);
        },
        isMeasured: () => true,
      },
      gates: { minRecall: undefined, maxRecallDrop: 0, maxChanged: undefined, maxReplaced: undefined },
      servers: [],
      keep: 3,
      restart: false,
      onStep: () => undefined,
      signal: new AbortController().signal,
      ...others,
    });
  }

  async publish(name: string, options: Partial<IterationOptions> = {}): Promise<IterationSummary> {
    this.checkpoint(name);
    const summary = await this.run(name, options);
    assert.equal(summary.state, 'published');
    return summary;
  }

  #measures(base: number, number: number): Measures {
    const recall = (of: number): number => this.recall[of] ?? RECALL[of] ?? 0.5;
    return {
      against: this.folder.iteration(base).generation,
      settings: {},
      judged: 10,
      recallK: 10,
      before: { 'recall@10': recall(base) },
      now: { 'recall@10': recall(number) },
      answers: { of: 'questions', k: 3, queries: 10, changed: 6, replaced: 0.3, rbo: 0.8 },
    };
  }

  get current(): string {
    return readlinkSync(this.folder.link);
  }

  get folders(): string[] {
    return readdirSync(join(this.folder.root, 'iterations')).sort();
  }
}

function makeIndex(folder: string): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'manifest.json'), '{}');
}

/** What a change in place leaves: an index with another generation. */
function changeIndex(folder: string, changed: string): void {
  const corpus = { files: [], skippedLines: 0, duplicateIds: 0, truncatedPassages: 0, passageTemplate: '{contents}' };
  const made = { analyser: 'standard', unicode: '16', k1: 0.9, b: 0.4, fields: ['contents'] };
  const bm25 = { made, deleted: null };
  const content = { rows: 0, dimension: 0, metric: null, model: null, corpus, shards: [], tombstones: null, bm25 };
  const manifest = { format: 'trawl-index', version: 2, generation: changed, ...content, writer: 'test' };
  writeFileSync(join(folder, 'manifest.json'), JSON.stringify(withChecksum(manifest)));
  assert.equal(readIndexManifest(folder).generation, changed);
}

/** A run that was killed behind the change of the link, before a server was reloaded. */
async function killedBehindLink(loop: FakeLoop, name: string): Promise<void> {
  loop.checkpoint(name);
  const { number } = await loop.run(name, { until: 'measures' });
  const { history } = loop.folder;
  const entry = {
    ...history.iterations.at(-1)!,
    number,
    index: loop.folder.relativeIndexOf(number),
    generation: generation(number),
    publishedAt: null,
  };
  await writeHistory(loop.folder.root, { ...history, iterations: [...history.iterations, entry] });
  await loop.folder.pointTo(entry);
}

interface FakeServer {
  readonly server: ServedIndex;
  readonly url: string;
  generation: string;
  /** What a reload does. Default: the server follows the link. */
  onReload: () => { status: number; body: object };
  /** Status of a reload that cannot be meant: only the key is checked. */
  checkStatus: number;
  /** What `/readyz` says of the index. */
  stage: string;
  reloads: number;
  bodies: string[];
}

/** A server with one index that answers from the link of a loop. */
async function fakeServer(t: TestContext, loop: FakeLoop, options: ServerOptions = {}): Promise<FakeServer> {
  const follow = () => {
    fake.generation = loop.folder.current().generation;
    return { status: 200, body: {} };
  };
  const http = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk) => {
      text += String(chunk);
    });
    request.on('end', () => {
      const isCheck = text.includes('\\u0000');
      const isReload = request.method === 'POST' && !isCheck;
      if (isReload) {
        fake.reloads++;
        fake.bodies.push(text);
      }
      const { status, body } = isReload
        ? fake.onReload()
        : {
            status: isCheck ? fake.checkStatus : 200,
            body: { indexes: [{ name: 'current', generation: fake.generation, stage: fake.stage }] },
          };
      if (status === 0) response.destroy();
      else response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    });
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    http.closeAllConnections();
    http.close();
  });
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  const fake: FakeServer = {
    server: new ServedIndex(url, options),
    url,
    generation: loop.folder.current().generation,
    onReload: follow,
    checkStatus: 422,
    stage: 'ready',
    reloads: 0,
    bodies: [],
  };
  return fake;
}

test('an iteration resumes behind its finished steps, and with other inputs it is refused with what differs', async (t) => {
  const loop = await FakeLoop.make(t);
  loop.checkpoint('one');
  loop.during.index = () => Promise.reject(new Error('killed'));
  await assert.rejects(loop.run('one'), /killed/);
  loop.during = {};
  loop.checkpoint('two');
  const differs = (expected: RegExp) =>
    trawlError(
      'BUILD_DIFFERS',
      new RegExp(`Iteration 1 of .* is unfinished and has other inputs: .*${expected.source}`),
    );
  await assert.rejects(loop.run('two'), differs(/checkpoint: \S+one, now \S+two/));
  await assert.rejects(loop.run('one', { settings: { dimension: 8 } }), differs(/dimension: not given, now 8/));
  writeFileSync(loop.corpus, '{"id": 1, "contents": "y"}\n');
  await assert.rejects(loop.run('one'), differs(/corpus\.jsonl changed/));
  writeFileSync(loop.corpus, '{"id": 1, "contents": "x"}\n');
  writeFileSync(join(loop.checkpoints, 'one', 'model.safetensors'), 'weights');
  await assert.rejects(loop.run('one'), differs(/checkpoint \S+one: model\.safetensors changed/));
  // The model is made, so the trainer may remove the checkpoint.
  rmSync(join(loop.checkpoints, 'one'), { recursive: true });
  assert.equal((await loop.run('one')).state, 'published');
  assert.deepEqual(loop.steps, ['model', 'index', 'index', 'measure 1 against 0']);
});

test('the same inputs again have nothing to do, and after going back they are refused unless they are made anew', async (t) => {
  const loop = await FakeLoop.make(t);
  await loop.publish('one');
  assert.equal((await loop.run('one')).state, 'current');
  assert.deepEqual(await goBack(loop.folder, undefined, []).then(({ from, to }) => [from?.number, to.number]), [1, 0]);
  await assert.rejects(
    loop.run('one'),
    trawlError('USAGE', /Iteration 1 was made from the same inputs, .*--back --to 1/),
  );
  assert.equal((await loop.run('one', { restart: true })).number, 2);
});

test('an iteration that --restart made anew from the inputs of a kept one has nothing to do when it is served', async (t) => {
  const loop = await FakeLoop.make(t);
  await loop.publish('one');
  await goBack(loop.folder, undefined, []);
  assert.equal((await loop.run('one', { restart: true })).number, 2);
  const again = await loop.run('one');
  assert.deepEqual([again.state, again.number], ['current', 2]);
  assert.equal((await loop.run('one', { restart: true })).state, 'current');
  // Of two that are not served, the newer one is named.
  await goBack(loop.folder, 0, []);
  await assert.rejects(loop.run('one'), trawlError('USAGE', /Iteration 2 was made from the same inputs/));
});

test('a checkpoint and a corpus that were moved are the same, for an unfinished iteration and for the one that is served', async (t) => {
  const loop = await FakeLoop.make(t);
  loop.checkpoint('one');
  await loop.run('one', { until: 'model' });
  renameSync(join(loop.checkpoints, 'one'), join(loop.checkpoints, 'moved'));
  const elsewhere = join(loop.checkpoints, 'corpus.jsonl');
  renameSync(loop.corpus, elsewhere);
  const inputs = (name: string, corpus: string) => ({
    inputs: { checkpoint: join(loop.checkpoints, name), corpus: [corpus], corpusFormat: undefined, settings: {} },
  });
  await loop.run('moved', { ...inputs('moved', elsewhere), until: 'index' });
  assert.deepEqual(loop.steps, ['model', 'index']);
  // Known by its new path once it is gone.
  rmSync(join(loop.checkpoints, 'moved'), { recursive: true });
  assert.equal((await loop.run('moved', inputs('moved', elsewhere))).state, 'published');
  assert.equal((await loop.run('moved', inputs('moved', elsewhere))).state, 'current');
  renameSync(elsewhere, loop.corpus);
  assert.equal((await loop.run('moved')).state, 'current');
  // Its name decides the format, so a renamed file is another one.
  const renamed = join(loop.checkpoints, 'corpus.tsv');
  renameSync(loop.corpus, renamed);
  loop.checkpoint('two');
  await loop.run('two', { ...inputs('two', renamed), until: 'model' });
  renameSync(renamed, loop.corpus);
  await assert.rejects(loop.run('two'), trawlError('BUILD_DIFFERS', /corpus: \S+corpus\.tsv, now \S+corpus\.jsonl/));
});

test('a checkpoint that is gone before its model is made is named with the way out, and nothing is discarded', async (t) => {
  const loop = await FakeLoop.make(t);
  loop.checkpoint('one');
  loop.during.model = () => Promise.reject(new Error('killed'));
  await assert.rejects(loop.run('one'), /killed/);
  loop.during = {};
  rmSync(join(loop.checkpoints, 'one'), { recursive: true });
  await assert.rejects(
    loop.run('one'),
    trawlError(
      'MODEL_NOT_FOUND',
      /There is no checkpoint \S+one\. .*Iteration 1 of \S+ is unfinished\. Its model was not made yet, so \S+one is needed: restore it, or discard .*--discard --root/,
    ),
  );
  // Also one whose model was made for another iteration.
  const other = await FakeLoop.make(t);
  await other.publish('one');
  rmSync(join(other.checkpoints, 'one'), { recursive: true });
  await assert.rejects(other.run('one', { settings: { dimension: 8 } }), trawlError('MODEL_NOT_FOUND', /There is no/));
  assert.equal(readJournal(other.folder.root), undefined);
  // A mistyped path of --restart does not cost what was done.
  loop.checkpoint('two');
  await assert.rejects(
    loop.run('three', { restart: true }),
    trawlError('MODEL_NOT_FOUND', /There is no checkpoint \S+three/),
  );
  assert.equal(readJournal(loop.folder.root)?.number, 1);
  assert.equal((await loop.run('two', { restart: true, until: 'model' })).number, 2);
  await assert.rejects(
    loop.run('four'),
    trawlError('MODEL_NOT_FOUND', /Iteration 2 .* Its model was made of \S+two: give that path, which may be gone/),
  );
});

test('what a trainer leaves of an imported checkpoint resumes; another file in it does not', async (t) => {
  const loop = await FakeLoop.make(t);
  const checkpoint = loop.checkpoint('one');
  writeFileSync(join(checkpoint, 'model.safetensors'), 'weights');
  await loop.run('one', { until: 'model' });
  rmSync(join(checkpoint, 'model.safetensors'));
  assert.equal((await loop.run('one', { until: 'index' })).state, 'stopped');
  writeFileSync(join(checkpoint, 'model.safetensors'), 'other weights');
  await assert.rejects(loop.run('one'), trawlError('BUILD_DIFFERS', /model\.safetensors changed/));
  rmSync(join(checkpoint, 'model.safetensors'));
  assert.equal((await loop.run('one')).state, 'published');
  assert.equal((await loop.run('one')).state, 'current');
});

test('a lost link is never led to the first index by itself once another was published', async (t) => {
  const temp = await tempFolder(t);
  const [start, root] = [join(temp, 'start'), join(temp, 'loop')];
  makeIndex(start);
  changeIndex(start, 'c'.repeat(32));
  const begun = await IterationsFolder.begin(root, start);
  // Killed before the link was made.
  rmSync(begun.link);
  assert.equal((await IterationsFolder.begin(root, start)).current().number, 0);
  const { history } = begun;
  const second = { ...history.iterations[0]!, number: 1, index: 'iterations/0001/index', base: 0 };
  makeIndex(join(root, 'iterations', '0001', 'index'));
  await writeHistory(root, { ...history, next: 2, iterations: [...history.iterations, second] });
  rmSync(begun.link);
  const lost = await IterationsFolder.begin(root, start);
  assert.throws(
    () => lost.current(),
    trawlError('CONFIG_INVALID', /current does not exist\. Choose what is served: .*--back --to NUMBER/),
  );
  assert.equal((await goBack(lost, 1, [])).to.number, 1);
  rmSync(begun.link);
  mkdirSync(begun.link);
  assert.throws(() => lost.current(), trawlError('CONFIG_INVALID', /current is no link: .*Move it away/));
  await assert.rejects(goBack(lost, 1, []), trawlError('CONFIG_INVALID', /is no link/));
});

test('the first index may be moved: --from names its new place, if it is the same index', async (t) => {
  const temp = await tempFolder(t);
  const [start, moved, root] = [join(temp, 'start'), join(temp, 'moved'), join(temp, 'loop')];
  makeIndex(start);
  changeIndex(start, 'c'.repeat(32));
  const folder = await IterationsFolder.begin(root, start);
  cpSync(start, moved, { recursive: true });
  await assert.rejects(
    IterationsFolder.begin(root, moved),
    trawlError('USAGE', /began with \S+start, not with \S+moved\. Omit --from/),
  );
  rmSync(start, { recursive: true });
  assert.throws(
    () => folder.iteration(0),
    trawlError('INDEX_NOT_FOUND', /iteration 0 is not in \S+start any more\. .*--from INDEX/),
  );
  const other = join(temp, 'other');
  makeIndex(other);
  changeIndex(other, 'd'.repeat(32));
  await assert.rejects(IterationsFolder.begin(root, other), trawlError('USAGE', /which has another generation/));
  await IterationsFolder.begin(root, moved);
  assert.deepEqual([folder.iteration(0).index, readlinkSync(folder.link)], [moved, moved]);
});

test('an iteration is discarded with its files, unless it is served already', async (t) => {
  const loop = await FakeLoop.make(t);
  assert.equal(await discardIteration(loop.folder), undefined);
  loop.checkpoint('one');
  assert.equal((await loop.run('one', { until: 'measures' })).state, 'stopped');
  assert.deepEqual(loop.folders, ['0001']);
  assert.equal(await discardIteration(loop.folder), 1);
  assert.deepEqual(loop.folders, []);
  loop.checkpoint('two');
  await loop.run('two', { until: 'model' });
  assert.equal((await loop.run('one', { restart: true })).number, 3);
  assert.deepEqual(loop.folders, ['0003']);
  // Killed between the link and the last record.
  await killedBehindLink(loop, 'three');
  await assert.rejects(discardIteration(loop.folder), trawlError('USAGE', /Iteration 4 is served already.*--back/));
  assert.equal((await loop.run('three')).state, 'published');
  assert.equal(readJournal(loop.folder.root), undefined);
});

test('going back is possible while an index is built, which is then measured against what is served', async (t) => {
  const loop = await FakeLoop.make(t);
  await loop.publish('one');
  loop.checkpoint('two');
  loop.steps.length = 0;
  loop.during.index = async () => void (await goBack(loop.folder, undefined, []));
  const summary = await loop.run('two');
  assert.deepEqual([summary.state, summary.base], ['published', 0]);
  assert.deepEqual(loop.steps, ['model', 'index', 'measure 2 against 0']);
  // Also between measuring and publishing.
  loop.checkpoint('three');
  loop.steps.length = 0;
  loop.during = {
    'measure 3 against 2': async () => void (await goBack(loop.folder, 1, [])),
  };
  assert.equal((await loop.run('three')).base, 1);
  assert.deepEqual(loop.steps, ['model', 'index', 'measure 3 against 2', 'measure 3 against 1']);
});

test('a second run beside a running one is refused', async (t) => {
  const loop = await FakeLoop.make(t);
  loop.checkpoint('one');
  let second: unknown;
  loop.during.model = async () => {
    second = await loop.run('one').catch((error: unknown) => error);
  };
  await loop.run('one');
  assert.ok(trawlError('BUILD_LOCKED', /Another trawl iterate works in/)(second));
});

test('a stopped run resumes, whatever it was doing', async (t) => {
  const loop = await FakeLoop.make(t);
  loop.checkpoint('one');
  const stop = new AbortController();
  loop.during.model = () => stop.abort();
  const error = await loop.run('one', { signal: stop.signal }).catch((reason: unknown) => reason);
  assert.ok(trawlError('CANCELLED')(error));
  assert.equal((error as { details: { resumable: boolean } }).details.resumable, true);
  loop.during = {};
  assert.equal((await loop.run('one')).state, 'published');
});

test('every server follows the link, and only then old iterations are removed', async (t) => {
  const loop = await FakeLoop.make(t);
  const fakes = [await fakeServer(t, loop), await fakeServer(t, loop)];
  const servers = fakes.map(({ server }) => server);
  await loop.publish('one', { servers, keep: 2 });
  await loop.publish('two', { servers, keep: 2 });
  assert.deepEqual(loop.folders, ['0001', '0002']);
  const { removed } = await loop.publish('three', { servers, keep: 2 });
  assert.deepEqual([removed, loop.folders], [[1], ['0002', '0003']]);
  for (const fake of fakes) assert.equal(fake.generation, generation(3));
  // A run that was killed after one server had changed only changes the other.
  loop.checkpoint('four');
  await loop.run('four', { until: 'measures' });
  fakes[0]!.generation = generation(4);
  const reloads = fakes.map((fake) => fake.reloads);
  assert.equal((await loop.run('four', { servers })).state, 'published');
  assert.deepEqual(
    fakes.map((fake) => fake.reloads),
    [reloads[0], reloads[1]! + 1],
  );
  // What a run left that was killed before it removed anything.
  mkdirSync(join(loop.folder.root, 'iterations', '0001'));
  assert.equal((await loop.run('four', { servers })).state, 'current');
  assert.ok(!loop.folders.includes('0001'));
});

test('if a server does not follow, all servers and the link stay as they were, and the run resumes there', async (t) => {
  const loop = await FakeLoop.make(t);
  const [good, bad] = [await fakeServer(t, loop), await fakeServer(t, loop)];
  const servers = [good.server, bad.server];
  loop.checkpoint('one');
  const start = loop.current;
  const fails = async (expected: RegExp): Promise<void> => {
    await assert.rejects(loop.run('one', { servers }), trawlError('RELOAD_FAILED', expected));
    assert.equal(loop.current, start);
    assert.deepEqual([good.generation, bad.generation], [generation(0), generation(0)]);
  };
  const follow = bad.onReload;
  bad.onReload = () => ({ status: 409, body: { error: { message: 'Index current could not be reloaded' } } });
  await fails(/refused the reload with status 409: Index current could not be reloaded/);
  // It opens the folder that it was started with, which is not the link.
  bad.onReload = () => ({ status: 200, body: {} });
  await fails(/answers with generation 0+ after the reload, not with 0+1: it does not open the link.*--server-folder/);
  bad.onReload = () => ({ status: 0, body: {} });
  await fails(/was lost during the reload .* answers with generation 0+\./);
  assert.equal(loop.steps.length, 3);
  // The reply was lost, but not the reload.
  bad.onReload = () => ({ ...follow(), status: 0 });
  assert.equal((await loop.run('one', { servers })).state, 'published');
  assert.equal(bad.generation, generation(1));
  // Going back has the same guarantee.
  bad.onReload = () => ({ status: 500, body: {} });
  const wayOut = /status 500.* Iteration 1 is served as before\. .*--back --to 0 --root \S+, without --server/;
  await assert.rejects(goBack(loop.folder, undefined, servers), trawlError('RELOAD_FAILED', wayOut));
  assert.deepEqual([loop.folder.current().number, good.generation], [1, generation(1)]);
});

test('a server that answers with something else than the link is refused before any work', async (t) => {
  const loop = await FakeLoop.make(t);
  const fake = await fakeServer(t, loop, { folder: '/elsewhere/current' });
  loop.checkpoint('one');
  fake.generation = 'f'.repeat(32);
  const other = trawlError('CONFIG_INVALID', /answers with generation f+, but \S+current points to iteration 0/);
  await assert.rejects(loop.run('one', { servers: [fake.server] }), other);
  const wrongName = new ServedIndex(`${fake.url}/indexes/none`);
  await assert.rejects(
    loop.run('one', { servers: [wrongName] }),
    trawlError('CONFIG_INVALID', /does not serve none\. It serves current\./),
  );
  const nobody = new ServedIndex('http://127.0.0.1:9');
  await assert.rejects(
    loop.run('one', { servers: [nobody] }),
    trawlError('CONFIG_INVALID', /cannot be asked for its indexes/),
  );
  assert.deepEqual(loop.steps, []);
  fake.generation = generation(0);
  assert.equal((await loop.run('one', { servers: [fake.server] })).state, 'published');
  assert.deepEqual(fake.bodies, ['{"folder":"/elsewhere/current"}']);
});

test('the served iteration, the one before and the newest are kept', async (t) => {
  const loop = await FakeLoop.make(t);
  for (const name of ['one', 'two', 'three', 'four']) await loop.publish(name);
  // Without a server nobody knows what is in use. What a killed discard left belongs to nobody.
  await loop.run('one', { restart: true, until: 'model' });
  await discardIteration(loop.folder);
  symlinkSync(loop.corpus, join(loop.folder.root, 'iterations', '0005'));
  mkdirSync(join(loop.folder.root, 'iterations', '0009'));
  assert.deepEqual(loop.folders, ['0001', '0002', '0003', '0004', '0005', '0009']);
  await goBack(loop.folder, 2, []);
  assert.deepEqual(await pruneIterations(loop.folder, 3), [3]);
  assert.deepEqual(loop.folders, ['0001', '0002', '0004', '0009'], 'a number that was never given is not ours');
  rmSync(join(loop.folder.root, 'iterations', '0009'), { recursive: true });
  assert.ok(existsSync(loop.corpus), 'a link is removed, not what it points to');
  await assert.rejects(
    goBack(loop.folder, 3, []),
    trawlError('USAGE', /no index of iteration 3 any more\. It has 0, 1, 2, 4\./),
  );
  // 4 was left for 2.
  assert.deepEqual(await pruneIterations(loop.folder, 2), []);
  loop.checkpoint('unfinished');
  await loop.run('unfinished', { until: 'index' });
  // It is compared with 2, also if another is served meanwhile.
  await goBack(loop.folder, 1, []);
  await goBack(loop.folder, 0, []);
  assert.deepEqual(await pruneIterations(loop.folder, 2), [4]);
  assert.deepEqual(loop.folders, ['0001', '0002', '0006']);
  assert.deepEqual(
    loop.folder.history.iterations.map(({ kept }) => kept),
    [true, true, true, false, false],
  );
});

test('after another iteration is published, the one that was left may be removed', async (t) => {
  const loop = await FakeLoop.make(t);
  for (const name of ['one', 'two', 'three']) await loop.publish(name);
  await goBack(loop.folder, 1, []);
  assert.equal(loop.folder.history.left, 3);
  await loop.publish('four');
  assert.equal(loop.folder.history.left, undefined);
  assert.deepEqual(await pruneIterations(loop.folder, 2), [2, 3]);
});

test('a run that was killed between the link and a server resumes with the server on the index before', async (t) => {
  const loop = await FakeLoop.make(t);
  const fake = await fakeServer(t, loop);
  await killedBehindLink(loop, 'one');
  assert.deepEqual([loop.folder.current().number, fake.generation], [1, generation(0)]);
  assert.equal((await loop.run('one', { servers: [fake.server] })).state, 'published');
  assert.equal(fake.generation, generation(1));
});

test('an index that was changed in place is known by its present generation', async (t) => {
  const loop = await FakeLoop.make(t);
  const fake = await fakeServer(t, loop);
  const changed = 'a'.repeat(32);
  const start = loop.folder.indexOf(loop.folder.current());
  changeIndex(start, changed);
  fake.generation = changed;
  loop.checkpoint('one');
  await loop.run('one', { servers: [fake.server], until: 'measures' });
  // The new index too, before it is published: it is measured again.
  changeIndex(loop.folder.indexOf({ index: 'iterations/0001/index' }), 'b'.repeat(32));
  const summary = await loop.run('one', { servers: [fake.server] });
  assert.deepEqual([summary.state, summary.generation], ['published', 'b'.repeat(32)]);
  assert.equal(summary.measures!.against, changed);
  assert.deepEqual(loop.steps, ['model', 'index', 'measure 1 against 0', 'measure 1 against 0']);
  await goBack(loop.folder, 0, [fake.server]);
  assert.equal(fake.generation, changed);
});

test('an iteration is not measured forever if what is served never stays the same', async (t) => {
  const loop = await FakeLoop.make(t);
  loop.checkpoint('one');
  const start = loop.folder.indexOf(loop.folder.current());
  let changes = 0;
  const gates = {
    minRecall: undefined,
    maxRecallDrop: 0,
    maxChanged: undefined,
    // Read after measuring, before publishing.
    get maxReplaced() {
      changeIndex(start, String(++changes).repeat(32));
      return undefined;
    },
  };
  await assert.rejects(
    loop.run('one', { gates }),
    trawlError('CONFIG_INVALID', /changed 4 times while iteration 1 was compared with it/),
  );
  assert.equal(loop.steps.filter((step) => step.startsWith('measure')).length, 4);
  assert.equal((await loop.run('one')).state, 'published');
});

test('recall 0 in both indexes is refused, unless any recall is accepted', async (t) => {
  const loop = await FakeLoop.make(t);
  loop.checkpoint('one');
  loop.recall = { 0: 0, 1: 0 };
  const { state, refusals } = await loop.run('one');
  assert.equal(state, 'refused');
  assert.deepEqual(
    refusals.map(({ value, accept }) => [value, accept]),
    [[null, '--max-recall-drop 1']],
  );
  assert.match(refusals[0]!.text, /judgements of --eval or --qrels use the ids of the corpus/);
  const gates = { minRecall: undefined, maxRecallDrop: 1, maxChanged: undefined, maxReplaced: undefined };
  assert.equal((await loop.run('one', { gates })).state, 'published');
});

test('going back leaves a bad index also while a server is down, and says which server', async (t) => {
  const loop = await FakeLoop.make(t);
  const good = await fakeServer(t, loop);
  await loop.publish('one', { servers: [good.server] });
  const down = new ServedIndex('http://127.0.0.1:9');
  await assert.rejects(
    goBack(loop.folder, undefined, [down, good.server]),
    trawlError(
      'RELOAD_FAILED',
      /Iteration 0 is served now, but not by all servers: http:\/\/127\.0\.0\.1:9 cannot be asked.*--to 0/,
    ),
  );
  assert.deepEqual([loop.folder.current().number, good.generation], [0, generation(0)]);
});

test('going back to the iteration that is served changes nothing', async (t) => {
  const loop = await FakeLoop.make(t);
  await loop.publish('one');
  const { from, to } = await goBack(loop.folder, 1, []);
  assert.deepEqual([from, to.number, loop.folder.history.left], [null, 1, undefined]);
});

test('folders that Trawl did not make are neither taken for finished steps nor for a loop', async (t) => {
  const loop = await FakeLoop.make(t);
  loop.checkpoint('one');
  const foreign = join(loop.folder.root, 'iterations', '0001');
  mkdirSync(join(foreign, 'model'), { recursive: true });
  await assert.rejects(loop.run('one'), trawlError('CONFIG_INVALID', /0001 exists, but no iteration 1 was begun/));
  assert.equal(readJournal(loop.folder.root), undefined);
  const other = await tempFolder(t);
  const start = join(other, 'start');
  makeIndex(start);
  changeIndex(start, 'c'.repeat(32));
  mkdirSync(join(other, 'loop', 'iterations', '0007'), { recursive: true });
  await assert.rejects(
    IterationsFolder.begin(join(other, 'loop'), start),
    trawlError('CONFIG_INVALID', /iterations is not empty, but .* has no iterations\.json/),
  );
  rmSync(join(other, 'loop', 'iterations', '0007'), { recursive: true });
  assert.equal((await IterationsFolder.begin(join(other, 'loop'), start)).current().generation, 'c'.repeat(32));
});

test('a server that opens an index for too long, or while the run is stopped, does not hold the run', async (t) => {
  const loop = await FakeLoop.make(t);
  const fake = await fakeServer(t, loop, { openingMs: 1 });
  const follow = fake.onReload;
  loop.checkpoint('one');
  fake.onReload = () => {
    fake.stage = 'loading';
    return { status: 0, body: {} };
  };
  await assert.rejects(
    loop.run('one', { servers: [fake.server] }),
    trawlError('RELOAD_FAILED', /still opens the index after 0\.001 seconds\. Run the command again/),
  );
  assert.equal(loop.folder.current().number, 0);
  fake.stage = 'ready';
  const stop = new AbortController();
  fake.onReload = () => {
    fake.stage = 'loading';
    stop.abort();
    return { status: 0, body: {} };
  };
  const patient = new ServedIndex(fake.url);
  await assert.rejects(loop.run('one', { servers: [patient], signal: stop.signal }), trawlError('CANCELLED'));
  // As after a kill, the link leads on, and the same command completes it.
  assert.deepEqual([loop.folder.current().number, fake.generation], [1, generation(0)]);
  fake.onReload = follow;
  assert.equal((await loop.run('one', { servers: [patient] })).state, 'published');
  assert.equal(fake.generation, generation(1));
});

test('a key that may not reload is refused before any work', async (t) => {
  const loop = await FakeLoop.make(t);
  const fake = await fakeServer(t, loop);
  loop.checkpoint('one');
  fake.checkStatus = 403;
  const refused = trawlError(
    'CONFIG_INVALID',
    /would refuse a reload with status 403\. Give --key-file .* scope admin/,
  );
  await assert.rejects(loop.run('one', { servers: [fake.server] }), refused);
  assert.deepEqual([loop.steps, fake.reloads], [[], 0]);
  assert.throws(() => new ServedIndex('http://a:1,http://b:1'), trawlError('USAGE', /Repeat the option/));
});

interface SlowServer {
  readonly server: ServedIndex;
  readonly url: string;
  readonly generation: string;
  readonly reloads: number;
  /** Resolves when it opens nothing any more. */
  idle(): Promise<unknown>;
  die(): void;
}

interface SlowOptions extends ServerOptions {
  /** How many reloads must have been asked for before the first begins. Default: 1. */
  readonly beginsAfter?: number;
  /** How long a reload takes, in milliseconds. */
  readonly openMs?: number;
  /** What becomes of the reply to a reload, by its number from 1: `cut` at once, or a status of a proxy. Default: the reply. */
  readonly reply?: (number: number) => 'cut' | 504 | 'whole';
}

/** A server that opens one index after the other, each for a while, whether or not anybody waits for the reply. */
async function slowServer(t: TestContext, loop: FakeLoop, options: SlowOptions = {}): Promise<SlowServer> {
  const { beginsAfter = 1, openMs = 300, reply = () => 'whole' } = options;
  let { generation: served } = loop.folder.current();
  let [reloads, stage] = [0, 'ready'];
  let loads: Promise<unknown> = Promise.resolve();
  let begin: () => void;
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const load = async (): Promise<void> => {
    await begun;
    stage = 'loading';
    const { generation: found } = loop.folder.current();
    await sleep(openMs);
    [served, stage] = [found, 'ready'];
  };
  const http = createServer(async (request, response) => {
    let text = '';
    for await (const part of request) text += String(part);
    const send = (status: number, body: string) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(body);
    if (request.method !== 'POST')
      return send(200, JSON.stringify({ indexes: [{ name: 'current', generation: served, stage }] }));
    if (text.includes('\\u0000')) return send(422, '{}');
    const how = reply(++reloads);
    loads = loads.then(load);
    if (reloads === beginsAfter) begin();
    if (how === 'cut') return response.destroy();
    if (how === 504) return send(504, '<html>Gateway Timeout</html>');
    await loads;
    return send(200, '{}');
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const die = () => {
    http.closeAllConnections();
    http.close();
  };
  t.after(die);
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  return {
    server: new ServedIndex(url, options),
    url,
    get generation() {
      return served;
    },
    get reloads() {
      return reloads;
    },
    idle: () => loads,
    die,
  };
}

test('a reload whose reply is cut, or given up by a proxy, is waited for, also if it has not begun yet', async (t) => {
  for (const how of ['cut', 504] as const) {
    for (const beginsAfter of [1, 2]) {
      const loop = await FakeLoop.make(t);
      const slow = await slowServer(t, loop, { beginsAfter, reply: (number) => (number === 1 ? how : 'whole') });
      loop.checkpoint('one');
      assert.equal((await loop.run('one', { servers: [slow.server] })).state, 'published');
      assert.deepEqual([slow.generation, loop.folder.current().number], [generation(1), 1]);
    }
  }
});

test('a reload that goes on after the run has given it up does not lead the server away from the link', async (t) => {
  const loop = await FakeLoop.make(t);
  // Three replies are cut before the first of the reloads has begun.
  const slow = await slowServer(t, loop, {
    beginsAfter: 4,
    openMs: 100,
    reply: (number) => (number <= 3 ? 'cut' : 'whole'),
  });
  const other = await slowServer(t, loop, { openMs: 1 });
  loop.checkpoint('one');
  await assert.rejects(loop.run('one', { servers: [other.server, slow.server] }), (error: Error) => {
    assert.ok(trawlError('RELOAD_FAILED', /was lost during the reload .* answers with generation 0+\.$/)(error));
    return true;
  });
  await slow.idle();
  assert.deepEqual([slow.reloads, slow.generation, other.generation], [4, generation(0), generation(0)]);
  assert.equal(loop.folder.current().number, 0);
  assert.equal((await loop.run('one', { servers: [other.server, slow.server] })).state, 'published');
  assert.deepEqual([slow.generation, other.generation], [generation(1), generation(1)]);
});

test('going back waits for the reload of a killed run, and then reloads the server', async (t) => {
  const loop = await FakeLoop.make(t);
  const slow = await slowServer(t, loop, { openMs: 500 });
  await killedBehindLink(loop, 'one');
  const reloading = fetch(`${slow.url}/admin/indexes/current/reload`, { method: 'POST', body: '{}' });
  await sleep(100);
  await goBack(loop.folder, 0, [slow.server]);
  assert.equal((await reloading).status, 200);
  await slow.idle();
  assert.deepEqual([slow.generation, slow.reloads, loop.folder.current().number], [generation(0), 2, 0]);
});

test('a server that dies during the reload is named, with what the link points to', async (t) => {
  const loop = await FakeLoop.make(t);
  const slow = await slowServer(t, loop, {
    silentMs: 100,
    reply: () => {
      slow.die();
      return 'cut';
    },
  });
  loop.checkpoint('one');
  await assert.rejects(
    loop.run('one', { servers: [slow.server] }),
    trawlError(
      'RELOAD_FAILED',
      /was lost during the reload .* has not answered for 0\.1 seconds\. .*current points to iteration 0 again, but what a server answers with is not known: .*Reload or restart it/,
    ),
  );
  assert.equal(loop.folder.current().number, 0);
});
