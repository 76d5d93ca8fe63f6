import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { packageRoot } from '../../src/package-root.ts';
import { SqlitePassageStore } from '../../src/passages/sqlite-passage-store.ts';
import { openIndexDirectory } from '../../src/retrieval/index-directory.ts';
import { ReferenceIndex } from '../../src/vector-index/reference-index.ts';

/** An index that version 1 wrote. It is kept for ever: every later program has to open it and answer the same. */
const FIXTURE = join(packageRoot, 'test', 'fixtures', 'index-v1');

interface Recorded {
  readonly generation: string;
  readonly documents: readonly string[];
  readonly searches: readonly {
    readonly query: readonly number[];
    readonly rows: readonly number[];
    readonly scores: readonly number[];
  }[];
}

test('an index of format version 1 opens and gives the answers that were recorded with it', async (t) => {
  const recorded = JSON.parse(readFileSync(join(FIXTURE, 'recorded.json'), 'utf8')) as Recorded;
  const { manifest, source, passages } = openIndexDirectory(FIXTURE);
  assert.equal(manifest.generation, recorded.generation);
  const index = await ReferenceIndex.open(source);
  t.after(() => index.close());
  const k = manifest.rows;
  const result = await index.search({
    queries: Float32Array.from(recorded.searches.flatMap(({ query }) => query)),
    count: recorded.searches.length,
    k,
  });
  for (const [q, { rows, scores }] of recorded.searches.entries()) {
    assert.deepEqual([...result.rows.subarray(q * k, q * k + result.counts[q]!)], rows);
    assert.deepEqual([...result.scores.subarray(q * k, q * k + result.counts[q]!)], scores);
  }
  const store = await SqlitePassageStore.open(passages);
  t.after(() => store.close());
  assert.deepEqual(await store.getMany([...recorded.documents.keys()]), recorded.documents);
});
