import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { openCorpus } from '../../corpus/open-corpus.ts';
import { DamagedDataError } from '../../src/base/files/compression.ts';
import { unzstd } from '../../src/base/files/decompress.ts';
import { runs } from '../helpers/runs.ts';
import { seededRandom } from '../helpers/seeded-random.ts';
import { corpusDir, failsWith, readAll } from './corpus-dir.ts';
import { xxh64 } from './xxh64.ts';
import { rawFrame, skippableFrame, zstdFrame } from './zstd-files.ts';

const LINES = Array.from({ length: 20_000 }, (_, i) => `{"id":${i},"text":"passage ${i} ${'ä'.repeat(i % 50)}"}\n`);
const TEXT = LINES.join('');
const DOCUMENTS = LINES.map((line) => line.trim());

async function unpack(...chunks: readonly Buffer[]): Promise<Buffer> {
  const unpacked: Buffer[] = [];
  const source = (async function* () {
    yield* chunks;
  })();
  for await (const chunk of unzstd(source)) unpacked.push(chunk);
  return Buffer.concat(unpacked);
}

test('consecutive frames, also empty and skippable ones, are one file', async (t) => {
  const parts = [LINES.slice(0, 7), [], LINES.slice(7, 15_000), LINES.slice(15_000)].map((part) =>
    zstdFrame(part.join('')),
  );
  const many = Buffer.concat([
    skippableFrame(Buffer.alloc(5000)),
    ...parts.flatMap((part) => [part, skippableFrame(part)]),
  ]);
  const dir = corpusDir(t);
  for (const [name, bytes] of [
    ['one.jsonl.zst', zstdFrame(TEXT, 9)],
    ['many.jsonl.zst', many],
    ['raw.ndjson.zst', rawFrame(Buffer.from(TEXT), { checksum: false })],
  ] as const) {
    assert.deepEqual(
      (await readAll(dir.write(name, bytes))).map(({ document }) => document),
      DOCUMENTS,
      name,
    );
  }
});

test('TSV is decompressed, and checksums and sizes are those of the file on disk', async (t) => {
  const packed = zstdFrame('0\tA   text\n1\tB   text\n');
  const corpus = openCorpus([corpusDir(t).write('c.tsv.zst', packed)]);
  const ids: unknown[] = [];
  for await (const { id } of corpus) ids.push(id);
  assert.deepEqual(ids, [0, 1]);
  assert.equal(corpus.files[0]?.format.name, 'tsv.zst');
  assert.equal(corpus.report.readBytes, packed.length);
});

test('thousands of tiny and empty frames are read', async () => {
  const frames = Array.from({ length: 3000 }, (_, i) => (i % 3 === 0 ? zstdFrame(`${i},`) : rawFrame(Buffer.alloc(0))));
  const skipped = Array.from({ length: 3000 }, () => skippableFrame(Buffer.alloc(0)));
  const expected = Array.from({ length: 1000 }, (_, i) => `${3 * i},`).join('');
  assert.equal((await unpack(Buffer.concat([...frames, ...skipped]))).toString(), expected);
});

test('a chunk may end anywhere, also within the magic number of a frame', async () => {
  const content = Buffer.from(TEXT.slice(0, 300));
  const frames = [zstdFrame(content), skippableFrame(content.subarray(0, 9)), rawFrame(content)];
  const packed = Buffer.concat(frames);
  for (let cut = 0; cut <= packed.length; cut++) {
    const unpacked = await unpack(packed.subarray(0, cut), packed.subarray(cut));
    assert.ok(unpacked.equals(Buffer.concat([content, content])), `cut at byte ${cut}`);
  }
});

test('chunks of any size give the same bytes', async () => {
  const content = Buffer.from(TEXT.slice(0, 3000));
  const packed = Buffer.concat([zstdFrame(content), skippableFrame(content.subarray(0, 9)), rawFrame(content)]);
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 0, max: packed.length }), { maxLength: 20 }), async (cuts) => {
      const places = [0, ...cuts.sort((a, b) => a - b), packed.length];
      const chunks = places.slice(1).map((end, i) => packed.subarray(places[i], end));
      assert.ok((await unpack(...chunks)).equals(Buffer.concat([content, content])));
    }),
    { numRuns: runs(20, 50) },
  );
});

test('truncated zstd is an error even if bad lines are skipped', async (t) => {
  const dir = corpusDir(t);
  const packed = zstdFrame(TEXT);
  for (const end of [5, 9, 100, packed.length >> 1, packed.length - 1]) {
    const file = dir.write('c.jsonl.zst', packed.subarray(0, end));
    await assert.rejects(readAll(file, { skipBadLines: true }), failsWith('CORPUS_BAD_LINE', `${file}:`, 'truncated'));
  }
});

test('a wrong checksum is an error', async (t) => {
  assert.equal(xxh64(Buffer.from('')), 0xef46db3751d8e999n);
  const dir = corpusDir(t);
  const content = Buffer.from(LINES.slice(0, 2000).join(''));
  const packed = rawFrame(content);
  packed[packed.length - 2]! ^= 1;
  await assert.rejects(readAll(dir.write('c.jsonl.zst', packed)), failsWith('CORPUS_BAD_LINE', 'damaged'));
  const altered = rawFrame(content);
  altered[50_000]! ^= 1;
  await assert.rejects(readAll(dir.write('c.jsonl.zst', altered)), failsWith('CORPUS_BAD_LINE', 'c.jsonl.zst:'));
});

test('data after the last zstd frame or gzip member is an error', async (t) => {
  const { gzipSync } = await import('node:zlib');
  const dir = corpusDir(t);
  for (const [name, packed] of [
    ['c.jsonl.zst', zstdFrame('{"text":"t"}\n')],
    ['c.jsonl.gz', gzipSync('{"text":"t"}\n')],
  ] as const) {
    for (const rest of ['garbage', '\n', 'x'.repeat(300_000)]) {
      const file = dir.write(name, Buffer.concat([packed, Buffer.from(rest)]));
      await assert.rejects(readAll(file, { skipBadLines: true }), failsWith('CORPUS_BAD_LINE', `${file}:`));
    }
  }
  const second = gzipSync('{"text":"u"}\n');
  second[1] = 0;
  const damaged = dir.write('d.jsonl.gz', Buffer.concat([gzipSync('{"text":"t"}\n'), second]));
  await assert.rejects(readAll(damaged), failsWith('CORPUS_BAD_LINE', 'gzip -t'));
  const padded = dir.write('e.jsonl.gz', Buffer.concat([gzipSync('{"text":"t"}\n'), Buffer.alloc(1000)]));
  assert.equal((await readAll(padded)).length, 1, 'zeros are padding');
});

test('a window of 128 MiB is read; the error for a larger one advises to compress again', async (t) => {
  const dir = corpusDir(t);
  const content = Buffer.from('{"text":"t"}\n');
  // The upper five bits of the descriptor are the exponent less 10 (RFC 8878, 3.1.1.1.2).
  assert.equal((await readAll(dir.write('a.jsonl.zst', rawFrame(content, { window: (27 - 10) << 3 })))).length, 1);
  for (const exponent of [28, 31, 41]) {
    const file = dir.write('b.jsonl.zst', rawFrame(content, { window: (exponent - 10) << 3 }));
    await assert.rejects(readAll(file), failsWith('CORPUS_BAD_LINE', '128 MiB', '--long'));
  }
});

test('plain text named .zst, and zstd named as plain text, are refused', async (t) => {
  const dir = corpusDir(t);
  const plain = dir.write('a.jsonl.zst', '{"text":"t"}\n');
  await assert.rejects(readAll(plain), failsWith('CORPUS_FORMAT_UNKNOWN', 'should be zstd'));
  await assert.rejects(readAll(dir.write('b.jsonl.zst', '')), failsWith('CORPUS_FORMAT_UNKNOWN', 'should be zstd'));
  const packed = dir.write('c.jsonl', zstdFrame('{"text":"t"}\n'));
  await assert.rejects(readAll(packed), failsWith('CORPUS_FORMAT_UNKNOWN', 'is zstd', 'jsonl.zst'));
  assert.equal((await readAll(packed, { format: 'jsonl.zst' })).length, 1);
});

test('any altered byte gives an error or other bytes, and never an endless loop', async () => {
  const random = seededRandom(6);
  const content = Buffer.from(TEXT.slice(0, 6000));
  const packed = Buffer.concat([zstdFrame(content), rawFrame(content)]);
  let errors = 0;
  for (let round = 0; round < 150; round++) {
    const damaged = Buffer.from(packed);
    damaged[Math.floor(random() * packed.length)]! ^= 1 << Math.floor(random() * 8);
    try {
      await unpack(damaged);
    } catch (error) {
      assert.ok(error instanceof DamagedDataError, String(error));
      errors += 1;
    }
  }
  // The checksum of the raw frame, half of the bytes, finds every change.
  assert.ok(errors > 75, `${errors} of 150`);
});
