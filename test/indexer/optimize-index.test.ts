import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { optimizeIndex } from '../../indexer/optimize/optimize-index.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { openEngine } from '../../src/engine/vectors/open-engine.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { build, writeCorpus } from './build.ts';
import { FakeTextEncoder } from './fake-text-encoder.ts';
import { indexProblems } from './index-problems.ts';

const loaded = loadKernel();
const skip = loaded.ok ? false : `the native engine is not available: ${loaded.reason}`;
const kernel = loaded.ok ? loaded.kernel : undefined;
const PASSAGES = 500;
const SHARD = 'shard-00000';
const quietly = { float16: false, onStep: () => undefined };

/** Built without an engine, so without codes. Every value of the encoder is n/128: a float16. */
async function bareIndex(t: TestContext, encoder = new FakeTextEncoder()): Promise<string> {
  const folder = await tempFolder(t);
  const rows = Array.from({ length: PASSAGES }, (_, id) => ({ id, contents: `passage ${id}` }));
  const corpus = writeCorpus(folder, { 'corpus.jsonl': rows });
  return (await build({ corpus, encoder, out: join(folder, 'index') })).folder;
}

async function search(folder: string): Promise<{ rows: number[]; scores: number[] }> {
  const encoder = new FakeTextEncoder();
  const index = await openEngine(openIndexDirectory(folder).source!);
  try {
    const { rows, scores } = await index.search({ queries: encoder.vectorOf('a query'), count: 1, k: 20 });
    return { rows: [...rows], scores: [...scores] };
  } finally {
    await index.close();
  }
}

function shardManifest(folder: string): {
  vectors: { path: string; dtype: string }[];
  codes: { path: string } | null;
  files: { path: string }[];
} {
  return JSON.parse(readFileSync(join(folder, SHARD, 'shard.json'), 'utf8')) as never;
}

test('an index without codes gets them, and search results do not change', { skip }, async (t) => {
  const folder = await bareIndex(t);
  const before = await search(folder);
  const { generation } = openIndexDirectory(folder).manifest;
  const summary = await optimizeIndex(folder, kernel!, quietly);
  assert.deepEqual(summary, {
    codesMade: 1,
    prefiltersMade: 0,
    prefiltersNotWorthwhile: 1,
    rewritten: 0,
    notRepresentable: 0,
    lexicalMade: 0,
    columnsMade: 0,
  });
  assert.equal(shardManifest(folder).codes?.path, 'codes.i8');
  assert.deepEqual(await search(folder), before);
  assert.equal(openIndexDirectory(folder).manifest.generation, generation);
  assert.deepEqual(await indexProblems(folder), []);
});

test('a second run finds nothing to do and touches no file', { skip }, async (t) => {
  const folder = await bareIndex(t);
  await optimizeIndex(folder, kernel!, { ...quietly, float16: true });
  const before = readFileSync(join(folder, SHARD, 'shard.json'), 'utf8');
  const summary = await optimizeIndex(folder, kernel!, { ...quietly, float16: true });
  assert.deepEqual(summary, {
    codesMade: 0,
    prefiltersMade: 0,
    prefiltersNotWorthwhile: 0,
    rewritten: 0,
    notRepresentable: 0,
    lexicalMade: 0,
    columnsMade: 0,
  });
  assert.equal(readFileSync(join(folder, SHARD, 'shard.json'), 'utf8'), before);
});

test('float16 rows take half the space, the float32 file is removed, and every score keeps its bits', {
  skip,
}, async (t) => {
  const folder = await bareIndex(t);
  const before = await search(folder);
  const summary = await optimizeIndex(folder, kernel!, { ...quietly, float16: true });
  assert.deepEqual(summary, {
    codesMade: 1,
    prefiltersMade: 0,
    prefiltersNotWorthwhile: 1,
    rewritten: 1,
    notRepresentable: 0,
    lexicalMade: 0,
    columnsMade: 0,
  });
  const { vectors, files } = shardManifest(folder);
  assert.deepEqual(
    vectors.map(({ path, dtype }) => [path, dtype]),
    [['vectors.f16.faiss', 'float16']],
  );
  assert.deepEqual(files.map(({ path }) => path).sort(), ['codes.i8', 'vectors.f16.faiss']);
  assert.equal(existsSync(join(folder, SHARD, 'vectors.faiss')), false);
  assert.deepEqual(await search(folder), before);
  assert.deepEqual(await indexProblems(folder), []);
});

test('rows that changed since they were written are not copied', { skip }, async (t) => {
  const folder = await bareIndex(t);
  const path = join(folder, SHARD, 'vectors.faiss');
  const bytes = readFileSync(path);
  // The sign of a value: the changed one is a float16 too.
  bytes[45 + 4 * 8 * 300 + 3]! ^= 0x80;
  writeFileSync(path, bytes);
  await assert.rejects(
    optimizeIndex(folder, kernel!, { ...quietly, float16: true }),
    trawlError('INDEX_FILE_FOREIGN', /vectors\.faiss: sha256 of bytes 0 to 16045 is .*Restore the file/),
  );
  assert.deepEqual(
    shardManifest(folder).vectors.map(({ path: name }) => name),
    ['vectors.faiss'],
  );
});

test('a value that is not a float16 keeps its shard in float32, and the summary says so', { skip }, async (t) => {
  const encoder = new FakeTextEncoder({ firstValue: (text) => (text === 'passage 321' ? 0.1 : undefined) });
  const folder = await bareIndex(t, encoder);
  const summary = await optimizeIndex(folder, kernel!, { ...quietly, float16: true });
  assert.deepEqual(summary, {
    codesMade: 1,
    prefiltersMade: 0,
    prefiltersNotWorthwhile: 1,
    rewritten: 0,
    notRepresentable: 1,
    lexicalMade: 0,
    columnsMade: 0,
  });
  assert.equal(shardManifest(folder).vectors[0]!.dtype, 'float32');
  assert.deepEqual(readdirSync(join(folder, SHARD)).sort(), [
    'codes.i8',
    'passages.sqlite',
    'shard.json',
    'vectors.faiss',
  ]);
});

test('after a stop at any step the index is intact, and the next run completes it', { skip }, async (t) => {
  const folder = await bareIndex(t);
  const before = await search(folder);
  for (const step of ['codes', 'float16']) {
    const stop = new AbortController();
    const stopped = optimizeIndex(folder, kernel!, {
      float16: true,
      onStep: (doing) => doing.startsWith(step) && stop.abort(),
      signal: stop.signal,
    });
    await assert.rejects(stopped, trawlError('CANCELLED'));
    assert.equal(shardManifest(folder).vectors[0]!.dtype, 'float32');
    assert.deepEqual(
      readdirSync(join(folder, SHARD)).filter((name) => name.endsWith('.tmp')),
      [],
    );
    assert.deepEqual(await search(folder), before);
  }
  await optimizeIndex(folder, kernel!, { ...quietly, float16: true });
  assert.deepEqual(await search(folder), before);
  assert.deepEqual(await indexProblems(folder), []);
});

test('truncated vectors are refused by name, and nothing is written', { skip }, async (t) => {
  const folder = await bareIndex(t);
  const path = join(folder, SHARD, 'vectors.faiss');
  writeFileSync(path, readFileSync(path).subarray(0, 1000));
  await assert.rejects(optimizeIndex(folder, kernel!, quietly), trawlError('INDEX_FILE_TRUNCATED', /vectors\.faiss/));
  assert.equal(shardManifest(folder).codes, null);
});

test('an open index keeps answering while its files are replaced', { skip }, async (t) => {
  const folder = await bareIndex(t);
  const encoder = new FakeTextEncoder();
  const index = await openEngine(openIndexDirectory(folder).source!);
  t.after(() => index.close());
  const ask = () => index.search({ queries: encoder.vectorOf('a query'), count: 1, k: 20 });
  const before = await ask();
  await optimizeIndex(folder, kernel!, { ...quietly, float16: true });
  const after = await ask();
  assert.deepEqual([after.rows, after.scores], [before.rows, before.scores]);
});

test('of two concurrent runs one is refused, and an unfinished update beside the index stays', {
  skip,
}, async (t) => {
  const folder = await bareIndex(t);
  const before = await search(folder);
  const partial = `${folder}.partial`;
  const both = await Promise.allSettled(
    [1, 2].map(() => optimizeIndex(folder, kernel!, { ...quietly, float16: true })),
  );
  const refused = both
    .filter((end) => end.status === 'rejected')
    .map(({ reason }) => (reason as { code: string }).code);
  assert.deepEqual(refused, ['BUILD_LOCKED']);
  assert.deepEqual(await search(folder), before);
  assert.deepEqual(await indexProblems(folder), []);
  assert.equal(existsSync(partial), false);
  mkdirSync(partial);
  writeFileSync(join(partial, 'build.json'), '{}');
  await optimizeIndex(folder, kernel!, quietly);
  assert.equal(readFileSync(join(partial, 'build.json'), 'utf8'), '{}');
});

test('files of a killed run are removed by the next', { skip }, async (t) => {
  const folder = await bareIndex(t);
  await optimizeIndex(folder, kernel!, { ...quietly, float16: true });
  const files = readdirSync(join(folder, SHARD)).sort();
  for (const name of ['vectors.faiss', 'codes.i8.tmp', 'vectors.f16.faiss.tmp']) {
    writeFileSync(join(folder, SHARD, name), 'left');
  }
  await optimizeIndex(folder, kernel!, quietly);
  assert.deepEqual(readdirSync(join(folder, SHARD)).sort(), files);
});
