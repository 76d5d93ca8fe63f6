import assert from 'node:assert/strict';
import { closeSync, existsSync, openSync, readFileSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { optimizeIndex } from '../../indexer/optimize/optimize-index.ts';
import { compactIndex } from '../../indexer/update/compact-index.ts';
import { removePassages } from '../../indexer/update/remove-passages.ts';
import { openVectorFiles } from '../../indexer/vector-files/open-vector-files.ts';
import { checkFits } from '../../indexer/vectors/precomputed-vectors.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { build, writeCorpus } from './build.ts';
import { FakeTextEncoder } from './fake-text-encoder.ts';
import { indexProblems } from './index-problems.ts';
import { filesOf } from './update.ts';
import { fileBytes, writeVectors } from './vector-files/vector-files.ts';

const loaded = loadKernel();
const skip = loaded.ok ? false : `the native engine is not available: ${loaded.reason}`;
const kernel = loaded.ok ? loaded.kernel : undefined;
const quietly = { onStep: () => undefined };

/** A row has 4 KiB, so a few thousand rows are several blocks of a copy. */
const DIMENSION = 1_024;
const ROWS = 8_200;
const ROW_BYTES = 4 * DIMENSION;
const HEADER_BYTES = 128;

/** An index of adopted vectors in two files, cut within a row, the first row of which is deleted. */
async function adoptedIndex(t: TestContext): Promise<{ out: string; files: string[] }> {
  const folder = await tempFolder(t);
  const rows = Array.from({ length: ROWS }, (_, id) => ({ id, contents: `passage ${id}` }));
  const corpus = writeCorpus(folder, { 'corpus.jsonl': rows });
  const values = Float32Array.from({ length: ROWS * DIMENSION }, (_, i) => ((i * 7919) % 251) / 128 - 1);
  const cut = HEADER_BYTES + 5_000 * ROW_BYTES + 6;
  const files = writeVectors(folder, 'emb', Buffer.from(fileBytes('npy', values, DIMENSION)), [cut]);
  const encoder = new FakeTextEncoder({ model: { dimension: DIMENSION, normalize: false } });
  const set = await openVectorFiles(files, { dimension: DIMENSION, dtype: 'float32' });
  const vectors = { set, use: 'adopt' as const, metric: checkFits(set, encoder.identity, undefined) };
  const out = join(folder, 'index');
  await build({ corpus, out, encoder, vectors, kernel });
  await removePassages(out, ['0']);
  return { out, files };
}

/** A byte of the second file with the sign of a value: the changed value is a float16 too, and outside the sample. */
const SIGN = 3_000 * ROW_BYTES + 1;

function flipSign(path: string): void {
  const byte = Buffer.alloc(1);
  const file = openSync(path, 'r');
  readSync(file, byte, 0, 1, SIGN);
  closeSync(file);
  write(path, Buffer.of(byte[0]! ^ 0x80), SIGN);
}

function write(path: string, bytes: Uint8Array, position: number): void {
  const file = openSync(path, 'r+');
  writeSync(file, bytes, 0, bytes.length, position);
  closeSync(file);
}

test('--float16 and compaction copy adopted vectors, and leave their files unchanged', {
  skip,
}, async (t) => {
  const { out, files } = await adoptedIndex(t);
  const before = files.map((path) => readFileSync(path));
  assert.equal((await optimizeIndex(out, kernel!, { ...quietly, float16: true })).rewritten, 1);
  assert.equal(openIndexDirectory(out).shards[0]!.manifest.vectors[0]!.adopted, undefined);
  assert.equal((await compactIndex(out, kernel, quietly)).dropped, 1);
  assert.deepEqual(await indexProblems(out), []);
  for (const [i, path] of files.entries()) assert.ok(readFileSync(path).equals(before[i]!), path);
});

test('adopted vectors that changed are not copied, and the index stays unchanged', { skip }, async (t) => {
  const { out, files } = await adoptedIndex(t);
  const index = filesOf(out);
  const refused = trawlError('INDEX_FILE_FOREIGN', /part_ab: sha256 of bytes 0 to \d+ is .*Restore the file/);
  flipSign(files[1]!);
  await assert.rejects(compactIndex(out, kernel, quietly), refused);
  await assert.rejects(optimizeIndex(out, kernel!, { ...quietly, float16: true }), refused);
  assert.deepEqual(filesOf(out), index);
  assert.equal(existsSync(`${out}.partial`), false);
});

test('a byte that changes while vectors are copied is found too', { skip }, async (t) => {
  const { out, files } = await adoptedIndex(t);
  const index = filesOf(out);
  let changed = false;
  const onRows = (rows: number): void => {
    if (changed) return;
    changed = true;
    // The changed byte is not in a block that was read already.
    assert.ok(rows < 3_000, `${rows} rows in the first block`);
    flipSign(files[1]!);
  };
  await assert.rejects(
    optimizeIndex(out, kernel!, { ...quietly, float16: true, onRows }),
    trawlError('INDEX_FILE_FOREIGN'),
  );
  assert.ok(changed);
  assert.deepEqual(filesOf(out), index);
  flipSign(files[1]!);
  assert.equal((await optimizeIndex(out, kernel!, { ...quietly, float16: true })).rewritten, 1);
});

test('trawl verify names the file that holds a value that is not finite', async (t) => {
  const { out, files } = await adoptedIndex(t);
  write(files[1]!, Buffer.of(0, 0, 0xc0, 0x7f), SIGN - 3);
  assert.match((await indexProblems(out)).join('\n'), /part_ab: row 8000 has NaN in column 1;/);
});
