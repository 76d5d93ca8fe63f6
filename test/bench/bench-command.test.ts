import assert from 'node:assert/strict';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { baselinePython } from '../../bench/baselines.ts';
import type { BenchEmbedResult } from '../../bench/embed/bench-embed.ts';
import type { EmbedRecord } from '../../bench/embed/embed-case.ts';
import type { BenchFlatResult } from '../../bench/flat/bench-flat.ts';
import type { FlatRecord } from '../../bench/flat/flat-case.ts';
import { BASELINES } from '../../bench/flat/flat-engine.ts';
import { encodeNpy } from '../../bench/vectors/npy.ts';
import { cacheFolder } from '../../src/base/options/environment.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { type Ended, endOf, runTrawl, spawnTrawl } from '../cli/run-trawl.ts';
import { sharedData, withoutSharedData } from '../helpers/shared-data.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const E5_SAMPLE = 'flashrag_sample/e5_flat_sample.index';
const NO_PYTHON = ['--python', '/nonexistent/python'];
const SMALL = ['--rows', '2000', '--dimension', '64', '--queries', '1,16'];

const SAMPLE_CORPUS = join(packageRoot, 'corpus', 'sample', 'passages.jsonl');
const EMBED = ['embed', '--model', 'token-average-256', '--texts', SAMPLE_CORPUS];

const python = baselinePython(cacheFolder('trawl'), 'flat');
const withoutBaselines = python === undefined ? 'the Python baselines are not installed: trawl bench baselines' : false;
const withoutEngine = loadKernel().ok ? false : 'the native engine is not available';

const bench = (...args: string[]): Promise<Ended> => runTrawl(['bench', ...args]);

async function cacheOf(t: TestContext): Promise<string[]> {
  return ['--cache', await tempFolder(t)];
}

const recordsOf = ({ stdout }: Ended): FlatRecord[] => JSON.parse(stdout) as FlatRecord[];

test('without Python, bench flat measures Trawl alone and lists the baselines as skipped', async (t) => {
  const cache = await cacheOf(t);
  const result = join(cache[1]!, 'result.json');
  // In a process of its own, unlike the other tests.
  const args = ['bench', 'flat', ...SMALL, ...cache, ...NO_PYTHON, '--json', '--out', result];
  const ended = await endOf(spawnTrawl(args));
  assert.equal(ended.code, 0, ended.stderr);
  for (const name of BASELINES) assert.match(ended.stderr, new RegExp(`Skipped ${name}: .*ENOENT`));
  const records = recordsOf(ended);
  assert.deepEqual(
    records.map(({ case: name, engine }) => [name, engine]),
    [
      ['flat/2000x64/float32/k10/q1', 'trawl'],
      ['flat/2000x64/float32/k10/q16', 'trawl'],
    ],
  );
  for (const record of records) {
    assert.equal(record.rows, 2000);
    assert.equal(record.dimension, 64);
    assert.equal(record.k, 10);
    assert.equal(record.runs, 5);
    assert.ok(record.threads >= 1 && record.medianMs > 0 && record.p95Ms >= record.medianMs);
    const dots = (record.queries * 2000) / (record.medianMs / 1000);
    assert.ok(Math.abs(record.dotsPerS / dots - 1) < 1e-9);
    assert.equal(record.ratioToTrawl, 1);
    assert.equal(record.agreement, null);
    assert.ok(record.residentBytes > 0);
  }
  const written = JSON.parse(await readFile(result, 'utf8')) as BenchFlatResult;
  assert.deepEqual(written.records, records);
  assert.equal(written.skipped.length, BASELINES.length);
  assert.equal(written.environment.node, process.version);
});

test('records of the native engine have the number of rescored rows', { skip: withoutEngine }, async (t) => {
  const ended = await bench('flat', ...SMALL, ...(await cacheOf(t)), '--against', 'none', '--runs', '1', '--json');
  for (const { candidatesMedian, candidatesP95, candidatesMax, fullScans } of recordsOf(ended)) {
    assert.ok(candidatesMedian! >= 10 && candidatesP95! >= candidatesMedian! && candidatesMax! >= candidatesP95!);
    assert.equal(fullScans, 0);
  }
});

test('vectors are generated once and reused by a second run', async (t) => {
  const cache = await cacheOf(t);
  const small = [...SMALL, ...cache, '--against', 'none', '--runs', '1'];
  const first = await bench('flat', ...small);
  assert.match(first.stderr, /generated 2000 vectors/);
  assert.match(first.stdout, /2000 × 64 float32, k = 10/);
  assert.match(first.stdout, /\|\s+16 \| trawl/);
  const files = await readdir(join(cache[1]!, 'bench'));
  assert.ok(!files.some((name) => name.endsWith('.part')), files.join(', '));
  const second = await bench('flat', ...small);
  assert.equal(second.stderr, 'measured: searches of 1 query\nmeasured: searches of 16 queries\n');
  assert.deepEqual(await readdir(join(cache[1]!, 'bench')), files);
});

test('cached codes of another version are made again', { skip: withoutEngine }, async (t) => {
  const cache = await cacheOf(t);
  const small = [...SMALL, ...cache, '--against', 'none', '--runs', '1'];
  await bench('flat', ...small);
  const folder = join(cache[1]!, 'bench');
  const codes = (await readdir(folder)).find((name) => name.endsWith('.i8'))!;
  await writeFile(join(folder, codes), 'codes of yesterday');
  const again = await bench('flat', ...small);
  assert.equal(again.code, 0, again.stderr);
  assert.match(again.stderr, /another format version, so they are computed again/);
});

test('the baselines give the same answers', { skip: withoutBaselines }, async (t) => {
  const dtypes = loadKernel().ok ? ['float32', 'float16'] : ['float32'];
  for (const dtype of dtypes) {
    const args = [...SMALL, ...(await cacheOf(t)), '--python', python!, '--runs', '2', '--dtype', dtype, '--json'];
    const ended = await bench('flat', ...args);
    assert.equal(ended.code, 0, ended.stderr);
    const records = recordsOf(ended);
    assert.deepEqual(
      records.map(({ engine }) => engine),
      ['trawl', ...BASELINES, 'trawl', ...BASELINES],
    );
    for (const { engine, agreement, residentBytes, ratioToTrawl } of records) {
      if (engine === 'trawl') continue;
      assert.equal(agreement, 1, `${engine}, ${dtype}`);
      assert.ok(residentBytes > 0 && ratioToTrawl > 0);
    }
  }
});

test('a file of real vectors is searched with perturbed rows or with queries from a file', {
  skip: withoutSharedData(E5_SAMPLE),
}, async (t) => {
  const cache = await cacheOf(t);
  const file = ['--vectors', sharedData(E5_SAMPLE), '--against', 'none', '--runs', '1', '--json', ...cache];
  const own = await bench('flat', ...file, '--queries', '4');
  assert.equal(recordsOf(own)[0]!.case, 'flat/1000x768/float32/k10/q4');
  const queries = join(cache[1]!, 'queries.npy');
  await writeFile(queries, encodeNpy({ rows: 3, columns: 768, values: new Float32Array(3 * 768).fill(0.5) }));
  const given = await bench('flat', ...file, '--queries', '3', '--query-vectors', queries);
  assert.equal(given.code, 0, given.stderr);
  const tooMany = await bench('flat', ...file, '--queries', '4', '--query-vectors', queries);
  assert.equal(tooMany.code, 2);
  assert.match(tooMany.stderr, /--queries has 4, but there are 3 query vectors/);
});

test('without its baseline, bench embed measures Trawl alone and says why', async (t) => {
  const cache = await cacheOf(t);
  const result = join(cache[1]!, 'result.json');
  const checkpoint = ['--baseline-model', join(packageRoot, 'models', 'token-average-256')];
  const few = ['--sample', '20', '--runs', '2', ...cache, '--json'];
  const ended = await bench(...EMBED, ...few, ...checkpoint, ...NO_PYTHON, '--out', result);
  assert.equal(ended.code, 0, ended.stderr);
  assert.match(ended.stderr, /Skipped sentence-transformers: .*ENOENT/);
  const [record, ...others] = JSON.parse(ended.stdout) as EmbedRecord[];
  assert.deepEqual(others, []);
  assert.deepEqual([record!.case, record!.engine, record!.precision, record!.texts], ['embed', 'trawl', 'int8', 20]);
  assert.ok(record!.tokens > 100 && record!.residentBytes > 0 && record!.queryP99Ms >= record!.queryP50Ms);
  assert.ok(Math.abs(record!.textsPerS / (20_000 / record!.medianMs) - 1) < 1e-9);
  assert.ok(Math.abs(record!.tokensPerS / record!.textsPerS - record!.tokens / 20) < 1e-9);
  // The model has no config.json, so the size of its matrix products is unknown.
  assert.deepEqual([record!.ratioToBaseline, record!.gflopPerS, record!.cosineToBaseline], [null, null, null]);
  const written = JSON.parse(await readFile(result, 'utf8')) as BenchEmbedResult;
  assert.deepEqual(written.records, [record]);
  assert.equal(written.environment.matmulGflopPerS, null);
  assert.equal(written.skipped.length, 1);
});

test('bench embed names a missing checkpoint or environment, and refuses a precision that the model does not have', async (t) => {
  const few = ['--sample', '5', '--runs', '1', ...(await cacheOf(t))];
  const noCheckpoint = await bench(...EMBED, ...few, ...NO_PYTHON);
  assert.match(noCheckpoint.stderr, /checkpoint is unknown: .*--baseline-model/);
  assert.match(noCheckpoint.stdout, /\|\s+int8 \| trawl\s+\|/);
  const noPython = await bench(...EMBED, ...few);
  assert.match(noPython.stderr, /no Python environment: run trawl bench baselines embed/);
  const noGraph = await bench(...EMBED, ...few, '--precision', 'float32');
  assert.equal(noGraph.code, 1);
  assert.match(noGraph.stderr, /no graph of precision float32; it has int8/);
});

test('invalid options are refused before any file is written', async (t) => {
  const cache = await cacheOf(t);
  const refused: readonly (readonly [RegExp, ...string[]])[] = [
    [/<case> is missing/],
    [/[Uu]nknown case \\?"ivf/, 'ivf'],
    [/second word, \\?"embed\\?", belongs to/, 'flat', 'embed'],
    [/The second word is \\?"ivf/, 'baselines', 'ivf'],
    [/--model is missing/, 'embed'],
    [/--texts is missing/, 'embed', '--model', 'token-average-256'],
    [/--rows belongs to .*bench flat/, 'embed', '--rows', '10'],
    [/--texts belongs to .*bench embed/, 'flat', '--texts', 'x.jsonl'],
    [/--precision is \\?"int4\\?"; expected some of float32/, ...EMBED, '--precision', 'int4'],
    [/--against is \\?"faiss\\?"; expected none, or some of sentence-transformers/, ...EMBED, '--against', 'faiss'],
    [/--queries is/, 'flat', '--queries', '1,x'],
    [/--queries is/, 'flat', '--queries', '0'],
    [/--against is \\?"annoy/, 'flat', '--against', 'faiss,annoy'],
    [/--rows is/, 'flat', '--rows', '0'],
    [/--bandwidth-gb is/, 'flat', '--bandwidth-gb', '-1'],
    [/--rows is for synthetic vectors/, 'flat', '--vectors', 'x.faiss', '--rows', '10'],
    [/did you mean --threads/, 'flat', '--thread', '1'],
    [/--k is 11, but there are 10 rows/, 'flat', '--rows', '10', '--dimension', '8', '--k', '11'],
  ];
  for (const [message, ...args] of refused) {
    const ended = await bench(...args, ...cache);
    assert.equal(ended.code, 2, args.join(' '));
    assert.match(ended.stderr, message);
    assert.equal(ended.stdout, '');
  }
  assert.deepEqual(await readdir(cache[1]!), [], 'a file was written');
});

test('a result that cannot be written is refused before anything is measured', async (t) => {
  const cache = await cacheOf(t);
  const missing = join(cache[1]!, 'missing');
  const cases = [
    ['flat', ...SMALL, ...NO_PYTHON, '--out', join(missing, 'result.json')],
    ['all', '--stages', 'machine', '--out', join(missing, 'result.json'), '--report', join(cache[1]!, 'report.html')],
    ['all', '--stages', 'machine', '--report', join(missing, 'report.html')],
  ];
  for (const args of cases) {
    const ended = await bench(...args, ...cache);
    assert.match(ended.stderr, /OUTPUT_NOT_WRITABLE/, args.join(' '));
    assert.match(ended.stderr, /missing.* cannot be written: .*does its parent folder exist/);
    assert.doesNotMatch(ended.stderr, /measuring|Generating/);
  }
  assert.deepEqual(await readdir(cache[1]!), []);
});

test('rows that do not fit on the disk are refused before they are generated', async (t) => {
  const cache = await cacheOf(t);
  const ended = await bench(
    'flat',
    '--rows',
    '900000000000',
    '--dimension',
    '64',
    ...cache,
    '--queries',
    '1',
    '--json',
  );
  assert.equal(ended.code, 1);
  assert.match(ended.stderr, /DISK_FULL.* need \d+\.\d+ GB, .* free/);
});
