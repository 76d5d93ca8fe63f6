import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { buildIndex } from '../../indexer/building/build-index.ts';
import { rewriteFloat16 } from '../../indexer/optimize/derived-files.ts';
import { readSegments } from '../../indexer/vectors/read-segments.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import { openEncoder } from '../../src/encoder/open-encoder.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { decodeFlatHeader, flatFileBytes } from '../../src/engine/vectors/faiss-format.ts';
import type { IndexSource } from '../../src/engine/vectors/vector-index.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { normalRows, openForTest, type Rows, writeSource } from '../engine/vectors/index-files.ts';
import { PEERS } from '../helpers/peers.ts';
import { seededNormal } from '../helpers/seeded-random.ts';
import { sharedData, withoutSharedData } from '../helpers/shared-data.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { trawlError } from '../helpers/trawl-error.ts';

interface FaissReply {
  readonly className: string;
  readonly dimension: number;
  readonly rows: number;
  readonly metric: string;
  readonly sha256: string;
  readonly labels: readonly (readonly number[])[];
  readonly scores: readonly (readonly number[])[];
}

/** Neighbouring scores that differ by less may be swapped, because FAISS sums in float32. */
const NEAR = 1e-6;
const E5 = 'flashrag_sample/e5_flat_sample.index';

const skip = PEERS.missing();
const loaded = loadKernel();

function sha256Of(values: Float32Array): string {
  return createHash('sha256')
    .update(new Uint8Array(values.buffer, values.byteOffset, values.byteLength))
    .digest('hex');
}

async function askFaiss(folder: string, path: string, queries: Rows, k: number): Promise<FaissReply> {
  const { buffer, byteOffset, byteLength } = queries.values;
  const file = join(folder, 'queries.f32');
  writeFileSync(file, new Uint8Array(buffer, byteOffset, byteLength));
  return (await PEERS.run('faiss_read.py', { path, queries: file, k })) as FaissReply;
}

interface Agreement {
  /** Ranks at which both have the same row. */
  readonly same: number;
  readonly ranks: number;
}

/**
 * Compares FAISS's reply with Trawl's result rank by rank. Rows whose exact scores differ by at most `near` from their
 * neighbour's may be in another order. Trawl returns one row more, to see a tie at the last rank.
 */
async function compare(
  t: TestContext,
  source: IndexSource,
  queries: Rows,
  reply: FaissReply,
  near: number,
): Promise<Agreement> {
  const count = queries.values.length / queries.dimension;
  const index = await openForTest(t, source);
  const k = reply.labels[0]!.length;
  const result = await index.search({ queries: queries.values, count, k: k + 1 });
  let same = 0;
  for (let q = 0; q < count; q++) {
    const start = q * (k + 1);
    const rows = result.rows.subarray(start, start + result.counts[q]!);
    const scores = result.scores.subarray(start, start + result.counts[q]!);
    const labels = reply.labels[q]!;
    assert.equal(labels.length, Math.min(k, rows.length));
    for (let begin = 0; begin < labels.length; ) {
      let end = begin + 1;
      while (end < rows.length && scores[end - 1]! - scores[end]! <= near) end++;
      const group = new Set(rows.subarray(begin, end));
      for (let rank = begin; rank < Math.min(end, labels.length); rank++) {
        assert.ok(
          group.has(labels[rank]!),
          `query ${q}, rank ${rank}: FAISS has ${labels[rank]}, Trawl has ${rows[rank]}`,
        );
        if (labels[rank] === rows[rank]) same++;
        const score = source.metric === 'l2' ? -reply.scores[q]![rank]! : reply.scores[q]![rank]!;
        assert.ok(Math.abs(score - scores[rank]!) <= 1e-5 * Math.max(1, Math.abs(score)));
      }
      begin = end;
    }
  }
  return { same, ranks: count * Math.min(k, source.rows) };
}

for (const metric of ['inner-product', 'l2'] as const) {
  test(`FAISS reads Trawl’s ${metric} file bit for bit and ranks its rows as Trawl does`, {
    skip,
  }, async (t) => {
    const folder = await tempFolder(t);
    const rows = normalRows(2000, 48, 71);
    rows.values.set([2 ** -149, -0, 0, 2 ** -126, -(2 ** -149)], 0);
    const source = await writeSource(folder, rows, { metric });
    const queries = normalRows(50, 48, 72);
    const reply = await askFaiss(folder, source.shards[0]!.segments[0]!.path, queries, 20);
    assert.deepEqual([reply.dimension, reply.rows, reply.metric], [48, 2000, metric]);
    assert.match(reply.className, /^IndexFlat/);
    assert.equal(reply.sha256, sha256Of(rows.values));
    const { same, ranks } = await compare(t, source, queries, reply, 1e-5);
    t.diagnostic(`${same} of ${ranks} ranks are equal`);
    assert.ok(same > ranks * 0.99);
  });
}

for (const metric of ['inner-product', 'l2'] as const) {
  test(`FAISS reads Trawl’s ${metric} file of float16 rows bit for bit and ranks them as Trawl does`, {
    skip: skip || (loaded.ok ? false : `the native engine is not available: ${loaded.reason}`),
  }, async (t) => {
    assert.ok(loaded.ok);
    const folder = await tempFolder(t);
    const normal = normalRows(1500, 37, 73);
    // Eleven significant bits, so each value is a float16; the largest one and subnormal ones are included.
    const values = normal.values.map((value) => Math.round(value * 256) / 256);
    values.set([2 ** -24, -0, 65_504, 2 ** -14, -3 * 2 ** -24], 0);
    const rows: Rows = { values, dimension: 37 };
    const source = await writeSource(folder, rows, { metric });
    const blocks = readSegments(source.shards[0]!.segments, 37);
    const vectors = { rows: source.rows, dimension: 37, metric, blocks };
    const written = await rewriteFloat16(join(folder, 'vectors.f16.faiss'), vectors, loaded.kernel);
    assert.ok(written !== undefined);
    const queries = normalRows(50, 37, 74);
    const reply = await askFaiss(folder, written.segment.path, queries, 20);
    assert.deepEqual(
      [reply.className, reply.dimension, reply.rows, reply.metric],
      ['IndexScalarQuantizer', 37, 1500, metric],
    );
    assert.equal(reply.sha256, sha256Of(values));
    const { same, ranks } = await compare(t, source, queries, reply, 1e-5);
    t.diagnostic(`${same} of ${ranks} ranks are equal`);
    assert.ok(same > ranks * 0.99);
  });
}

test('FAISS opens the file of an index without rows', { skip }, async (t) => {
  const source = await writeSource(await tempFolder(t), { values: new Float32Array(0), dimension: 7 });
  const reply = (await PEERS.run('faiss_read.py', { path: source.shards[0]!.segments[0]!.path })) as FaissReply;
  assert.deepEqual([reply.dimension, reply.rows], [7, 0]);
});

test('flat files that FAISS writes are read, and its other index types are refused by name', { skip }, async (t) => {
  const folder = await tempFolder(t);
  const types = (await PEERS.run('faiss_write.py', { folder })) as string[];
  const rows = readFileSync(join(folder, 'rows.f32'));
  const refusals: Readonly<Record<string, RegExp>> = {
    'flat-l1': /a FAISS file with a flat index of another metric \(IxFl\)/,
    hnsw: /an HNSW index/,
    'ivf-flat': /an IVF flat index/,
    'ivf-pq': /an IVF-PQ index/,
    pq: /a PQ index/,
    sq: /a scalar-quantiser index/,
    'id-map': /an ID-map index/,
    'id-map-2': /an ID-map index/,
  };
  for (const type of types) {
    const bytes = readFileSync(join(folder, type));
    const decode = (): unknown => decodeFlatHeader(bytes, type);
    if (type === 'flat-empty') assert.deepEqual(decode(), { dimension: 16, rows: 0, metric: 'inner-product' });
    else if (type === 'flat-ip' || type === 'flat-l2') {
      const metric = type === 'flat-ip' ? 'inner-product' : 'l2';
      assert.deepEqual(decode(), { dimension: 16, rows: 700, metric });
      assert.equal(rows.length, 700 * 16 * 4);
      assert.deepEqual(bytes.subarray(45), rows);
    } else assert.throws(decode, trawlError('INDEX_FILE_FOREIGN', refusals[type]!), type);
  }
  assert.equal(types.length, 11);
});

test('for 200 queries near real E5 vectors Trawl ranks as FAISS does, at k = 1000 up to near-ties', {
  skip: skip || withoutSharedData(E5),
}, async (t) => {
  const folder = await tempFolder(t);
  const path = sharedData(E5);
  const bytes = readFileSync(path);
  const header = decodeFlatHeader(bytes, path);
  assert.deepEqual([header.dimension, bytes.length], [768, flatFileBytes(header.rows, 768)]);
  assert.ok(header.rows >= 1000);
  const segments = [{ path, offset: 45, bytes: bytes.length - 45, dtype: 'float32' as const }];
  const source: IndexSource = { ...header, shards: [{ firstRow: 0, rows: header.rows, segments }] };
  const rows = new Float32Array(bytes.buffer.slice(bytes.byteOffset + 45, bytes.byteOffset + bytes.length));
  const normal = seededNormal(20);
  const queries = {
    values: Float32Array.from(
      { length: 200 * 768 },
      (_, i) => rows[5 * 768 * Math.floor(i / 768) + (i % 768)]! + 0.01 * normal(),
    ),
    dimension: 768,
  };

  const ten = await compare(t, source, queries, await askFaiss(folder, path, queries, 10), 0);
  assert.deepEqual(ten, { same: 2000, ranks: 2000 });
  const all = await compare(t, source, queries, await askFaiss(folder, path, queries, 1000), NEAR);
  t.diagnostic(
    `at k = 1000, ${all.ranks - all.same} of ${all.ranks} ranks differ, all among neighbours within ${NEAR}`,
  );
  assert.ok(all.same > all.ranks * 0.99);
});

test('FAISS reads the index of the sample corpus and ranks it as Trawl does', { skip }, async (t) => {
  const folder = await tempFolder(t);
  const encoder = await openEncoder('token-average-256', { workers: 1 });
  t.after(() => encoder.close());
  const built = await buildIndex({
    corpus: [join(packageRoot, 'corpus', 'sample', 'passages.jsonl')],
    corpusOptions: {},
    encoder,
    out: join(folder, 'sample'),
    overwrite: false,
    passageTemplate: '{contents}',
    uniqueIds: true,
    onProgress: () => undefined,
  });
  const { source, manifest } = openIndexDirectory(built.folder);
  assert.ok(source);
  const questions = readFileSync(join(packageRoot, 'corpus', 'sample', 'questions.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as { question: string }).question);
  const { vectors } = await encoder.encode(questions, { inputType: 'query' });
  const queries = { values: vectors, dimension: manifest.dimension };
  const path = source.shards[0]!.segments[0]!.path;
  const reply = await askFaiss(folder, path, queries, 20);
  assert.deepEqual([reply.rows, reply.dimension, reply.metric], [manifest.rows, manifest.dimension, 'inner-product']);
  const bytes = readFileSync(path);
  assert.equal(reply.sha256, createHash('sha256').update(bytes.subarray(45)).digest('hex'));
  const { same, ranks } = await compare(t, source, queries, reply, NEAR);
  t.diagnostic(`${same} of ${ranks} ranks are equal`);
  assert.ok(same > ranks * 0.99);
});
