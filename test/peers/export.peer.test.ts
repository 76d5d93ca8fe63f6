import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { buildIndex } from '../../indexer/building/build-index.ts';
import { exportIndex } from '../../indexer/export/export-index.ts';
import { type PickledArrays, readPickledArrays } from '../../indexer/vector-files/pickled-arrays.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import { openEncoder } from '../../src/encoder/open-encoder.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { openEngine } from '../../src/engine/vectors/open-engine.ts';
import { SegmentReader } from '../../src/engine/vectors/vector-segments.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { readNpy } from '../helpers/npy.ts';
import { PEERS } from '../helpers/peers.ts';
import { sharedData, withoutSharedData } from '../helpers/shared-data.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { build, writeCorpus } from '../indexer/build.ts';
import { FakeTextEncoder } from '../indexer/fake-text-encoder.ts';
import { sha256Of } from '../search/opening/sha256-of.ts';

const skip = PEERS.missing();
const TEVATRON = 'scifact_tevatron_emb/corpus_768_f32.npy';
const IDS = 'scifact_tevatron_emb/corpus_ids.txt';

interface ExportReply {
  readonly className: string;
  readonly rows: number;
  readonly dimension: number;
  readonly faissSha256: string;
  readonly npySha256: string;
  readonly npyDtype: string;
  readonly labels: readonly (readonly number[])[];
}

function sha256OfFloats(values: Float32Array): string {
  return sha256Of(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
}

test('FAISS and numpy read the export of a sharded index with the same rows, and FAISS ranks them as Trawl does', {
  skip,
}, async (t) => {
  const folder = await tempFolder(t);
  const encoder = await openEncoder('token-average-256', { workers: 1 });
  t.after(() => encoder.close());
  const { folder: index } = await buildIndex({
    corpus: [join(packageRoot, 'corpus', 'sample', 'passages.jsonl')],
    corpusOptions: {},
    encoder,
    out: join(folder, 'sample'),
    overwrite: false,
    passageTemplate: '{contents}',
    uniqueIds: true,
    shardRows: 100,
    onProgress: () => undefined,
  });
  const files = { faiss: join(folder, 'a.index'), npy: join(folder, 'a.npy'), corpus: join(folder, 'c.jsonl') };
  await exportIndex({ index, files });
  const questions = readFileSync(join(packageRoot, 'corpus', 'sample', 'questions.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as { question: string }).question);
  const { vectors: queries } = await encoder.encode(questions, { inputType: 'query' });
  const reply = (await PEERS.run('export_read.py', { ...files, queries: [...queries], k: 10 })) as ExportReply;
  const { values, rows: rowCount, columns } = readNpy(files.npy);
  assert.deepEqual([reply.className, reply.rows, reply.dimension], ['IndexFlatIP', rowCount, columns]);
  assert.deepEqual([reply.faissSha256, reply.npySha256], [sha256OfFloats(values), sha256OfFloats(values)]);

  const engine = await openEngine(openIndexDirectory(index).source!);
  t.after(() => engine.close());
  const result = await engine.search({ queries, count: questions.length, k: 10 });
  let same = 0;
  for (const [q, labels] of reply.labels.entries()) {
    const rows = [...result.rows.subarray(10 * q, 10 * q + 10)];
    same += labels.filter((label, rank) => label === rows[rank]).length;
    const missing = labels.filter((label) => !rows.includes(label));
    assert.ok(missing.length <= 1, `query ${q}: FAISS has ${labels.join()}, Trawl has ${rows.join()}`);
  }
  t.diagnostic(`${same} of ${10 * questions.length} ranks are equal`);
  assert.ok(same > 9.9 * questions.length);
  assert.equal(readFileSync(files.corpus, 'utf8').trim().split('\n').length, rowCount);
});

test('FAISS and numpy read the float16 export', {
  skip: skip || (loadKernel().ok ? false : 'the native engine is not available'),
}, async (t) => {
  const folder = await tempFolder(t);
  // Every value of this encoder is n/128, which float16 represents exactly.
  const rows = Array.from({ length: 300 }, (_, id) => ({ id, contents: `text ${id}` }));
  const corpus = writeCorpus(folder, { 'c.jsonl': rows });
  const { folder: index } = await build({ corpus, out: join(folder, 'index'), shardRows: 130 });
  const files = { faiss: join(folder, 'a.index'), npy: join(folder, 'a.npy') };
  await exportIndex({ index, files, float16: true });
  const queries = new FakeTextEncoder().vectorOf('text 5');
  const reply = (await PEERS.run('export_read.py', { ...files, queries: [...queries], k: 3 })) as ExportReply;
  assert.deepEqual([reply.className, reply.rows, reply.npyDtype], ['IndexScalarQuantizer', 300, 'float16']);
  assert.equal(reply.faissSha256, reply.npySha256, 'both widen to the same float32');
});

test("numpy's pickles are read in place: protocols 3 to 5, tevatron's pairs, RAG-R1's appended slices", {
  skip: skip || withoutSharedData(TEVATRON),
}, async (t) => {
  const folder = await tempFolder(t);
  mkdirSync(join(folder, 'p'));
  const written = (await PEERS.run('pickle_write.py', {
    npy: sharedData(TEVATRON),
    ids: sharedData(IDS),
    folder: join(folder, 'p'),
  })) as Record<string, { sha256: string; rows: number; arrays: number; ids: boolean }>;
  const names = readFileSync(sharedData(IDS), 'utf8').trim().split('\n');
  for (const [name, expected] of Object.entries(written)) {
    const path = join(folder, 'p', name);
    if (name.endsWith('-2.pickle')) {
      assert.throws(() => readPickledArrays(path), trawlError('PICKLE_INVALID', /protocol 2/), name);
      continue;
    }
    const found: PickledArrays = readPickledArrays(path);
    assert.equal(found.arrays.length, expected.arrays, name);
    assert.deepEqual(found.ids, expected.ids ? names.slice(0, expected.rows) : undefined, name);
    const { dimension, dtype } = found.arrays[0]!;
    const reader = new SegmentReader(
      found.arrays.map(({ offset, bytes }) => ({ path, offset, bytes, dtype })),
      dimension,
    );
    const values = new Float32Array(reader.rows * dimension);
    reader.read(0, reader.rows, values);
    reader.close();
    assert.equal(reader.rows, expected.rows, name);
    assert.equal(sha256OfFloats(values), expected.sha256, name);
  }
  assert.equal(Object.keys(written).length, 20);
});
