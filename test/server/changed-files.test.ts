import assert from 'node:assert/strict';
import {
  copyFileSync,
  cpSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { bm25Settings } from '../../indexer/lexical/make-lexical.ts';
import { openRowFilters } from '../../src/engine/columns/open-row-filters.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { PassageFile } from '../../src/index/passages/passage-file.ts';
import { AnswerCache } from '../../src/search/layers/answer-cache.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { openRetriever } from '../../src/search/opening/open-retriever.ts';
import type { OpenRetriever } from '../../src/search/retriever.ts';
import { IndexRegistry } from '../../src/server/indexes/index-registry.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { build as buildIndex } from '../indexer/build.ts';
import { corpusAndVectors, encoder, out, precomputed } from '../indexer/precomputed-vectors.ts';
import { build, errorOf, postTo } from './build.ts';
import { withoutWords } from './elasticsearch/elasticsearch-server.ts';

const loaded = loadKernel();
const kernel = loaded.ok ? loaded.kernel : undefined;
const ROWS = 3_000;

/** An index with words, a column and adopted vectors, and a copy of it beside the same vectors. */
async function madeIndex(t: TestContext): Promise<{ readonly index: string; readonly vectors: string }> {
  const made = await corpusAndVectors(t, { rows: ROWS });
  await buildIndex({
    corpus: made.corpus,
    out: out(made),
    vectors: await precomputed(made.paths),
    kernel,
    bm25: bm25Settings({ analyser: 'english', k1: 0.9, b: 0.4, fields: ['contents'] }),
    columns: [{ name: 'id', type: 'number' }],
  });
  return { index: out(made), vectors: made.paths[0]! };
}

async function open(t: TestContext, index: string, name = 'ix'): Promise<OpenRetriever> {
  const answerCache = new AnswerCache(2 ** 20);
  const retriever = await openRetriever(index, { encoder, name, modes: ['hybrid'], answerCache });
  t.after(() => retriever.close());
  return retriever;
}

let searches = 0;
/** A hybrid search with a filter reads every file of the index. No two have the same filter, whose rows are cached. */
function search(retriever: OpenRetriever) {
  const filter = { column: 'id', op: '>=', value: -++searches } as const;
  return retriever.retrieve({ queries: ['passage 7'], k: 3, mode: 'hybrid', filter });
}

/** The files that a server maps or keeps open, by their path in the index. */
function filesOf(index: string): string[] {
  const shard = join(index, 'shard-00000');
  return readdirSync(shard)
    .filter((name) => name !== 'shard.json')
    .map((name) => join(shard, name));
}

test('an index whose file is truncated or written to fails with the name of the file, in every call until it is opened again', {
  skip: withoutWords,
}, async (t) => {
  const { index, vectors } = await madeIndex(t);
  const files = [vectors, ...filesOf(index)];
  assert.deepEqual(files.map((path) => basename(path)).sort(), [
    'codes.i8',
    'column-0.bin',
    'contents.bm25',
    'emb',
    'passages.sqlite',
  ]);
  for (const path of files) {
    const kept = `${path}.kept`;
    copyFileSync(path, kept);
    for (const change of ['half', 'other bytes'] as const) {
      const retriever = await open(t, index);
      const cached = { queries: ['passage 9'], k: 2, mode: 'bm25' } as const;
      await retriever.retrieve(cached);
      await search(retriever);
      if (change === 'other bytes') writeFileSync(path, readFileSync(path).fill(0x41, 4096));
      else truncateSync(path, Math.floor(statSync(path).size / 2));
      const failed = trawlError('FILE_CHANGED', new RegExp(`${basename(path)} .*Reload the index`));
      await assert.rejects(search(retriever), failed, `${basename(path)}: ${change}`);
      assert.ok(failed(retriever.failure));
      await assert.rejects(retriever.retrieve(cached), failed);
      await retriever.close();
      copyFileSync(kept, path);
    }
    const again = await open(t, index);
    await search(again);
    await again.close();
  }
});

test('passages that grow and are then truncated between two reads do not end the process', {
  skip: withoutWords,
}, async (t) => {
  const { index } = await madeIndex(t);
  const path = join(index, 'shard-00000', 'passages.sqlite');
  const file = new PassageFile(path, { isServed: true });
  t.after(() => file.close());
  const text = file.document(4);
  const grown = Buffer.concat([readFileSync(path), Buffer.alloc(2 ** 20)]);
  // SQLite takes the file for one that another process has changed.
  grown[27]!++;
  writeFileSync(path, grown);
  assert.equal(file.document(4), text);
  truncateSync(path, 0);
  try {
    file.document(1);
  } catch (error) {
    assert.ok(trawlError('INDEX_FILE_FOREIGN')(error));
  }
  assert.throws(() => file.requireUnchanged(), trawlError('FILE_CHANGED', /passages\.sqlite has 0 bytes/));
});

test('a sort reads no value of a column whose file was written to', { skip: withoutWords }, async (t) => {
  const { index } = await madeIndex(t);
  const { columns } = openIndexDirectory(index);
  const filters = await openRowFilters(columns, ROWS);
  t.after(() => filters.close());
  const request = { rows: [7, 9], which: 'least' } as const;
  assert.deepEqual(await filters.extremes(0, request), [7, 9]);
  const path = columns[0]!.paths[0]!;
  writeFileSync(path, readFileSync(path).fill(0x3f, 4096));
  await assert.rejects(filters.extremes(0, request), trawlError('FILE_CHANGED', /column-0\.bin was written to/));
});

test('vectors that were written over without a trace in the size and time of their file do not fit their codes', {
  skip: withoutWords,
}, async (t) => {
  const { index, vectors } = await madeIndex(t);
  utimesSync(vectors, 1, 1);
  const retriever = await open(t, index);
  writeFileSync(vectors, readFileSync(vectors).fill(0x3f, 45));
  utimesSync(vectors, 1, 1);
  const dense = retriever.retrieve({ queries: ['passage 7'], k: 3, mode: 'dense' });
  await assert.rejects(dense, trawlError('FILE_CHANGED', /emb does not fit its codes \(.*codes\.i8\) in row \d+/));
});

test('an adopted file may not be replaced or removed; a file of the index may, as updates do', {
  skip: withoutWords,
}, async (t) => {
  const { index, vectors } = await madeIndex(t);
  for (const path of filesOf(index)) {
    const retriever = await open(t, index);
    const before = await search(retriever);
    copyFileSync(path, `${path}.new`);
    rmSync(path);
    assert.deepEqual((await search(retriever)).outcomes, before.outcomes);
    renameSync(`${path}.new`, path);
    assert.deepEqual((await search(retriever)).outcomes, before.outcomes);
  }
  for (const [replace, message] of [
    [() => renameSync(`${vectors}.new`, vectors), /emb is another file than the one that was opened/],
    [() => rmSync(vectors), /emb was removed or renamed/],
  ] as const) {
    const retriever = await open(t, index);
    copyFileSync(vectors, `${vectors}.new`);
    replace();
    await assert.rejects(search(retriever), trawlError('FILE_CHANGED', message));
  }
});

test('a server answers 503 for an index whose file was truncated, without the path, and goes on answering for the others', {
  skip: withoutWords,
}, async (t) => {
  const { index } = await madeIndex(t);
  const other = `${index}-2`;
  cpSync(index, other, { recursive: true });
  const targets = [
    { name: 'a', folder: index },
    { name: 'b', folder: other },
  ];
  const registry = IndexRegistry.opening(targets, (name, { folder }) => open(t, folder, name));
  await registry.open();
  const app = build(t, registry);
  const ask = (name: string) =>
    postTo(app, '/v1/search', { queries: [`passage ${++searches}`], k: 2, index: name, mode: 'dense' });
  assert.equal((await ask('a')).status, 200);
  truncateSync(join(index, 'shard-00000', 'codes.i8'), 100);
  const { status, json, text, headers } = await ask('a');
  assert.deepEqual([status, errorOf(json).code, headers['retry-after'] === undefined], [503, 'FILE_CHANGED', false]);
  assert.ok(!text.includes(index), text);
  assert.equal((await ask('b')).status, 200);
});
