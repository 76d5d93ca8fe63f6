import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { importModel } from '../../indexer/model-import/import-model.ts';
import { ModelReranker } from '../../src/encoder/rerank/model-reranker.ts';
import { readViews } from '../../src/index/views/read-views.ts';
import { openRetriever } from '../../src/search/opening/open-retriever.ts';
import type { OpenRetriever } from '../../src/search/retriever.ts';
import { AccessKeys } from '../../src/server/access/access-keys.ts';
import { writeCrossEncoder } from '../encoder/rerank/tiny-cross-encoder.ts';
import { proxyTo } from '../stores/trawl-server/proxy.ts';
import { linesOf, QUESTIONS, SUB_QUERIES, writePlantedCorpus } from '../training/mining/mining-corpus.ts';
import { serveRetriever } from '../training/replay/recorded-server.ts';
import { step1Item } from '../training/trajectories/step1-item.ts';
import { type Ended, endOf, fileFolder, runTrawl, spawnTrawl } from './run-trawl.ts';

const folder = await fileFolder();
const index = join(folder, 'planted');
const model = join(folder, 'tiny-reranker');
const queries = join(folder, 'rounds.jsonl');
const few = join(folder, 'few.jsonl');
const questions = join(folder, 'questions.jsonl');
const trajectories = join(folder, 'steps.json');
let retriever: OpenRetriever;
let count = 0;

/** Defaults of a server that must not count: every request names its settings. */
const OTHER_DEFAULTS = {
  topk: 2,
  mode: 'bm25',
  truncate: 'question',
  bm25Order: 'pyserini',
  hybrid: { fusion: 'rrf', depth: 7 },
  rerank: { depth: 3 },
} as const;

before(async () => {
  const corpus = writePlantedCorpus(folder);
  const rows = readFileSync(corpus, 'utf8').trimEnd().split('\n');
  const extra = [
    // A second passage with the id of a positive, which is a positive too.
    '{"id":"s-0001","title":"Again","text":"Another passage about the Brooklyn Bridge and its designer."}',
    '{"id":9007199254740993,"title":"Big","text":"The bridge with an id beyond the exact integers."}',
    '{"title":"None","text":"A bridge without an id, in New York."}',
  ];
  writeFileSync(corpus, [...rows, ...extra].map((row, i) => `${row.slice(0, -1)},"part":${i % 4}}\n`).join(''));
  const words = ['--bm25', '--bm25-fields', 'title,text', '--column', 'part:number'];
  const built = await runTrawl(['index', corpus, '--out', index, '--model', 'token-average-256', ...words, '--quiet']);
  assert.equal(built.code, 0, built.stderr);
  const checkpoint = join(folder, 'checkpoint');
  writeCrossEncoder(checkpoint);
  await importModel(checkpoint, { out: model, name: 'tiny-reranker', precisions: ['float32'] });
  const lines = linesOf<Record<string, unknown>>(SUB_QUERIES);
  writeFileSync(questions, readFileSync(QUESTIONS, 'utf8').split('\n').slice(0, 25).join('\n'));
  const many = Array.from({ length: 3 }, (_, i) =>
    lines.map((line, j) => JSON.stringify({ ...line, id: `t-${i}-${j >> 1}`, round_index: 1 + (j % 2) })),
  );
  writeFileSync(queries, `${many.flat().join('\n')}\n`);
  // More than one request has.
  writeFileSync(few, `${many.flat().slice(0, 70).join('\n')}\n`);
  const steps = lines.slice(0, 40).map(({ question, query }, i) =>
    step1Item({
      id: `train_${i}`,
      question: String(question),
      searches: [{ query: String(query) }, { query: String(question) }],
    }),
  );
  writeFileSync(trajectories, JSON.stringify(steps));
  const reranker = await ModelReranker.open(model, {});
  retriever = await openRetriever(index, { reranker, fieldRanking: { weights: { title: 3 }, tieBreaker: 0.5 } });
  after(async () => {
    await retriever.close();
    await reranker.close();
  });
});

async function succeeded(args: readonly string[]): Promise<Ended> {
  const ended = await runTrawl([...args, '--quiet']);
  assert.equal(ended.code, 0, ended.stderr);
  return ended;
}

/** The files that a command writes for the index directory, and for the server. */
async function both(
  url: string,
  command: (place: readonly string[], out: string) => readonly string[],
  {
    ending = 'jsonl',
    local = [] as readonly string[],
    served = [] as readonly string[],
    further = [] as readonly string[],
  } = {},
): Promise<void> {
  const outs = ['folder', 'url'].map((name) => join(folder, `${count++}-${name}.${ending}`));
  await succeeded([...command([index], outs[0]!), ...local]);
  await succeeded([...command(['--url', url], outs[1]!), ...served]);
  for (const suffix of ['', ...further]) {
    const [expected, found] = outs.map((out) => readFileSync(`${out}${suffix}`));
    assert.ok(expected!.length > 100);
    assert.ok(found!.equals(expected!), `${command(['--url', url], outs[1]!).join(' ')}: ${suffix || 'rows'} differ`);
  }
}

test('trawl search --queries --url writes the bytes of the index directory, in every format, mode and with filters', async (t) => {
  const url = await serveRetriever(t, retriever, OTHER_DEFAULTS);
  const search =
    (...options: string[]) =>
    (place: readonly string[], out: string) => [
      'search',
      ...place,
      '--queries',
      few,
      '--k',
      '9',
      '--out',
      out,
      ...options,
    ];
  await both(url, search());
  await both(url, search('--filter', 'part >= 2', '--query-form', 'query'), { ending: 'parquet' });
  await both(url, search('--mode', 'bm25', '--bm25-order', 'pyserini', '--k1', '1.1', '--bm25-weights', 'title=2'), {
    ending: 'trec',
  });
  await both(url, search('--mode', 'hybrid', '--query-template', 'query'), { ending: 'parquet' });
  await both(url, search('--mode', 'hybrid', '--hybrid-fusion', 'rrf', '--hybrid-depth', '40', '--shard', '1/3'));
  await both(url, (place, out) => search('--scores-out', `${out}.scores.npy`)(place, out), {
    ending: 'npy',
    further: ['.scores.npy'],
  });
  await both(url, search('--rerank-depth', '12'), {
    local: ['--rerank', model],
    served: ['--rerank', 'tiny-reranker'],
  });
});

test('trawl mine --url writes the rows of the index directory, in every mode, with margins, both lists and a reranker', async (t) => {
  const url = await serveRetriever(t, retriever, OTHER_DEFAULTS);
  const mine =
    (format: string, ...options: string[]) =>
    (place: readonly string[], out: string) => [
      'mine',
      ...place,
      '--queries',
      questions,
      '--out',
      out,
      '--format',
      format,
      '--num-negatives',
      '4',
      '--range-max',
      '30',
      ...options,
    ];
  await both(url, mine('tevatron', '--relative-margin', '0.02'));
  await both(url, mine('flagembedding', '--also-bm25', '--filter', 'part < 3', '--absolute-margin', '0'));
  await both(url, mine('triplet', '--mode', 'bm25', '--relative-margin', '0.1', '--sampling-strategy', 'random'), {
    ending: 'parquet',
    further: ['.origins.jsonl'],
  });
  await both(url, mine('agentic-r', '--mode', 'hybrid'));
  await both(url, mine('labeled-list', '--absolute-margin', '0.001', '--output-scores'), {
    local: ['--rerank', model],
    served: ['--rerank', 'tiny-reranker'],
    further: ['.origins.jsonl'],
  });
});

test('trawl agentic-r candidates and hand-over --url write the files of the index directory', async (t) => {
  const url = await serveRetriever(t, retriever, OTHER_DEFAULTS);
  const candidates =
    (...options: string[]) =>
    (place: readonly string[], out: string) => [
      'agentic-r',
      'candidates',
      ...place,
      trajectories,
      '--out',
      out,
      ...options,
    ];
  await both(url, candidates(), { ending: 'json' });
  await both(url, candidates('--mode', 'bm25', '--k', '5', '--filter', 'part = 1'), { ending: 'json' });
  const made = join(folder, 'made.json');
  await succeeded(candidates()(['--url', url], made));
  const outs = ['handed', 'handed-url'].map((name) => join(folder, name));
  await succeeded(['agentic-r', 'hand-over', index, made, '--out', outs[0]!]);
  await succeeded(['agentic-r', 'hand-over', '--url', url, made, '--out', outs[1]!]);
  for (const name of ['rounds.jsonl', 'passages.jsonl'])
    assert.deepEqual(readFileSync(join(outs[1]!, name)), readFileSync(join(outs[0]!, name)));
});

/** Rows of a run that is killed while a slow server is asked, and that resumes at another address of it. */
async function killedAndResumed(
  t: { after(work: () => void | Promise<void>): void },
  url: string,
  command: (url: string) => readonly string[],
  isBegun: () => boolean,
): Promise<Ended> {
  const slow = await proxyTo(t, url, { delayMs: 60 });
  const child = spawnTrawl([...command(slow.url), '--quiet']);
  const ended = endOf(child);
  for (let tries = 0; !isBegun(); tries++) {
    assert.ok(tries < 2_000 && child.exitCode === null, 'nothing was saved before the end');
    await sleep(10);
  }
  child.kill('SIGKILL');
  assert.equal((await ended).signal, 'SIGKILL');
  return runTrawl(command(url));
}

test('killed with -9, trawl search, mine and candidates resume at the server, also at another address of it', async (t) => {
  const url = await serveRetriever(t, retriever);
  const cwd = await fileFolder();
  const bulk = (out: string) => (server: string) => [
    'search',
    '--url',
    server,
    '--queries',
    queries,
    '--k',
    '20',
    '--out',
    out,
    '--checkpoint-seconds',
    '0',
    '--concurrency',
    '1',
  ];
  const out = join(cwd, 'hits.jsonl');
  const resumed = await killedAndResumed(t, url, bulk(out), () => existsSync(`${out}.progress`));
  assert.equal(resumed.code, 0, resumed.stderr);
  assert.match(resumed.stderr, /resuming after \d+ queries/);
  const whole = join(cwd, 'whole.jsonl');
  await succeeded(['search', index, '--queries', queries, '--k', '20', '--out', whole]);
  assert.deepEqual(readFileSync(out), readFileSync(whole));
  const report = JSON.parse(readFileSync(`${out}.report.json`, 'utf8')) as { server: string };
  assert.equal(report.server, url);

  const rows = join(cwd, 'rows.jsonl');
  const mine = (place: readonly string[], path: string) => [
    'mine',
    ...place,
    '--queries',
    SUB_QUERIES,
    '--out',
    path,
    '--format',
    'tevatron',
    '--range-max',
    '200',
  ];
  const mined = await killedAndResumed(
    t,
    url,
    (server) => mine(['--url', server, '--concurrency', '1'], rows),
    () => existsSync(`${rows}.partial`) && statSync(`${rows}.partial`).size > 0,
  );
  assert.equal(mined.code, 0, mined.stderr);
  const wholeRows = join(cwd, 'whole-rows.jsonl');
  await succeeded(mine([index], wholeRows));
  assert.deepEqual(readFileSync(rows), readFileSync(wholeRows));

  const many = join(cwd, 'many.jsonl');
  const steps = JSON.parse(readFileSync(trajectories, 'utf8')) as { id: string }[];
  const items = Array.from({ length: 12 }, (_, i) => steps.map((item) => ({ ...item, id: `${item.id}_${i}` }))).flat();
  writeFileSync(many, items.map((item) => `${JSON.stringify(item)}\n`).join(''));
  const made = join(cwd, 'made.json');
  const candidates = (place: readonly string[], path: string) => [
    'agentic-r',
    'candidates',
    ...place,
    many,
    '--out',
    path,
  ];
  const found = await killedAndResumed(
    t,
    url,
    (server) => candidates(['--url', server, '--concurrency', '1'], made),
    () => existsSync(`${made}.progress`),
  );
  assert.equal(found.code, 0, found.stderr);
  const wholeItems = join(cwd, 'whole.json');
  await succeeded(candidates([index], wholeItems));
  assert.deepEqual(readFileSync(made), readFileSync(wholeItems));
});

test('an index that is replaced during the run is refused, and so is resuming with it', async (t) => {
  const url = await serveRetriever(t, retriever);
  const { generation } = retriever.info;
  const other = generation.replace(/^./, (first) => (first === '0' ? '1' : '0'));
  const renamed = (text: string): string => text.replaceAll(generation, other);
  // Four requests of the first batch and those before the search come from the first generation.
  const swapped = await proxyTo(t, url, { reply: (text, _, number) => (number < 7 ? text : renamed(text)) });
  const cwd = await fileFolder();
  const out = join(cwd, 'hits.jsonl');
  const command = (server: string): string[] => [
    'search',
    '--url',
    server,
    '--queries',
    queries,
    '--out',
    out,
    '--checkpoint-seconds',
    '0',
    '--concurrency',
    '1',
  ];
  const stopped = await runTrawl(command(swapped.url));
  assert.equal(stopped.code, 1);
  assert.ok(stopped.stderr.includes(`now answers from the generation ${other}`), stopped.stderr);
  assert.match(stopped.stderr, /\[INDEX_CHANGED\]/);
  assert.match(readFileSync(`${out}.progress`, 'utf8'), /"queries":256/);

  const replaced = await proxyTo(t, url, { reply: renamed });
  const resumed = await runTrawl(command(replaced.url));
  assert.equal(resumed.code, 1);
  assert.match(resumed.stderr, /index changed\. .*--restart.*\[OUTPUT_DIFFERS\]/s);

  // The former index is loaded again.
  await succeeded(command(url));
  const whole = join(cwd, 'whole.jsonl');
  await succeeded(['search', index, '--queries', queries, '--out', whole]);
  assert.deepEqual(readFileSync(out), readFileSync(whole));

  const rows = join(cwd, 'rows.jsonl');
  const mine = ['mine', '--queries', questions, '--out', rows, '--format', 'dpr'];
  const mixed = await proxyTo(t, url, { reply: (text, _, number) => (number < 4 ? text : renamed(text)) });
  const refused = await runTrawl([...mine, '--url', mixed.url]);
  assert.match(refused.stderr, /\[INDEX_CHANGED\]/);
  assert.match((await runTrawl([...mine, '--url', replaced.url])).stderr, /\[OUTPUT_DIFFERS\]/);
});

test('a server with keys is asked with the key of --key-file, and a view limits the search', async (t) => {
  const keys = AccessKeys.parse('read:secret-key-0123456789\n', 'keys');
  const url = await serveRetriever(t, retriever, { keys });
  const out = join(folder, 'keyed.jsonl');
  const command = ['search', '--url', url, '--queries', queries, '--out', out];
  const refused = await runTrawl(command);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /\[UNAUTHORIZED\]/);
  const file = join(folder, 'key');
  writeFileSync(file, 'secret-key-0123456789\n');
  await succeeded([...command, '--key-file', file]);
  assert.doesNotMatch(readFileSync(`${out}.report.json`, 'utf8'), /secret/);
  assert.match((await runTrawl([...command, '--key-file', file, '--view', 'none'])).stderr, /none.*\[NOT_FOUND\]/);

  const definition = join(folder, 'views.json');
  writeFileSync(definition, JSON.stringify({ train: { filter: 'part != 1' } }));
  const limited = await openRetriever(index, { views: readViews(definition) });
  t.after(() => limited.close());
  const views = await serveRetriever(t, limited);
  const search = (place: readonly string[], path: string) => [
    'search',
    ...place,
    '--queries',
    queries,
    '--out',
    path,
    '--view',
    'train',
  ];
  await both(views, search, { local: ['--views', definition] });
  const mine = (place: readonly string[], path: string) => [
    'mine',
    ...place,
    '--queries',
    questions,
    '--out',
    path,
    '--format',
    'tevatron',
    '--view',
    'train',
  ];
  await both(views, mine, { local: ['--views', definition] });
});

test('options that do not fit --url are refused with what to do, and so are other servers', async (t) => {
  const url = await serveRetriever(t, retriever);
  const out = join(folder, 'refused.jsonl');
  const search = ['search', '--queries', queries, '--out', out];
  const mine = ['mine', '--queries', questions, '--out', out, '--format', 'dpr'];
  const cases: readonly (readonly [args: readonly string[], message: RegExp])[] = [
    [[...search, index, '--url', url], /either an index directory or --url/],
    [search, /Expected an index directory, or --url/],
    [[...search, '--url', '127.0.0.1:1'], /expected a URL such as/],
    [['search', '--url', url, 'a query'], /either an index directory or --url/],
    [[...search, index, '--concurrency', '2'], /--concurrency has no effect without --url/],
    [[...search, '--url', url, '--model', 'x'], /--model has no effect with --url/],
    [[...search, '--url', url, '--index', 'a', '--index', 'b'], /--index names one served index/],
    [[...search, '--url', url, '--index', 'other'], /other.*\[NOT_FOUND\]/],
    [[...search, '--url', url, '--rerank', 'other'], /has the reranker tiny-reranker/],
    [[...search, '--url', url, '--filter', 'nothing = 1'], /nothing.*\[USAGE\]/],
    [['search', '--url', url, '--query-vectors', 'q.npy', '--out', out], /servers take texts/],
    [mine, /Expected an index directory, or --url/],
    [[...mine, index, '--index', 'x'], /--index has no effect without --url/],
    [[...mine, '--url', url, '--views', 'x', '--view', 'y'], /--views has no effect with --url/],
    [
      ['agentic-r', 'candidates', index, trajectories, '--url', url, '--out', out],
      /Expected trawl agentic-r candidates <file>/,
    ],
    [['agentic-r', 'check', '--url', url, trajectories], /--url has no effect on trawl agentic-r check/],
    [[...search, '--url', `${url}/nothing`], /\[NOT_FOUND\]/],
  ];
  for (const [args, message] of cases) {
    const { code, stderr } = await runTrawl(args);
    assert.notEqual(code, 0, args.join(' '));
    assert.match(stderr, message);
  }
  assert.ok(!existsSync(out));
});
