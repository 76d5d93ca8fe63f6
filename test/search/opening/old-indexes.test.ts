import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { verifyIndex } from '../../../indexer/verify/verify-index.ts';
import { packageRoot } from '../../../src/base/package-root.ts';
import type { Filter } from '../../../src/engine/filter/filter.ts';
import { loadKernel } from '../../../src/engine/native/kernel.ts';
import { ReferenceIndex } from '../../../src/engine/reference/reference-index.ts';
import { FlatIndex } from '../../../src/engine/vectors/flat-index.ts';
import { openEngine } from '../../../src/engine/vectors/open-engine.ts';
import type { VectorIndex } from '../../../src/engine/vectors/vector-index.ts';
import { SqlitePassageStore } from '../../../src/index/passages/sqlite-passage-store.ts';
import { openIndexDirectory } from '../../../src/search/opening/index-directory.ts';
import { openIndexEncoder } from '../../../src/search/opening/open-index-encoder.ts';
import { openRetriever } from '../../../src/search/opening/open-retriever.ts';
import type { SearchMode } from '../../../src/search/search-mode.ts';
import { embeddingServer } from '../../helpers/embedding-server.ts';

/** An index of the first manifest version. Every later program must open it and give the same answers. */
const FIXTURE = join(packageRoot, 'test', 'fixtures', 'index-v1');

/**
 * An index made by the commands of version 0.1.0: built from vectors, optimized with float16, updated (which added a float32
 * shard and deleted rows), and one passage removed. `recorded.json` has that version's answers.
 */
const UPDATED_FIXTURE = join(packageRoot, 'test', 'fixtures', 'index-0.1.0');

/** An index of version 0.1.0, whose manifest and file name call the prefilter `screen`. */
const SCREEN_FIXTURE = join(packageRoot, 'test', 'fixtures', 'index-v1-screen');

const loaded = loadKernel();

interface Recorded {
  readonly generation: string;
  readonly documents: readonly string[];
  readonly searches: readonly {
    /** The text of an embedded query. */
    readonly text?: string;
    readonly query: readonly number[];
    readonly rows: readonly number[];
    readonly scores: readonly number[];
  }[];
}

function recordedWith(folder: string): Recorded {
  return JSON.parse(readFileSync(join(folder, 'recorded.json'), 'utf8')) as Recorded;
}

async function assertAnswers(index: VectorIndex, k: number, { searches }: Recorded): Promise<void> {
  const result = await index.search({
    queries: Float32Array.from(searches.flatMap(({ query }) => query)),
    count: searches.length,
    k,
  });
  for (const [q, { rows, scores }] of searches.entries()) {
    assert.deepEqual([...result.rows.subarray(q * k, q * k + result.counts[q]!)], rows);
    assert.deepEqual([...result.scores.subarray(q * k, q * k + result.counts[q]!)], scores);
  }
}

test('every index of an earlier version is in the table of docs/index-format.md, and every release has one', () => {
  const fixtures = readdirSync(join(packageRoot, 'test', 'fixtures')).filter((name) => name.startsWith('index-'));
  const page = readFileSync(join(packageRoot, 'docs', 'index-format.md'), 'utf8');
  const table = page.slice(page.indexOf('### What opens what'));
  const listed = [...table.matchAll(/`(index-[^`]+)`/g)].map(([, name]) => name!);
  assert.deepEqual(listed.sort(), fixtures.sort());
  const changes = readFileSync(join(packageRoot, 'CHANGELOG.md'), 'utf8');
  for (const [, version] of changes.matchAll(/^## (?:v|\[)?(\d+\.\d+\.\d+)/gm))
    assert.match(
      table,
      new RegExp(`^\\| ${version!.replaceAll('.', '\\.')} \\|`, 'm'),
      `no index of ${version} is tested`,
    );
});

test('an index of the first manifest version gives the recorded answers', async (t) => {
  const recorded = recordedWith(FIXTURE);
  const { manifest, source, passages } = openIndexDirectory(FIXTURE);
  assert.ok(source);
  assert.equal(manifest.generation, recorded.generation);
  const index = await ReferenceIndex.open(source);
  t.after(() => index.close());
  await assertAnswers(index, manifest.rows, recorded);
  const store = await SqlitePassageStore.open(passages);
  t.after(() => store.close());
  assert.deepEqual(await store.getMany([...recorded.documents.keys()]), recorded.documents);
});

test('an index with the old name of the prefilter uses it and gives the recorded answers', {
  skip: loaded.ok ? false : `the native engine is not available: ${loaded.reason}`,
}, async (t) => {
  assert.ok(loaded.ok);
  const recorded = recordedWith(SCREEN_FIXTURE);
  const { manifest, source } = openIndexDirectory(SCREEN_FIXTURE);
  assert.ok(source);
  assert.equal(manifest.generation, recorded.generation);
  assert.equal(source.shards[0]!.prefilter, join(SCREEN_FIXTURE, 'shard-00000', 'screen.i8'));
  const index = await FlatIndex.open(source, loaded.kernel);
  t.after(() => index.close());
  assert.equal(index.residentBytes, statSync(source.shards[0]!.prefilter!).size);
  await assertAnswers(index, recorded.searches[0]!.rows.length, recorded);
});

test('an index that version 0.1.0 built, optimized and updated gives the recorded answers', async (t) => {
  const recorded = recordedWith(UPDATED_FIXTURE);
  const { manifest, source, passages } = openIndexDirectory(UPDATED_FIXTURE);
  assert.ok(source);
  assert.deepEqual([manifest.generation, manifest.rows, manifest.tombstones?.rows], [recorded.generation, 42, 4]);
  assert.deepEqual(
    source.shards.map(({ segments }) => segments[0]!.dtype),
    ['float16', 'float32'],
  );
  for (const index of [await openEngine(source), await ReferenceIndex.open(source)]) {
    t.after(() => index.close());
    await assertAnswers(index, manifest.rows, recorded);
  }
  const store = await SqlitePassageStore.open(passages);
  t.after(() => store.close());
  assert.deepEqual(await store.find('title', ['River 1', 'Addition 5'], 3), [[1], [41]]);
});

test('an index of version 0.1.0 answers texts and look-ups without its deleted passages', async (t) => {
  const retriever = await openRetriever(UPDATED_FIXTURE);
  t.after(() => retriever.close());
  const { searches } = recordedWith(UPDATED_FIXTURE);
  const { outcomes } = await retriever.retrieve({ queries: searches.map(({ text }) => text!), k: 1 });
  assert.deepEqual(
    outcomes.map((outcome) => outcome.ok && outcome.hits[0]!.row),
    searches.map(({ rows }) => rows[0]),
  );
  const keys = ['p3', 'p11', 'p20', 'p30', '5', '9007199254740993', 'n5'];
  const { found } = await retriever.find({ by: 'id', keys, limit: 2 });
  assert.deepEqual(
    found.map((passages) => passages.map(({ row }) => row)),
    [[], [], [], [], [5], [7], [41]],
  );
  assert.equal(retriever.info.deletedRows, 4);
});

test('an index of version 0.1.0 verifies, with passages embedded again', async () => {
  const { problems, notChecked, sample } = await verifyIndex(UPDATED_FIXTURE, {
    sample: 8,
    openEncoder: (folder, manifest) => openIndexEncoder(folder, manifest, {}),
  });
  // Without the native engine the codes are not checked.
  assert.deepEqual([problems, loaded.ok ? notChecked : []], [[], []]);
  assert.equal(sample?.passages, 8);
});

/**
 * Indexes of the version after 0.1.0, made before its release: two shards with title and text as inverted indexes, columns, and two
 * passages removed. `recorded.json` has answers by mode, with and without a filter on columns.
 */
const UNRELEASED = {
  words: { version: 2, modes: ['bm25'] },
  vectors: { version: 1, modes: ['dense', 'bm25', 'hybrid'] },
  endpoint: { version: 3, modes: ['dense', 'bm25', 'hybrid'] },
} as const;

interface RecordedSearch {
  readonly query: string;
  readonly mode: SearchMode;
  readonly filter?: Filter;
  readonly rows: readonly number[];
  readonly scores: readonly number[];
}

for (const [name, { version, modes }] of Object.entries(UNRELEASED)) {
  test(`an index of manifest version ${version} with columns and BM25 (${name}) verifies and gives the recorded answers`, async (t) => {
    const folder = join(packageRoot, 'test', 'fixtures', `index-unreleased-${name}`);
    const { generation, searches } = JSON.parse(readFileSync(join(folder, 'recorded.json'), 'utf8')) as {
      generation: string;
      searches: readonly RecordedSearch[];
    };
    const manifest = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8')) as { version: number };
    assert.equal(manifest.version, version);
    const { problems, notChecked } = await verifyIndex(folder);
    assert.deepEqual([problems, loaded.ok ? notChecked : []], [[], []]);

    const model = name === 'endpoint' ? { model: (await embeddingServer(t)).url } : {};
    const retriever = await openRetriever(folder, model);
    t.after(() => retriever.close());
    const { info } = retriever;
    assert.deepEqual([info.generation, info.rows, info.deletedRows, info.modes], [generation, 18, 2, modes]);
    assert.deepEqual(
      info.columns.map((column) => [column.name, column.type]),
      [
        ['year', 'number'],
        ['tag', 'string'],
      ],
    );
    assert.deepEqual([...new Set(searches.map(({ mode }) => mode))], [...modes]);
    assert.ok(searches.some(({ filter }) => filter !== undefined));
    for (const { query, mode, filter, rows, scores } of searches) {
      const { outcomes } = await retriever.retrieve({ queries: [query], k: 5, mode, ...(filter && { filter }) });
      const [outcome] = outcomes;
      assert.ok(outcome?.ok);
      assert.deepEqual(
        outcome.hits.map(({ row }) => row),
        rows,
        `${mode}: ${query}`,
      );
      // The last bits of a query's vector depend on the processor; BM25's scores have the same bits everywhere.
      const tolerance = mode === 'bm25' ? 0 : 1e-5;
      for (const [i, { score }] of outcome.hits.entries()) assert.ok(Math.abs(score - scores[i]!) <= tolerance);
    }
  });
}
