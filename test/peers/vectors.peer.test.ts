import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openVectorFiles } from '../../indexer/vector-files/open-vector-files.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { openEngine } from '../../src/engine/vectors/open-engine.ts';
import { SegmentReader } from '../../src/engine/vectors/vector-segments.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { PEERS } from '../helpers/peers.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { build, writeCorpus } from '../indexer/build.ts';
import { indexProblems } from '../indexer/index-problems.ts';
import { encoder } from '../indexer/precomputed-vectors.ts';

const skip = PEERS.missing();
const loaded = loadKernel();

test('files that faiss and numpy write are adopted row for row, and unsupported ones are refused', {
  skip,
}, async (t) => {
  const folder = await tempFolder(t);
  await PEERS.run('vectors_write.py', { folder });
  const rows = readFileSync(join(folder, 'rows.f32'));
  const expected = new Float32Array(rows.buffer.slice(rows.byteOffset, rows.byteOffset + rows.length));
  const corpus = writeCorpus(folder, {
    'corpus.jsonl': Array.from({ length: 500 }, (_, id) => ({ id, contents: `passage ${id}` })),
  });
  const found: unknown[] = [];
  const files = [
    'flat-ip.index',
    'sq-fp16.index',
    'f4.npy',
    'f2.npy',
    'f4-v2.npy',
    'f4-v3.npy',
    'emb_e5.memmap',
  ].concat(['id-map.index', 'id-map-2.index', 'one.npz', 'named.npz', 'embeddings.jsonl', 'dpr_0', 'rows.fvecs']);
  for (const name of files) {
    const path = join(folder, name);
    const workingFile = join(folder, `rows of ${name}`);
    const set = await openVectorFiles([path], { dimension: 8, workingFile });
    const reader = new SegmentReader(set.segments, 8);
    const read = new Float32Array(expected.length);
    reader.read(0, 500, read);
    reader.close();
    assert.deepEqual(read, expected, name);
    const out = join(folder, `${name}-adopted`);
    await build({
      corpus,
      out,
      vectors: { set, use: set.isCopied ? 'copy' : 'adopt', metric: 'inner-product' },
      shardRows: 150,
      kernel: loaded.ok ? loaded.kernel : undefined,
    });
    assert.deepEqual(await indexProblems(out), [], name);
    const engine = await openEngine(openIndexDirectory(out).source!);
    const { rows: hits, scores } = await engine.search({ queries: encoder.vectorOf('a query'), count: 1, k: 20 });
    await engine.close();
    found.push([[...hits], [...scores]]);
  }
  for (const hits of found) assert.deepEqual(hits, found[0]);
  const l2 = await openVectorFiles([join(folder, 'flat-l2.index')], { dimension: 8 });
  assert.deepEqual([l2.metric, l2.rows], ['l2', 500]);
  for (const [name, message] of [
    ['f8.npy', /float64/],
    ['big-endian.npy', /big-endian/],
    ['fortran.npy', /Fortran order/],
    ['objects.npy', /Python objects/],
    ['cube.npy', /shape is \(10, 50, 8\)/],
    ['pq.index', /a PQ index.*does not have the exact rows/],
    ['pca.index', /behind a transform.*does not have the exact rows/],
  ] as const) {
    const path = join(folder, name);
    await assert.rejects(openVectorFiles([path], { dimension: 8 }), trawlError('VECTORS_UNSUPPORTED', message));
  }
  const commands: Record<string, string> = {};
  for (const name of ['hnsw', 'ivf', 'refine', 'map-of-hnsw']
    .map((kind) => `${kind}.index`)
    .concat([
      'f8.npy',
      'big-endian.npy',
      'fortran.npy',
      'object-rows.npy',
      'compressed.npz',
      'float64.pkl',
      'chunks.pkl',
      'protocol-2.pkl',
    ])) {
    const path = join(folder, name);
    const error = await openVectorFiles([path], { dimension: 8 }).then(
      () => assert.fail(`${name} was opened`),
      (refusal: Error) => refusal,
    );
    const command = /python -c "(.*?)"/.exec(error.message)?.[1];
    const expression = /(np\.save\(.*\))\./.exec(error.message)?.[1];
    assert.ok(command !== undefined || expression !== undefined, error.message);
    commands[name] =
      command ??
      `import numpy as np; path = ${JSON.stringify(path)}; array = np.load(path) if 'object' not in path and 'npz' not in path else None; ${expression!.replace('save(path', "save('vectors.npy'")}`;
  }
  assert.deepEqual(await PEERS.run('vectors_advice.py', { folder, commands }), [], 'the advice of each message works');
});
