import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import Database from 'better-sqlite3';
import { parquetReadObjects } from 'hyparquet';
import { openCorpus } from '../../../corpus/open-corpus.ts';
import { type ExportOptions, type ExportSummary, exportIndex } from '../../../indexer/export/export-index.ts';
import { decodeFloat16 } from '../../../src/base/system/float16.ts';
import { loadKernel } from '../../../src/engine/native/kernel.ts';
import { decodeFlatHeader, decodeFp16Header, encodeFlatHeader } from '../../../src/engine/vectors/faiss-format.ts';
import { readIndexManifest, readShardManifest } from '../../../src/index/manifest/read-manifest.ts';
import { withChecksum } from '../../../src/index/manifest/write-manifest.ts';
import { endOf, runTrawl, spawnTrawl } from '../../cli/run-trawl.ts';
import { faultLibrary } from '../../helpers/fault-library.ts';
import { readNpy } from '../../helpers/npy.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { sha256Of } from '../../search/opening/sha256-of.ts';
import {
  TINY_DELETED_ROW,
  TINY_DIMENSION,
  TINY_DOCUMENTS,
  TINY_ROWS,
  tinyRows,
  writeTinyIndex,
} from '../../search/tiny-index.ts';
import { build, writeCorpus } from '../build.ts';
import { FakeTextEncoder } from '../fake-text-encoder.ts';

const loaded = loadKernel();
const TINY_IDS = [
  'a-0',
  '1',
  '9007199254740993',
  '3',
  '123456789012345678901234567890',
  'nul',
  '💧',
  '7',
  '8',
  'a-0',
  '-7',
];
const KEPT = Array.from({ length: TINY_ROWS }, (_, row) => row).filter((row) => row !== TINY_DELETED_ROW);

interface Exported {
  readonly summary: ExportSummary;
  readonly folder: string;
  path(name: string): string;
}

/** Exports the tiny index: 11 rows in two shards, one of them deleted. */
async function exportTiny(
  t: TestContext,
  names: Record<string, string>,
  options: Partial<ExportOptions> = {},
  metric?: 'l2' | 'cosine',
): Promise<Exported> {
  const folder = await tempFolder(t);
  await writeTinyIndex(join(folder, 'index'), metric);
  const path = (name: string): string => join(folder, name);
  const files = Object.fromEntries(Object.entries(names).map(([option, name]) => [option, path(name)]));
  const summary = await exportIndex({ index: join(folder, 'index'), files, ...options });
  return { summary, folder, path };
}

function floatsOf(bytes: Buffer, offset: number): Float32Array {
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset + offset, bytes.byteOffset + bytes.length));
}

function keptRows(): Float32Array {
  const all = tinyRows();
  return Float32Array.from(KEPT.flatMap((row) => [...all.subarray(row * TINY_DIMENSION, (row + 1) * TINY_DIMENSION)]));
}

for (const [metric, fourcc, stored] of [
  [undefined, 'IxFI', 'inner-product'],
  ['l2', 'IxF2', 'l2'],
  ['cosine', 'IxFI', 'inner-product'],
] as const) {
  test(`the rows of all shards are written to one FAISS file and one .npy, metric ${metric ?? 'inner-product'}`, async (t) => {
    const { summary, path } = await exportTiny(t, { faiss: 'a.index', npy: 'a.npy' }, {}, metric);
    const bytes = readFileSync(path('a.index'));
    assert.equal(bytes.toString('latin1', 0, 4), fourcc);
    const header = decodeFlatHeader(bytes, 'a.index');
    assert.deepEqual(header, { dimension: TINY_DIMENSION, rows: TINY_ROWS, metric: stored });
    assert.deepEqual(floatsOf(bytes, 45), tinyRows());
    const matrix = readNpy(path('a.npy'));
    assert.deepEqual([matrix.rows, matrix.columns, matrix.values], [TINY_ROWS, TINY_DIMENSION, tinyRows()]);
    assert.equal((readFileSync(path('a.npy')).readUInt16LE(8) + 10) % 64, 0);
    assert.deepEqual([summary.rows, summary.deletedRows, summary.dtype], [TINY_ROWS, 1, 'float32']);
    for (const file of summary.files) {
      assert.deepEqual([file.bytes, file.sha256], [readFileSync(file.path).length, sha256Of(readFileSync(file.path))]);
    }
  });
}

test('--corpus writes the lines of the corpus in the order of rows, compressed as the extension says', async (t) => {
  for (const name of ['c.jsonl', 'c.jsonl.gz', 'c.jsonl.zst']) {
    const { path } = await exportTiny(t, { corpus: name });
    const documents: string[] = [];
    for await (const { document } of openCorpus([path(name)], {})) documents.push(document);
    assert.deepEqual(documents, TINY_DOCUMENTS, name);
  }
});

test('--ids writes one id a line, or the row number of a row without an id; --row-numbers writes row numbers', async (t) => {
  const { summary, path } = await exportTiny(t, { ids: 'docid', 'row-numbers': 'rows.gz' });
  assert.equal(readFileSync(path('docid'), 'utf8'), TINY_IDS.map((id) => `${id}\n`).join(''));
  assert.equal(gunzipSync(readFileSync(path('rows.gz'))).toString(), '0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n');
  assert.equal(summary.rowsWithoutId, 2);
});

test('--parquet writes id, document and vector of every row', async (t) => {
  const { path } = await exportTiny(t, { parquet: 'a.parquet' });
  const bytes = readFileSync(path('a.parquet'));
  const rows = await parquetReadObjects({
    file: bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length),
  });
  const values = tinyRows();
  assert.deepEqual(
    rows,
    TINY_DOCUMENTS.map((document, row) => ({
      id: row === 7 || row === 8 ? null : TINY_IDS[row],
      document,
      vector: [...values.subarray(row * TINY_DIMENSION, (row + 1) * TINY_DIMENSION)],
    })),
  );
});

test('--drop-removed leaves deleted rows out of every file, and --row-numbers lists the others', async (t) => {
  const names = {
    faiss: 'a.index',
    npy: 'a.npy',
    corpus: 'c.jsonl',
    ids: 'ids',
    'row-numbers': 'rows',
    parquet: 'p.parquet',
  };
  const { summary, path } = await exportTiny(t, names, { dropRemoved: true });
  assert.deepEqual([summary.rows, summary.deletedRows], [TINY_ROWS - 1, 1]);
  const bytes = readFileSync(path('a.index'));
  assert.equal(decodeFlatHeader(bytes, 'a.index').rows, TINY_ROWS - 1);
  assert.deepEqual(floatsOf(bytes, 45), keptRows());
  assert.deepEqual(readNpy(path('a.npy')).values, keptRows());
  assert.equal(readFileSync(path('c.jsonl'), 'utf8'), KEPT.map((row) => `${TINY_DOCUMENTS[row]}\n`).join(''));
  assert.equal(readFileSync(path('rows'), 'utf8'), KEPT.map((row) => `${row}\n`).join(''));
  assert.equal(readFileSync(path('ids'), 'utf8'), KEPT.map((row) => `${TINY_IDS[row]}\n`).join(''));
  const parquet = readFileSync(path('p.parquet'));
  const rows = await parquetReadObjects({
    file: parquet.buffer.slice(parquet.byteOffset, parquet.byteOffset + parquet.length),
    columns: ['document'],
  });
  assert.deepEqual(
    rows.map(({ document }) => document),
    KEPT.map((row) => TINY_DOCUMENTS[row]),
  );
});

test('--float16 writes halves if float16 represents every value exactly, and is refused otherwise', {
  skip: loaded.ok ? false : `the native engine is not available: ${loaded.reason}`,
}, async (t) => {
  const { summary, path } = await exportTiny(t, { faiss: 'a.index', npy: 'a.npy' }, { float16: true });
  const bytes = readFileSync(path('a.index'));
  assert.deepEqual(decodeFp16Header(bytes, 'a.index'), {
    dimension: TINY_DIMENSION,
    rows: TINY_ROWS,
    metric: 'inner-product',
  });
  const values = new Float32Array(TINY_ROWS * TINY_DIMENSION);
  decodeFloat16(bytes.subarray(81), values, values.length);
  assert.deepEqual(values, tinyRows());
  const npy = readFileSync(path('a.npy'));
  assert.match(npy.toString('latin1', 0, 128), /'descr': '<f2'/);
  assert.deepEqual(npy.subarray(npy.readUInt16LE(8) + 10), bytes.subarray(81));
  assert.equal(summary.dtype, 'float16');

  const folder = await tempFolder(t);
  const index = join(folder, 'index');
  const encoder = new FakeTextEncoder({ firstValue: (text) => (text === 'text 6' ? 1.0001 : undefined) });
  const rows = Array.from({ length: 9 }, (_, id) => ({ id, contents: `text ${id}` }));
  await build({ corpus: writeCorpus(folder, { 'c.jsonl': rows }), out: index, encoder, shardRows: 4 });
  const refused = exportIndex({ index, files: { faiss: join(folder, 'a.index') }, float16: true });
  await assert.rejects(
    refused,
    trawlError('NOT_SUPPORTED', /row 6 has 1\.0001\d* in column 0, which float16 cannot represent/),
  );
  assert.deepEqual(readdirSync(folder).sort(), ['c.jsonl', 'index']);
});

test('an output that exists, lies in the index, is given twice or has a wrong extension is refused before writing', async (t) => {
  const folder = await tempFolder(t);
  const index = join(folder, 'index');
  await writeTinyIndex(index);
  const there = join(folder, 'there.index');
  writeFileSync(there, 'mine');
  symlinkSync(index, join(folder, 'link'));
  const refused = async (
    options: Partial<ExportOptions>,
    code: 'USAGE' | 'OUTPUT_EXISTS',
    reason: RegExp,
  ): Promise<void> => {
    await assert.rejects(exportIndex({ index, files: {}, ...options }), trawlError(code, reason));
    assert.deepEqual(readdirSync(folder).sort(), ['index', 'link', 'there.index']);
  };
  const npy = join(folder, 'a.npy');
  await refused({ files: { npy, faiss: there } }, 'OUTPUT_EXISTS', /there\.index already exists.*--overwrite/);
  await refused({ files: {} }, 'USAGE', /No output file given.*--faiss FILE/);
  await refused({ files: { npy, faiss: npy } }, 'USAGE', /the path of two outputs/);
  await refused({ files: { faiss: join(index, 'new.index') } }, 'USAGE', /inside its folder/);
  const vectors = join('shard-00000', 'vectors.faiss');
  await refused({ files: { faiss: join(index, vectors) }, overwrite: true }, 'USAGE', /is a file of the index/);
  await refused(
    { files: { faiss: join(folder, 'link', vectors) }, overwrite: true },
    'USAGE',
    /is a file of the index/,
  );
  await refused({ files: { corpus: join(folder, 'c.tsv') } }, 'USAGE', /--corpus writes JSON Lines: c\.tsv/);
  await refused(
    { files: { ids: join(folder, 'ids') }, float16: true },
    'USAGE',
    /--float16 only applies to --faiss and --npy/,
  );
  await assert.rejects(exportIndex({ index: folder, files: { npy } }), trawlError('INDEX_NOT_FOUND'));
  await exportIndex({ index, files: { faiss: there }, overwrite: true });
  assert.equal(readFileSync(there).toString('latin1', 0, 4), 'IxFI');
});

test('--ids refuses an id with a line break and names the row', async (t) => {
  const folder = await tempFolder(t);
  const index = join(folder, 'index');
  const corpus = writeCorpus(folder, {
    'c.jsonl': [
      { id: 'a', contents: 'x' },
      { id: 'b\nc', contents: 'y' },
    ],
  });
  await build({ corpus, out: index });
  await assert.rejects(
    exportIndex({ index, files: { ids: join(folder, 'ids') } }),
    trawlError('NOT_SUPPORTED', /id of row 1 contains a line break/),
  );
  assert.deepEqual(readdirSync(folder).sort(), ['c.jsonl', 'index']);
});

test('a bitmap with another number of deleted rows than the manifest is refused before writing', async (t) => {
  const folder = await tempFolder(t);
  const index = join(folder, 'index');
  await writeTinyIndex(index);
  const manifest = readIndexManifest(index);
  const path = join(index, 'manifest.json');
  const tombstones = { ...manifest.tombstones!, rows: 2 };
  writeFileSync(path, JSON.stringify(withChecksum({ ...manifest, tombstones })));
  await assert.rejects(
    exportIndex({ index, files: { faiss: join(folder, 'a.index') }, dropRemoved: true }),
    trawlError('INDEX_FILE_FOREIGN', /tombstones\.bin has 1 deleted rows, but the manifest says 2/),
  );
  assert.deepEqual(readdirSync(folder), ['index']);
});

test('an aborted export leaves no file', async (t) => {
  const folder = await tempFolder(t);
  const index = join(folder, 'index');
  await writeTinyIndex(index);
  const controller = new AbortController();
  const stopped = exportIndex({
    index,
    files: { faiss: join(folder, 'a.index'), corpus: join(folder, 'c.jsonl') },
    signal: controller.signal,
    onProgress: () => controller.abort('SIGINT'),
  });
  await assert.rejects(stopped, trawlError('CANCELLED'));
  assert.deepEqual(readdirSync(folder), ['index']);
});

test('an export larger than the free space is refused before writing, and the error names both sizes', async (t) => {
  const folder = await tempFolder(t);
  const index = join(folder, 'index');
  await build({ corpus: writeCorpus(folder, { 'c.jsonl': [{ id: 0, contents: 'x' }] }), out: index });
  // A sparse file takes no space: 8.8 TB of vectors. One passage gets the last row number.
  const rows = 2 ** 38;
  const shard = join(index, 'shard-00000');
  const vectors = join(shard, 'vectors.faiss');
  const bytes = 45 + rows * 8 * 4;
  writeFileSync(vectors, encodeFlatHeader({ rows, dimension: 8, metric: 'inner-product' }));
  try {
    truncateSync(vectors, bytes);
  } catch (error) {
    return t.skip(`the file system cannot have a sparse file of ${bytes} bytes: ${(error as Error).message}`);
  }
  const database = new Database(join(shard, 'passages.sqlite'));
  database.exec(`UPDATE passages SET row = ${rows - 1}`);
  database.close();
  const manifest = readShardManifest(shard);
  const [segment] = manifest.vectors;
  const wide = {
    ...manifest,
    rows,
    vectors: [{ ...segment, bytes: bytes - 45 }],
    files: [{ path: 'vectors.faiss', bytes, sha256: '0'.repeat(64) }],
  };
  writeFileSync(join(shard, 'shard.json'), JSON.stringify(withChecksum(wide)));
  const whole = readIndexManifest(index);
  const shards = whole.shards.map((entry) => ({ ...entry, rows }));
  writeFileSync(join(index, 'manifest.json'), JSON.stringify(withChecksum({ ...whole, rows, shards })));
  const refused = exportIndex({ index, files: { npy: join(folder, 'a.npy') } });
  await assert.rejects(
    refused,
    trawlError('DISK_FULL', /the exported files need 8\.80 TB of disk space, but only \d+.* are free/),
  );
  assert.deepEqual(readdirSync(folder).sort(), ['c.jsonl', 'index']);
});

test('an export to a full disk fails with DISK_FULL, names the file and keeps the existing one', async (t) => {
  const folder = await tempFolder(t);
  const library = faultLibrary(folder);
  if ('missing' in library) return t.skip(library.missing);
  const index = join(folder, 'index');
  await writeTinyIndex(index);
  mkdirSync(join(folder, 'out'));
  const path = join(folder, 'out', 'a.index');
  writeFileSync(path, 'before');
  const env = library.environment({ under: join(folder, 'out'), calls: 'write', at: 2, do: 28 });
  const ended = await endOf(spawnTrawl(['export', index, '--faiss', path, '--overwrite'], { env }));
  assert.equal(ended.code, 1);
  assert.match(ended.stderr, /a\.index: no space left on the disk.*\[DISK_FULL\]/);
  assert.equal(readFileSync(path, 'utf8'), 'before');
  assert.deepEqual(readdirSync(join(folder, 'out')), ['a.index']);
});

test('trawl export prints the files it wrote, the metric, deleted rows and rows without an id', async (t) => {
  const folder = await tempFolder(t);
  const index = join(folder, 'index');
  await writeTinyIndex(index, 'cosine');
  const path = join(folder, 'a.index');
  const ended = await runTrawl(['export', index, '--faiss', path, '--ids', join(folder, 'ids')]);
  assert.equal(ended.code, 0, ended.stderr);
  assert.match(ended.stderr, /a\.index {2}397 B/);
  assert.match(ended.stderr, /ranks by cosine, FAISS by inner product/);
  assert.match(ended.stderr, /1 deleted row included.*--drop-removed/);
  assert.match(ended.stderr, /2 rows without an id/);
  const again = await runTrawl(['export', index, '--faiss', path]);
  assert.deepEqual([again.code, /\[OUTPUT_EXISTS\]/.test(again.stderr)], [1, true]);
  const json = await runTrawl(['export', index, '--npy', join(folder, 'a.npy'), '--json', '--drop-removed']);
  assert.deepEqual([json.code, json.stderr], [0, '']);
  const { files, ...facts } = JSON.parse(json.stdout) as ExportSummary;
  assert.deepEqual(facts, {
    folder: index,
    rows: TINY_ROWS - 1,
    dimension: TINY_DIMENSION,
    metric: 'cosine',
    dtype: 'float32',
    deletedRows: 1,
    rowsWithoutId: null,
  });
  assert.equal(files.length, 1);
  assert.ok(existsSync(files[0]!.path));
});
