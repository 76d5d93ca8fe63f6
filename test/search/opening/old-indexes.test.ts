import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { verifyIndex } from '../../../indexer/verify/verify-index.ts';
import { packageRoot } from '../../../src/base/package-root.ts';
import type { Filter } from '../../../src/engine/filter/filter.ts';
import { loadKernel } from '../../../src/engine/native/kernel.ts';
import { openFlatIndex } from '../../../src/engine/vectors/flat-index.ts';
import type { VectorIndex } from '../../../src/engine/vectors/vector-index.ts';
import { openIndexDirectory } from '../../../src/search/opening/index-directory.ts';
import { openRetriever } from '../../../src/search/opening/open-retriever.ts';
import type { SearchMode } from '../../../src/search/search-mode.ts';
import { embeddingServer } from '../../helpers/embedding-server.ts';

/** An index with a prefilter. `recorded.json` has the answers of the engine that made it. */
const PREFILTER_FIXTURE = join(packageRoot, 'test', 'fixtures', 'index-unreleased-prefilter');

const loaded = loadKernel();

interface Recorded {
  readonly generation: string;
  readonly searches: readonly {
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

test('an index with a prefilter uses it and gives the recorded answers', {
  skip: loaded.ok ? false : `the native engine is not available: ${loaded.reason}`,
}, async (t) => {
  assert.ok(loaded.ok);
  const recorded = recordedWith(PREFILTER_FIXTURE);
  const { manifest, source } = openIndexDirectory(PREFILTER_FIXTURE);
  assert.ok(source);
  assert.equal(manifest.generation, recorded.generation);
  assert.equal(source.shards[0]!.prefilter, join(PREFILTER_FIXTURE, 'shard-00000', 'prefilter.i8'));
  const index = await openFlatIndex(source, loaded.kernel);
  t.after(() => index.close());
  assert.equal(index.residentBytes, statSync(source.shards[0]!.prefilter!).size);
  await assertAnswers(index, recorded.searches[0]!.rows.length, recorded);
});

/**
 * Indexes made before the first release: two shards with title and text as inverted indexes, columns, and two
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
