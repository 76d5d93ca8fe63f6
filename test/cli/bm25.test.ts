import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { EXIT } from '../../cli/program/command.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { readIndexManifest } from '../../src/index/manifest/read-manifest.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import {
  endOf,
  fileFolder,
  jsonOf,
  postJson,
  runTrawl,
  SAMPLE,
  SAMPLE_PASSAGES,
  serveIndex,
  TRAWL,
} from './run-trawl.ts';

const loaded = loadKernel();
const skip = loaded.ok ? false : `the native engine is not built: ${loaded.reason}`;
const folder = await fileFolder();
const index = join(folder, 'ix');
/** Vectors and words. */
const BOTH = ['--bm25', '--model', 'token-average-256'];
before(async () => {
  if (loaded.ok) await runTrawl(['index', SAMPLE_PASSAGES, '--out', index, ...BOTH, '--quiet']);
});

interface Report {
  readonly tokens: number;
  readonly hits: readonly {
    readonly row: number;
    readonly score: number;
    readonly document: { readonly id: string };
  }[];
}

const VIENNA = 'Which river flows through Vienna?';

test('--bm25 makes an inverted index, and --mode bm25 ranks by words without the encoder', { skip }, async () => {
  assert.ok(existsSync(join(index, 'shard-00000', 'contents.bm25')));
  const { code, stdout, stderr } = await runTrawl(['search', index, VIENNA, '--mode', 'bm25', '--k', '2']);
  assert.equal(code, 0);
  assert.match(stdout, /^1\. \d+\.\d{4} {2}Danube {2}\(id s-0082\)\n/);
  assert.match(stderr, /^search .*ms, fetch .*ms\n$/);
  const gone = await runTrawl(['search', index, VIENNA, '--mode', 'bm25', '--model', 'no-such-model', '--json']);
  assert.equal(jsonOf<Report>(gone).tokens, 5, 'which, river, flow, through and vienna');
});

test('an index with more shards than files may be open is refused with the way out', { skip }, async (t) => {
  const many = join(await tempFolder(t), 'many');
  await runTrawl(['index', SAMPLE_PASSAGES, '--out', many, '--bm25', '--shard-rows', '2', '--quiet']);
  const search = ['-c', 'ulimit -n 64 && exec "$@"', 'sh', ...TRAWL, 'search', many, VIENNA, '--mode', 'bm25'];
  const { code, stderr } = await endOf(spawn('sh', search, { stdio: ['ignore', 'pipe', 'pipe'] }));
  assert.deepEqual([code, stderr.includes('    at ')], [1, false], stderr);
  assert.match(stderr, /may open no more files \(.*too many open files\).*ulimit -n.*--shard-rows.*\[FILE_LIMIT\]\n$/i);
});

test('k1, b and the profile change the scores', { skip }, async () => {
  const scoreOf = async (...more: string[]): Promise<number> =>
    jsonOf<Report>(await runTrawl(['search', index, VIENNA, '--mode', 'bm25', '--json', ...more])).hits[0]!.score;
  const lucene = await scoreOf();
  assert.equal(await scoreOf('--k1', '0.9', '--b', '0.4'), lucene);
  assert.equal(await scoreOf('--bm25-profile', 'lucene'), lucene);
  const elasticsearch = await scoreOf('--bm25-profile', 'elasticsearch');
  assert.notEqual(elasticsearch, lucene);
  assert.ok(elasticsearch > (await scoreOf('--k1', '1.2', '--b', '0.75')), 'by the factor k1 + 1');
});

test('--explain shows the terms of each score, as a table and in --json', { skip }, async () => {
  const args = ['search', index, `${VIENNA} vienna`, '--mode', 'bm25', '--k', '2', '--explain'];
  const { code, stdout } = await runTrawl(args);
  assert.equal(code, 0);
  const lines = stdout.split('\n');
  assert.match(lines[1]!, /^ {5}term +boost {2}passages +score$/);
  assert.ok(
    lines.some((line) => /^ {5}vienna +2 +\d+ +\d+\.\d{4}$/.test(line)),
    stdout,
  );
  const { hits } = jsonOf<{ hits: { score: number; terms: { term: string; field: string; score: number }[] }[] }>(
    await runTrawl([...args, '--json']),
  );
  for (const { score, terms } of hits) {
    assert.equal(Math.fround(terms.reduce((sum, term) => sum + term.score, 0)), score);
    assert.ok(terms.every(({ field }) => field === 'contents'));
  }
  const plain = jsonOf<{ hits: object[] }>(await runTrawl(args.slice(0, -1).concat('--json')));
  assert.ok(!('terms' in plain.hits[0]!));
});

test('--bm25-order pyserini rounds the scores and orders ties by id', { skip }, async (t) => {
  const home = await tempFolder(t);
  const corpus = join(home, 'ties.jsonl');
  const ids = ['9', '10', 'a', 'B', '100', '2'];
  writeFileSync(corpus, ids.map((id) => `${JSON.stringify({ id, contents: 'danube river' })}\n`).join(''));
  const out = join(home, 'ties');
  assert.equal((await runTrawl(['index', corpus, '--out', out, '--bm25', '--quiet'])).code, 0);
  const hitsOf = async (...more: string[]): Promise<[string, number][]> =>
    jsonOf<Report>(await runTrawl(['search', out, 'danube', '--mode', 'bm25', '--k', '4', '--json', ...more])).hits.map(
      ({ score, document }) => [document.id, score],
    );
  const byRow = await hitsOf();
  assert.deepEqual(
    byRow.map(([id]) => id),
    ids.slice(0, 4),
  );
  const exact = byRow[0]![1];
  const rounded = Math.fround(Math.round(exact * 1e4) / 1e4);
  const byId = await hitsOf('--bm25-order', 'pyserini');
  assert.deepEqual(
    byId.map(([id]) => id),
    ['10', '100', '2', '9'],
  );
  assert.deepEqual(
    byId.map(([, score]) => score),
    [0, 1, 2, 3].map((i) => Math.fround(rounded - Math.fround(Math.fround(1e-6) * i))),
  );
  assert.deepEqual(await hitsOf('--bm25-order', 'row'), byRow);
  const run = join(home, 'run.txt');
  const questions = join(home, 'questions.jsonl');
  writeFileSync(questions, '{"id":"q","question":"danube","gold_ids":["10"]}\n');
  const evaluated = await runTrawl([
    'eval',
    out,
    '--queries',
    questions,
    '--mode',
    'bm25',
    '--bm25-order',
    'pyserini',
    '--cutoffs',
    '1',
    '--run',
    run,
  ]);
  assert.equal(evaluated.code, 0, evaluated.stderr);
  assert.match(readFileSync(run, 'utf8'), /^q Q0 10 1 /);
});

test('eval --mode bm25 measures the ranking by words', { skip }, async () => {
  const questions = join(SAMPLE, 'questions.jsonl');
  const { metrics } = jsonOf<{ metrics: Record<string, number> }>(
    await runTrawl(['eval', index, '--queries', questions, '--mode', 'bm25', '--json']),
  );
  assert.ok(metrics['recall@10']! > 0.7, JSON.stringify(metrics));
});

test('optimize --bm25 adds an inverted index to an index without one', { skip }, async (t) => {
  const plain = join(await tempFolder(t), 'plain');
  assert.equal((await runTrawl(['index', SAMPLE_PASSAGES, '--out', plain, '--quiet'])).code, 0);
  const refused = await runTrawl(['search', plain, VIENNA, '--mode', 'bm25']);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /The index plain has no inverted index.*make one with trawl optimize INDEX --bm25/s);
  const made = await runTrawl(['optimize', plain, '--bm25']);
  assert.match(made.stdout, /inverted indexes made for 1 shard/);
  const [ours, other] = await Promise.all(
    [plain, index].map(
      async (ix) => jsonOf<Report>(await runTrawl(['search', ix, VIENNA, '--mode', 'bm25', '--json'])).hits,
    ),
  );
  assert.deepEqual(ours, other);
  const again = jsonOf<{ lexicalMade: number }>(await runTrawl(['optimize', plain, '--bm25', '--json']));
  assert.equal(again.lexicalMade, 0);
});

test('optimize --bm25 keeps the settings of the index that are not given', { skip }, async (t) => {
  const out = join(await tempFolder(t), 'ix');
  const settings = ['--analyser', 'german', '--bm25-fields', 'title,text', '--k1', '1.5', '--b', '0.6'];
  assert.equal((await runTrawl(['index', SAMPLE_PASSAGES, '--out', out, '--bm25', ...settings, '--quiet'])).code, 0);
  const made = () => readIndexManifest(out).bm25!.made;
  const before = made();
  const optimize = async (...more: string[]): Promise<number> =>
    jsonOf<{ lexicalMade: number }>(await runTrawl(['optimize', out, '--bm25', '--json', ...more])).lexicalMade;
  assert.equal(await optimize(), 0);
  assert.deepEqual(made(), before);
  assert.equal(await optimize('--k1', '2'), 0, 'k1 needs no other files');
  assert.deepEqual(made(), { ...before, k1: 2 });
  // The value of the default counts as given.
  assert.equal(await optimize('--analyser', 'english', '--b', '0.4'), 1);
  const { stemmer, ...others } = before;
  assert.equal(typeof stemmer, 'string');
  assert.deepEqual(made(), { ...others, analyser: 'english', k1: 2, b: 0.4 });
  assert.equal(await optimize('--bm25-fields', 'contents'), 1);
  assert.deepEqual(made(), { ...others, analyser: 'english', k1: 2, b: 0.4, fields: ['contents'] });
});

test('serve ranks by its own weights for clients that send none', { skip }, async (t) => {
  const fields = join(await tempFolder(t), 'fields');
  await runTrawl(['index', SAMPLE_PASSAGES, '--out', fields, '--bm25', '--bm25-fields', 'title,text', '--quiet']);
  const ranking = ['--bm25-weights', 'title=4,text=0.5', '--tie-breaker', '0.3'];
  const search = async (...more: string[]): Promise<number[]> => {
    const args = ['search', fields, VIENNA, '--mode', 'bm25', '--k', '5', '--json', ...more];
    return jsonOf<Report>(await runTrawl(args)).hits.map(({ score }) => score);
  };
  const expected = await search(...ranking);
  const { url } = await serveIndex(t, fields, ranking);
  const { body } = await postJson<{ result: { score: number }[][] }>(url, {
    queries: [VIENNA],
    topk: 5,
    return_scores: true,
  });
  assert.deepEqual(
    body.result[0]!.map(({ score }) => score),
    expected,
  );
  assert.notDeepEqual(await search(), expected);
  const own = { queries: [VIENNA], k: 5, bm25: { weights: {}, tieBreaker: 0 } };
  const response = await fetch(`${url}/v1/search`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(own),
  });
  const { results } = (await response.json()) as { results: { hits: { score: number }[] }[] };
  assert.deepEqual(
    results[0]!.hits.map(({ score }) => score),
    await search(),
  );

  const one = await runTrawl(['serve', index, '--port', '0', '--tie-breaker', '0.3']);
  assert.notEqual(one.code, 0);
  assert.match(one.stderr, /title and text as one field, contents.*--bm25-fields title,text/s);
  const wrong = await runTrawl(['serve', fields, '--port', '0', '--bm25-weights', 'title=2=3']);
  assert.equal(wrong.code, EXIT.usage);
  assert.match(wrong.stderr, /--bm25-weights is "title=2=3"/);
});

test("optimize --help says that the index's settings are the defaults", async () => {
  const { stdout } = await runTrawl(['optimize', '--help']);
  const text = stdout.replace(/\s+/g, ' ');
  for (const value of ['english', 'contents', '0.9', '0.4']) {
    assert.ok(text.includes(`Default: the index's, or ${value} if it has no inverted indexes.`), value);
  }
});

test('--if-changed builds again when --bm25 is added', { skip }, async (t) => {
  const out = join(await tempFolder(t), 'ix');
  const run = (...more: string[]) =>
    runTrawl(['index', SAMPLE_PASSAGES, '--out', out, '--if-changed', '--json', ...more]);
  const built = async (...more: string[]): Promise<boolean> => jsonOf<{ built: boolean }>(await run(...more)).built;
  assert.equal(await built(), true);
  assert.equal(await built(), false);
  assert.equal(await built(...BOTH), true);
  assert.equal(await built(...BOTH), false);
  assert.equal(await built(...BOTH, '--analyser', 'standard'), true);
});

test('options of BM25 that have no effect, or a value out of range, are usage errors', { skip }, async (t) => {
  const out = join(await tempFolder(t), 'ix');
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [['index', SAMPLE_PASSAGES, '--out', out, '--analyser', 'standard'], /--analyser has no effect without --bm25/],
    [['index', SAMPLE_PASSAGES, '--out', out, '--bm25', '--k1', '-1'], /--k1 is "-1"; expected a number from 0/],
    [['index', SAMPLE_PASSAGES, '--out', out, '--bm25', '--b', '1.1'], /--b is "1\.1"; expected a number from 0 to 1/],
    [['index', SAMPLE_PASSAGES, '--out', out, '--bm25', '--b', 'x'], /--b is "x"/],
    [['index', SAMPLE_PASSAGES, '--out', out, '--bm25', '--update'], /--update .* cannot be combined with --bm25/],
    [['index', SAMPLE_PASSAGES, '--out', out, '--bm25', '--workers', '2'], /--workers has no effect: .*--model/],
    [['search', index, 'q', '--k1', '1'], /--k1 has no effect without --mode bm25/],
    [['search', index, 'q', '--bm25-order', 'row'], /--bm25-order has no effect without --mode bm25/],
    [['search', index, 'q', '--mode', 'bm25', '--bm25-order', 'id'], /--bm25-order is "id"/],
    [['search', index, 'q', '--explain'], /--explain has no effect without --mode bm25/],
    [['search', index, 'q', '--mode', 'dense', '--explain'], /--explain has no effect without --mode bm25/],
    [['search', index, '--queries', 'x', '--out', 'y', '--mode', 'bm25', '--explain'], /--explain explains one query/],
    [['search', index, 'q', '--mode', 'words'], /--mode is "words"/],
    [
      ['index', SAMPLE_PASSAGES, '--out', out, '--bm25-fields', 'title,text'],
      /--bm25-fields has no effect without --bm25/,
    ],
    [['index', SAMPLE_PASSAGES, '--out', out, '--bm25', '--bm25-fields', 'title'], /--bm25-fields is "title"/],
    [['search', index, 'q', '--bm25-weights', 'title=2'], /--bm25-weights has no effect without --mode bm25/],
    [['search', index, 'q', '--tie-breaker', '1'], /--tie-breaker has no effect without --mode bm25/],
    ...['title', 'title=', 'title=-1', 'body=2', 'title=2=3', 'title=1,title=2', 'contents=1', ''].map(
      (weights) => [['search', index, 'q', '--mode', 'bm25', '--bm25-weights', weights], /--bm25-weights is/] as const,
    ),
    [['search', index, 'q', '--mode', 'bm25', '--tie-breaker', '2'], /--tie-breaker is "2"/],
    [
      ['eval', index, '--queries', join(SAMPLE, 'questions.jsonl'), '--b', '1'],
      /--b has no effect without --mode bm25/,
    ],
  ];
  for (const [args, message] of cases) {
    const { code, stderr } = await runTrawl(args);
    assert.equal(code, 2, args.join(' '));
    assert.match(stderr, message);
  }
});

test('removed passages are not found by their words', { skip }, async (t) => {
  const home = await tempFolder(t);
  const out = join(home, 'ix');
  assert.equal((await runTrawl(['index', SAMPLE_PASSAGES, '--out', out, ...BOTH, '--quiet'])).code, 0);
  const ids = join(home, 'ids.txt');
  writeFileSync(ids, 's-0082\n');
  assert.equal((await runTrawl(['remove', out, '--ids', ids, '--quiet'])).code, 0);
  const { hits } = jsonOf<Report>(await runTrawl(['search', out, VIENNA, '--mode', 'bm25', '--json', '--k', '300']));
  assert.ok(!hits.some(({ document }) => document.id === 's-0082'));
  assert.equal((await runTrawl(['verify', out, '--quiet'])).code, 0);
  assert.match(readFileSync(join(out, 'manifest.json'), 'utf8'), /deleted-contents-/);
});

test('--bm25 without a model makes an index of words alone, which needs no encoder anywhere', { skip }, async (t) => {
  const home = await tempFolder(t);
  const out = join(home, 'words');
  const built = await runTrawl(['index', SAMPLE_PASSAGES, '--out', out, '--bm25', '--shard-rows', '100']);
  assert.equal(built.code, 0, built.stderr);
  assert.match(built.stderr, /words: 270 passages in 3 shards, inverted index \(english\)\n/);
  assert.ok(!existsSync(join(out, 'shard-00000', 'vectors.faiss')));
  const ofBoth = jsonOf<Report>(await runTrawl(['search', index, VIENNA, '--mode', 'bm25', '--json'])).hits;
  assert.deepEqual(
    jsonOf<Report>(await runTrawl(['search', out, VIENNA, '--json'])).hits,
    ofBoth,
    'bm25 is its default',
  );
  const dense = await runTrawl(['search', out, VIENNA, '--mode', 'dense']);
  assert.equal(dense.code, 1);
  assert.match(dense.stderr, /no vectors/);
  const { stdout } = await runTrawl(['inspect', out]);
  assert.match(stdout, /rows +270\n/);
  assert.match(stdout, /words .* \(BM25 over contents; analyser english, k1 0\.9, b 0\.4\)/);
  assert.equal((await runTrawl(['verify', out, '--quiet'])).code, 0);
  for (const args of [
    ['optimize', out],
    ['remove', out, 's-0082'],
    ['optimize', out, '--compact'],
    ['export', out, '--corpus', join(home, 'corpus.jsonl')],
    ['verify', out, '--quiet'],
  ]) {
    const { code, stderr } = await runTrawl(args);
    assert.equal(code, 0, `${args[0]}: ${stderr}`);
  }
  const { hits } = jsonOf<Report>(await runTrawl(['search', out, VIENNA, '--json', '--k', '300']));
  assert.ok(!hits.some(({ document }) => document.id === 's-0082'));
  const vectors = await runTrawl(['export', out, '--faiss', join(home, 'x.faiss')]);
  assert.equal(vectors.code, 1);
  assert.match(vectors.stderr, /the index has no vectors/);
});

test('an index of words is updated without an encoder', { skip }, async (t) => {
  const home = await tempFolder(t);
  const out = join(home, 'words');
  const lines = readFileSync(SAMPLE_PASSAGES, 'utf8').trim().split('\n');
  const corpus = (name: string, of: readonly string[]): string => {
    writeFileSync(join(home, name), `${of.join('\n')}\n`);
    return join(home, name);
  };
  const first = corpus('a.jsonl', lines.slice(0, 200));
  assert.equal((await runTrawl(['index', first, '--out', out, '--bm25', '--quiet'])).code, 0);
  const next = corpus('b.jsonl', lines.slice(50));
  const updated = await runTrawl(['index', next, '--update', '--out', out]);
  assert.equal(updated.code, 0, updated.stderr);
  assert.match(updated.stderr, /70 passages added, 50 deleted, 150 kept/);
  const fresh = join(home, 'fresh');
  assert.equal((await runTrawl(['index', next, '--out', fresh, '--bm25', '--quiet'])).code, 0);
  const found = async (ix: string): Promise<unknown[]> =>
    jsonOf<Report>(await runTrawl(['search', ix, VIENNA, '--json', '--k', '300'])).hits.map(
      ({ score, document }) => `${score} ${document.id}`,
    );
  assert.deepEqual((await found(out)).sort(), (await found(fresh)).sort());
});

test('--plan of an index of words tells its size', { skip }, async (t) => {
  const out = join(await tempFolder(t), 'words');
  const { code, stdout } = await runTrawl(['index', SAMPLE_PASSAGES, '--out', out, '--bm25', '--plan']);
  assert.equal(code, 0);
  assert.match(stdout, /about 270 passages, 1 shard\n/);
  assert.match(stdout, /inverted index +\d/);
  assert.doesNotMatch(stdout, /vectors\.faiss|encode/);
});

test('--bm25-fields title,text makes two inverted indexes, which every command handles', { skip }, async (t) => {
  const home = await tempFolder(t);
  const out = join(home, 'fields');
  const fields = ['--bm25', '--bm25-fields', 'title,text'];
  const built = await runTrawl(['index', SAMPLE_PASSAGES, '--out', out, ...fields]);
  assert.equal(built.code, 0, built.stderr);
  assert.match(built.stderr, /inverted indexes of title and text \(english\)\n/);
  assert.match(
    (await runTrawl(['inspect', out])).stdout,
    /\(BM25 over title, text; analyser english, k1 0\.9, b 0\.4\)/,
  );
  const hits = async (...more: string[]): Promise<Report['hits']> =>
    jsonOf<Report>(await runTrawl(['search', out, 'Danube', '--mode', 'bm25', '--json', ...more])).hits;
  const best = await hits();
  assert.equal(best[0]!.document.id, 's-0082');
  assert.deepEqual(await hits('--bm25-weights', 'title=1, text=1', '--tie-breaker', '0'), best);
  assert.ok((await hits('--tie-breaker', '1'))[0]!.score > best[0]!.score);
  const [title, text] = [await hits('--bm25-weights', 'text=0'), await hits('--bm25-weights', 'title=0')];
  assert.equal(best[0]!.score, Math.max(title[0]!.score, text[0]!.score));
  const refused = await runTrawl(['search', index, 'Danube', '--mode', 'bm25', '--bm25-weights', 'title=2']);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /one field, contents.*--bm25-fields title,text/s);

  const unchanged = ['index', SAMPLE_PASSAGES, '--out', out, '--if-changed', '--json', '--bm25'];
  const isBuilt = async (...more: string[]): Promise<boolean> =>
    jsonOf<{ built: boolean }>(await runTrawl([...unchanged, ...more])).built;
  assert.equal(await isBuilt('--bm25-fields', 'title,text'), false);
  assert.match(
    (await runTrawl(['index', SAMPLE_PASSAGES, '--out', join(home, 'x'), ...fields, '--plan'])).stdout,
    /inverted index +\d/,
  );
  for (const args of [
    ['remove', out, 's-0082'],
    ['verify', out, '--quiet'],
    ['export', out, '--corpus', join(home, 'corpus.jsonl')],
    ['optimize', out, '--compact'],
    ['verify', out, '--quiet'],
  ]) {
    const { code, stderr } = await runTrawl(args);
    assert.equal(code, 0, `${args[0]}: ${stderr}`);
  }
  assert.ok(!(await hits('--k', '300')).some(({ document }) => document.id === 's-0082'));
  const again = await runTrawl(['optimize', out, '--bm25', '--bm25-fields', 'contents']);
  assert.match(again.stdout, /inverted indexes made for 1 shard/);
  assert.match((await runTrawl(['inspect', out])).stdout, /BM25 over contents;/);
});

test('a corpus without titles cannot have two fields', { skip }, async (t) => {
  const home = await tempFolder(t);
  const corpus = join(home, 'c.jsonl');
  writeFileSync(corpus, '{"id":"a","text":"some words"}\n{"id":"b","contents":"one line"}\n');
  const args = ['index', corpus, '--out', join(home, 'ix'), '--bm25', '--bm25-fields', 'title,text'];
  const { code, stderr } = await runTrawl(args);
  assert.notEqual(code, 0);
  assert.match(stderr, /no passage has a title\. A title is the column title.*Use --bm25-fields contents/s);
  const plan = await runTrawl([...args.with(3, join(home, 'other')), '--plan']);
  assert.equal(plan.code, 3);
  assert.match(plan.stdout, /None of the first passages of the corpus \(2\) has a title/);
});
