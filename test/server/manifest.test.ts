import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { openRetriever } from '../../src/search/opening/open-retriever.ts';
import { IndexRegistry } from '../../src/server/indexes/index-registry.ts';
import { fileFolder, jsonOf, runTrawl, SAMPLE_PASSAGES } from '../cli/run-trawl.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { build, errorOf } from './build.ts';

const loaded = loadKernel();
const skip = loaded.ok ? false : loaded.reason;

interface Manifest {
  readonly index: { readonly name: string; readonly generation: string };
  readonly corpus: { readonly files: readonly object[]; readonly fileCount: number; readonly passages: number };
  readonly encoder: object | null;
  readonly lastUpdate: string | null;
  readonly writer: string;
  readonly shards: readonly {
    readonly firstRow: number;
    readonly rows: number;
    readonly deletedRows: number;
    readonly dtype: string | null;
    readonly bytes: Readonly<Record<string, number>>;
  }[];
}

test('the manifest of an index has its corpus, its last change, and the rows and sizes of its shards', {
  skip,
}, async (t) => {
  const index = join(await fileFolder(), 'sample');
  const options = ['--model', 'token-average-256', '--bm25', '--shard-rows', '100', '--json'];
  jsonOf(await runTrawl(['index', SAMPLE_PASSAGES, '--out', index, ...options]));
  jsonOf(await runTrawl(['remove', index, 's-0001', '--json']));
  const { sizes, ...record } = jsonOf<{ sizes: Record<string, number>; generation: string; writer: string }>(
    await runTrawl(['inspect', index, '--json']),
  );
  const retriever = await openRetriever(index, { encoderThreads: 1 });
  t.after(() => retriever.close());
  const app = build(t, retriever);
  const reply = await app.inject('/v1/manifest');
  assert.equal(reply.headers['cache-control'], 'no-store');
  const manifest = reply.json<Manifest>();
  assert.deepEqual(manifest.index, { name: 'sample', generation: record.generation });
  assert.deepEqual(manifest.corpus.files, [
    { name: 'passages.jsonl', bytes: statSync(SAMPLE_PASSAGES).size, passages: 270 },
  ]);
  assert.deepEqual([manifest.corpus.fileCount, manifest.corpus.passages], [1, 270]);
  assert.deepEqual(manifest.encoder, { pooling: 'mean', normalize: true, precision: 'int8' });
  assert.deepEqual([manifest.lastUpdate, manifest.writer], ['remove', record.writer]);
  const { shards } = manifest;
  assert.deepEqual(
    shards.map(({ firstRow, rows, deletedRows, dtype }) => [firstRow, rows, deletedRows, dtype]),
    [
      [0, 90, 1, 'float32'],
      [90, 90, 0, 'float32'],
      [180, 90, 0, 'float32'],
    ],
  );
  const sum = (part: string): number => shards.reduce((total, { bytes }) => total + bytes[part]!, 0);
  assert.equal(sum('vectors'), sizes.vectorBytes);
  assert.equal(sum('passages'), sizes.passageBytes);
  assert.equal(sum('codes'), sizes.residentBytes);
  assert.ok(sum('words') > 10_000 && sum('words') <= sizes.wordBytes!);
  assert.deepEqual([sum('prefilter'), sum('columns')], [0, 0]);
});

test('a group and a source without an index folder have no manifest', async (t) => {
  const indexes = ['wiki', 'news'].map((name) => ({ name, folder: name }));
  const open = async (name: string): Promise<FakeRetriever> => new FakeRetriever({ index: name });
  const holder = IndexRegistry.opening(indexes, open, new Map([['both', ['wiki', 'news']]]));
  await holder.open();
  const app = build(t, holder);
  for (const path of ['/v1/manifest', '/indexes/both/v1/manifest']) {
    const reply = await app.inject(path);
    assert.equal(reply.statusCode, 501);
    assert.equal(errorOf(reply.json()).code, 'NOT_SUPPORTED');
  }
});
