import assert from 'node:assert/strict';
import { cpSync, readdirSync, readFileSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { readIndexManifest } from '../../src/index/manifest/read-manifest.ts';
import type { IterationSummary } from '../../training/iteration/iteration-work.ts';
import { bertCheckpoint, encoderCheckpoint } from '../training/iteration/checkpoints.ts';
import { cuttingProxy } from '../training/iteration/cutting-proxy.ts';
import { answersOf, assertOwnAnswers, searchLoad, searchServer } from '../training/iteration/search-load.ts';
import { type Ended, fileFolder, jsonOf, runTrawl, SAMPLE, SAMPLE_PASSAGES, serveIndex } from './run-trawl.ts';

const folder = await fileFolder();
const QUESTIONS = join(folder, 'questions.jsonl');
const ADMIN = 'admin-key-of-the-test-00';
const READER = 'reader-key-of-the-test-0';
/** The encoder of the start keeps 8 of 256 values, so that any other finds more. */
const start = join(folder, 'start');
let corpus: string;
let better: string;
let other: string;
before(async () => {
  // Few of both: every iteration embeds them.
  corpus = join(folder, 'corpus.jsonl');
  writeFileSync(corpus, firstLines(SAMPLE_PASSAGES, 60));
  writeFileSync(QUESTIONS, firstLines(join(SAMPLE, 'questions.jsonl'), 30));
  const built = await runTrawl([
    'index',
    corpus,
    '--model',
    'token-average-256',
    '--out',
    start,
    '--dimension',
    '8',
    '--bm25',
    '--quiet',
  ]);
  assert.equal(built.code, 0, built.stderr);
  better = encoderCheckpoint(folder, 'better', '');
  other = encoderCheckpoint(folder, 'other', 'query: ');
});

function firstLines(file: string, count: number): string {
  return readFileSync(file, 'utf8').split('\n').slice(0, count).join('\n');
}

interface Status {
  readonly current: number | null;
  readonly iterations: readonly { readonly number: number; readonly kept: boolean; readonly generation: string }[];
  readonly unfinished: { readonly number: number } | null;
}

class Loop {
  readonly root: string;

  constructor(name: string) {
    this.root = join(folder, name);
  }

  iterate(...args: string[]): Promise<Ended> {
    return runTrawl(['iterate', '--root', this.root, ...args]);
  }

  run(checkpoint: string, ...args: string[]): Promise<Ended> {
    const inputs = ['--corpus', corpus, '--eval', QUESTIONS, '--encoder-threads', '1', '--dimension', '256'];
    return this.iterate(checkpoint, ...inputs, ...args);
  }

  async publish(checkpoint: string, ...args: string[]): Promise<IterationSummary> {
    const summary = jsonOf<IterationSummary>(await this.run(checkpoint, '--json', '--max-recall-drop', '1', ...args));
    assert.equal(summary.state, 'published');
    return summary;
  }

  async status(): Promise<Status> {
    return jsonOf<Status>(await this.iterate('--status', '--json'));
  }

  get current(): string {
    return join(this.root, 'current');
  }
}

test('checkpoints become the served index under load, each reply is of one index, and the one before comes back', async (t) => {
  const loop = new Loop('served');
  const keys = join(folder, 'keys');
  const key = join(folder, 'key');
  writeFileSync(keys, `admin:${ADMIN}\nread:${READER}\n`);
  writeFileSync(key, `${ADMIN}\n`);
  // Begins the loop without publishing anything.
  assert.equal((await loop.run(better, '--from', start, '--until', 'model')).code, 0);
  assert.equal(readlinkSync(loop.current), start);
  const records = join(folder, 'calls.jsonl');
  const serving = ['--keys-file', keys, '--encoder-threads', '1', '--record', records];
  const { url } = await serveIndex(t, loop.current, serving);
  const server = ['--server', url, '--key-file', key];
  const readerKey = join(folder, 'reader-key');
  writeFileSync(readerKey, `${READER}\n`);
  const reader = await loop.run(better, '--server', url, '--key-file', readerKey);
  assert.match(reader.stderr, /would refuse a reload with status 403\. Give --key-file .*\[CONFIG_INVALID\]/);
  const running = searchLoad(url, ADMIN);
  const first = await loop.publish(better, ...server);
  assert.deepEqual([first.number, first.base, first.servers], [1, 0, [url]]);
  assert.ok(first.measures!.now['recall@10']! > first.measures!.before['recall@10']!);
  assert.equal((await searchServer(url, ADMIN)).generation, first.generation);
  // What the load asked, compared with what it finds in the next index.
  const compared = await loop.run(other, '--records', records, '--changed-k', '5', '--max-replaced', '0', '--json');
  assert.equal(compared.code, 3, compared.stderr);
  const { of, k, queries, replaced } = (JSON.parse(compared.stdout) as IterationSummary).measures!.answers;
  assert.deepEqual([of, k], ['records', 5]);
  assert.ok(queries > 0 && replaced! > 0);
  assert.deepEqual(options(compared), ['--max-replaced']);
  // They asked for 5: with 6 nothing is left to compare, and a limit cannot be checked.
  const nothing = await loop.run(other, '--records', records, '--changed-k', '6', '--max-changed', '1');
  assert.match(nothing.stdout, /^refused: .* is not known, because no query could be compared/m);
  const second = await loop.publish(other, ...server, '--keep', '2');
  assert.equal(readlinkSync(loop.current), 'iterations/0002/index');
  // The reply to the reload is cut, and the server goes on.
  const proxy = await cuttingProxy(t, url, { cuts: 1 });
  const proxied = ['--server', proxy.url, '--key-file', key];
  const back = jsonOf<{ from: number; to: number }>(await loop.iterate('--back', '--json', ...proxied));
  assert.equal(proxy.cuts, 1);
  assert.deepEqual([back.from, back.to], [2, 1]);
  assert.equal((await searchServer(url, ADMIN)).generation, first.generation);
  const replies = await running.stop();
  await assertOwnAnswers(replies, [start, first.index, second.index]);
  // After a restart it serves what the link points to.
  assert.equal((await answersOf(loop.current)).generation, first.generation);
});

test('with --triage a model is refused by its estimated recall before anything is built, and the same command goes on if it is accepted', async () => {
  const loop = new Loop('tried');
  const triage = ['--triage', '--triage-depth', '2', '--triage-sample', '20'];
  const ended = await loop.run(better, '--from', start, ...triage, '--triage-min-recall', '0.999');
  assert.equal(ended.code, 3, ended.stderr);
  assert.match(
    ended.stdout,
    /^triage: recall@10 of 30 judged questions: estimated 0\.\d{4} \[0\.\d{4}, \d\.\d{4}\], at most 0\.\d{4}; served index 0\.\d{4}$/m,
  );
  assert.match(
    ended.stdout,
    /^ {2}\d+ of 60 passages embedded; all would take .*; error of the estimate for the present encoder [+-]0\.\d{4}$/m,
  );
  const [, accepted] =
    /^refused: recall@10 of the new model is .*; at least 0\.9990 is required\. The same estimate of the present encoder is wrong by [+-]0\.\d{4}\. --triage-min-recall (0\.\d+) accepts it\.$/m.exec(
      ended.stdout,
    ) ?? [];
  assert.match(ended.stdout, /^No index was built\. /m);
  assert.deepEqual(readdirSync(join(loop.root, 'iterations', '0001')), ['model']);
  assert.match((await loop.iterate('--status')).stdout, /^unfinished: iteration 1, its model is tried/m);
  const done = await loop.publish(better, ...triage, '--triage-min-recall', accepted!);
  assert.deepEqual([done.trial!.k, done.trial!.whole], [10, 60]);
  assert.ok(done.trial!.bound >= done.measures!.now['recall@10']! - 1e-9, 'recall in the pool is an upper bound');
  assert.ok(Math.abs(done.trial!.present - done.measures!.before['recall@10']!) < 1e-9);
  const useless = await loop.run(better, '--triage-sample', '20');
  assert.match(useless.stderr, /--triage-sample has no effect without --triage\./);
  assert.match((await loop.run(better, '--until', 'triage')).stderr, /--until triage has no effect without --triage\./);
});

test('an index below a limit is refused with value, limit and way out, kept, and published when it is accepted', async () => {
  const loop = new Loop('refused');
  const ended = await loop.run(better, '--from', start, '--min-recall', '0.999', '--max-changed', '0.01');
  assert.equal(ended.code, 3, ended.stderr);
  assert.match(ended.stdout, /^iteration 1: refused, not published$/m);
  const [, value, accepted] =
    /^refused: recall@10 is (0\.\d{4}); at least 0\.9990 is required\. --min-recall (0\.\d+) accepts it\.$/m.exec(
      ended.stdout,
    ) ?? [];
  assert.ok(Number(accepted) <= Number(value), ended.stdout);
  assert.match(
    ended.stdout,
    /^refused: The share of answers that change .* is \S+; at most 0\.01 is allowed\. --max-changed \S+ accepts it\.$/m,
  );
  const index = join(loop.root, 'iterations', '0001', 'index');
  assert.ok(ended.stdout.includes(`The index stays in ${index}.`));
  const { rows } = readIndexManifest(index);
  assert.equal(rows, 60);
  assert.deepEqual(await loop.status().then(({ current, unfinished }) => [current, unfinished?.number]), [0, 1]);
  // Nothing is built or measured again.
  const published = await loop.run(better, '--min-recall', accepted!);
  assert.equal(published.code, 0, published.stderr);
  assert.equal(published.stderr, 'iteration 1: publishing\n');
  // Without a limit of its own, recall must not fall.
  const worse = await loop.run(bertCheckpoint(folder, 'random'), '--dimension', '32', '--json');
  assert.equal(worse.code, 3, worse.stderr);
  assert.deepEqual(options(worse), ['--max-recall-drop']);
});

/** The options that accept a refused index. */
function options({ stdout }: Ended): string[] {
  const { refusals } = JSON.parse(stdout) as IterationSummary;
  return refusals.map(({ accept }) => accept.split(' ')[0]!);
}

test('a checkpoint without settings gets those of the index before, one with its own keeps them, and options win', async () => {
  const loop = new Loop('settings');
  const before = join(folder, 'with-settings');
  const settings = ['--pooling', 'mean', '--query-prefix', 'query: ', '--passage-prefix', 'passage: '];
  const limits = ['--max-passage-tokens', '64', '--query-template', 'query'];
  const bm25 = ['--bm25', '--analyser', 'standard', '--column', 'title:string'];
  const template = ['--passage-template', '{title}: {text}'];
  const model = bertCheckpoint(folder, 'first');
  assert.equal(
    (await runTrawl(['model', 'add', model, '--out', join(folder, 'first-model'), '--precision', 'int8'])).code,
    0,
  );
  const built = await runTrawl([
    ...['index', corpus, '--model', join(folder, 'first-model'), '--out', before, '--quiet'],
    ...[...settings, ...limits, ...bm25, ...template],
  ]);
  assert.equal(built.code, 0, built.stderr);
  const plain = bertCheckpoint(folder, 'plain', { modules: false, seed: 2 });
  const inputs = [
    '--corpus',
    corpus,
    '--eval',
    QUESTIONS,
    '--json',
    '--max-recall-drop',
    '1',
    '--encoder-threads',
    '1',
  ];
  const first = jsonOf<IterationSummary>(await loop.iterate(plain, '--from', before, ...inputs));
  assert.deepEqual(first.changes, []);
  const [old, made] = [readIndexManifest(before), readIndexManifest(first.index)];
  const { name, sha256, sourceSha256, overrides, ...identity } = old.model!;
  assert.deepEqual(
    { ...made.model, name, sha256, sourceSha256, overrides },
    { ...identity, name, sha256, sourceSha256, overrides },
  );
  assert.equal(made.model!.precision, 'int8');
  assert.deepEqual(made.bm25!.made, old.bm25!.made);
  assert.deepEqual(made.columns, old.columns);
  assert.equal(made.corpus.passageTemplate, '{title}: {text}');
  assert.equal(first.sameCorpus, true);
  // Its pooling and limits are its own; what options had replaced before stays replaced.
  const own = bertCheckpoint(folder, 'own', { seed: 3 });
  const given = ['--query-prefix', 'Q: ', '--max-passage-tokens', '100', '--until', 'model'];
  const second = jsonOf<IterationSummary & Options>(await loop.iterate(own, ...inputs, ...given));
  assert.deepEqual(second.changes, ['queryPrefix "Q: ", before "query: "', 'maxPassageTokens 100, before 64']);
  assert.deepEqual(optionsByName(second), {
    ...{ '--precision': 'int8', '--query-prefix': 'Q: ', '--passage-prefix': 'passage: ' },
    ...{ '--query-template': 'query', '--max-passage-tokens': '100' },
  });
});

interface Options {
  readonly modelOptions: readonly string[];
}

function optionsByName({ modelOptions }: Options): Record<string, string> {
  return Object.fromEntries(modelOptions.flatMap((name, i) => (i % 2 === 0 ? [[name, modelOptions[i + 1]!]] : [])));
}

test('jobs can build the shards of an iteration', async () => {
  const loop = new Loop('jobs');
  const prefix = ['--query-prefix', "it's: "];
  const { modelOptions } = jsonOf<IterationSummary & Options>(
    await loop.run(better, '--from', start, '--until', 'model', ...prefix, '--json'),
  );
  const [model, out] = ['model', 'index'].map((name) => join(loop.root, 'iterations', '0001', name)) as [
    string,
    string,
  ];
  const build = ['index', corpus, '--model', model, ...modelOptions, '--bm25', '--out', out, '--quiet'];
  for (const shard of ['0/2', '1/2']) assert.equal((await runTrawl([...build, '--shard', shard])).code, 0);
  assert.equal((await runTrawl(['merge', out])).code, 0);
  const { index, generation } = await loop.publish(better, ...prefix);
  assert.equal(readIndexManifest(index).shards.length, 2);
  assert.equal(readIndexManifest(index).model!.prefixes.query, "it's: ");
  assert.equal(readIndexManifest(loop.current).generation, generation);
  // An index of another model in that place is not taken.
  const stopped = await loop.run(other, '--until', 'model', ...prefix);
  // Quoted for a shell.
  assert.match(stopped.stdout, /^ {2}options {5}--precision int8 --query-prefix 'it'\\''s: ' --dimension 256$/m);
  cpSync(index, index.replace('0001', '0002'), { recursive: true });
  const refused = await loop.run(other, ...prefix);
  assert.match(
    refused.stderr,
    /was built with another corpus, model or option than this iteration has.*\[BUILD_DIFFERS\]/,
  );
});

test('passages that were removed from the index before come back with a note, and can be removed before it is published', async () => {
  const loop = new Loop('removed');
  const before = join(folder, 'with-removed');
  cpSync(start, before, { recursive: true });
  const { id } = JSON.parse(readFileSync(corpus, 'utf8').split('\n')[0]!) as { id: string };
  assert.equal((await runTrawl(['remove', before, String(id)])).code, 0);
  const built = await loop.run(better, '--from', before, '--until', 'index', '--json');
  assert.match(built.stderr, /1 passage that the index before no longer had, because of trawl remove, came back/);
  const { index, generation, sameCorpus } = JSON.parse(built.stdout) as IterationSummary;
  assert.equal(sameCorpus, false);
  assert.equal((await runTrawl(['remove', index, String(id)])).code, 0);
  const published = await loop.publish(better);
  assert.notEqual(published.generation, generation);
  assert.equal(published.generation, readIndexManifest(index).generation);
  assert.equal(readIndexManifest(index).tombstones!.rows, 1);
});

test('mistakes are named before any work', async () => {
  const loop = new Loop('mistakes');
  const refused = async (expected: RegExp, args: string[], code = 2): Promise<void> => {
    const ended = await loop.iterate(...args);
    assert.equal(ended.code, code, ended.stderr);
    assert.match(ended.stderr, expected);
  };
  const inputs = ['--corpus', corpus, '--eval', QUESTIONS];
  assert.match((await runTrawl(['iterate', better, ...inputs])).stderr, /--root is missing/);
  await refused(/<checkpoint> is missing/, inputs);
  await refused(/--corpus is missing/, [better, '--eval', QUESTIONS]);
  await refused(/--eval is missing/, [better, '--corpus', corpus]);
  await refused(/has no iterations\. Begin with the index that is served now: .*--from INDEX/, [better, ...inputs], 1);
  await refused(/has no iterations/, ['--back'], 1);
  await refused(/--back and --status are different actions/, ['--back', '--status']);
  await refused(/--back takes no checkpoint/, ['--back', better]);
  await refused(/--to has no effect without --back/, ['--status', '--to', '1']);
  await refused(/--eval has no effect with --status/, ['--status', '--eval', QUESTIONS]);
  await refused(/--key-file has no effect without --server/, [better, ...inputs, '--key-file', corpus]);
  await refused(/--min-recall is "2"; expected a number from 0 to 1/, [better, ...inputs, '--min-recall', '2']);
  await refused(/--server is "localhost"; expected http/, [better, ...inputs, '--server', 'localhost']);
  const both = 'http://127.0.0.1:9,http://127.0.0.1:10';
  await refused(/Repeat the option for several servers/, [better, ...inputs, '--server', both]);
  await refused(/not a file of recorded queries/, [better, ...inputs, '--records', join(folder, 'none')], 1);
  const unjudged = join(folder, 'unjudged.jsonl');
  writeFileSync(unjudged, '{"id": "1", "question": "who?"}\n');
  await refused(/No question of .* is judged/, [better, '--corpus', corpus, '--eval', unjudged]);
  const begin = ['--from', start, ...inputs];
  await refused(
    /There is no checkpoint \S*intfloat\/e5-base-v2\. .* one of the hub is added first/,
    ['intfloat/e5-base-v2', ...begin],
    1,
  );
  await refused(/began with .*start, not with/, [better, '--from', folder, ...inputs]);
  await refused(/is the first of .*: there is nothing to go back to/, ['--back']);
  await refused(/has no index of iteration 7\. It has 0\./, ['--back', '--to', '7']);
  rmSync(loop.current);
  symlinkSync('/nowhere', loop.current);
  await refused(/points to \/nowhere, which is not an iteration.*--back --to NUMBER --root/, [better, ...inputs], 1);
  assert.equal((await loop.status()).current, null);
  const status = await loop.iterate('--status', '--server', 'http://127.0.0.1:9');
  assert.match(status.stdout, /^ +0 .*\(start\)$/m);
  assert.match(status.stdout, /points to none of them: trawl iterate --back --to NUMBER --root \S+mistakes$/m);
  assert.match(status.stdout, /^http:\/\/127\.0\.0\.1:9: .*cannot be asked for its indexes/m);
  assert.equal((await loop.iterate('--back', '--to', '0')).code, 0);
  assert.equal(readlinkSync(loop.current), start);
});
