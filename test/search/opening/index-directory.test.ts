import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import Database from 'better-sqlite3';
import { bm25Settings } from '../../../indexer/lexical/make-lexical.ts';
import { optimizeIndex } from '../../../indexer/optimize/optimize-index.ts';
import type { ErrorCode } from '../../../src/base/errors.ts';
import { openLexicalFields } from '../../../src/engine/lexical/open-lexical.ts';
import { encodeFlatHeader } from '../../../src/engine/vectors/faiss-format.ts';
import { readIndexManifest } from '../../../src/index/manifest/read-manifest.ts';
import { withChecksum } from '../../../src/index/manifest/write-manifest.ts';
import { openIndexDirectory, openShard, openUnchanged } from '../../../src/search/opening/index-directory.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { build, writeCorpus } from '../../indexer/build.ts';
import { rows } from '../../indexer/updated-index.ts';
import { TINY_DELETED_ROW, TINY_ROWS, writeTinyIndex } from '../tiny-index.ts';

/** Every file of the tiny index, with the error code when it is missing. */
const FILES: readonly (readonly [string, ErrorCode])[] = [
  ['manifest.json', 'INDEX_NOT_FOUND'],
  ['tombstones.bin', 'INDEX_FILE_MISSING'],
  ['shard-00000/shard.json', 'INDEX_FILE_MISSING'],
  ['shard-00000/vectors.faiss', 'INDEX_FILE_MISSING'],
  ['shard-00000/passages.sqlite', 'INDEX_FILE_MISSING'],
  ['shard-00001/shard.json', 'INDEX_FILE_MISSING'],
  ['shard-00001/part_0', 'INDEX_FILE_MISSING'],
  ['shard-00001/part_1', 'INDEX_FILE_MISSING'],
  ['shard-00001/passages.sqlite', 'INDEX_FILE_MISSING'],
];

async function tinyIndex(t: TestContext): Promise<string> {
  const folder = join(await tempFolder(t), 'tiny');
  await writeTinyIndex(folder);
  return folder;
}

function editJson<Json extends object>(path: string, edit: (json: Json) => void): void {
  const json = JSON.parse(readFileSync(path, 'utf8')) as Json;
  edit(json);
  writeFileSync(path, JSON.stringify(json));
}

function named(path: string): RegExp {
  return new RegExp(path.replaceAll('.', '\\.'));
}

test('a complete index opens with absolute paths and row numbers of the index', async (t) => {
  const folder = await tinyIndex(t);
  const { source, passages, manifest, shards } = openIndexDirectory(folder);
  assert.ok(source);
  assert.equal(manifest.rows, TINY_ROWS);
  assert.deepEqual([source.dimension, source.metric, source.rows], [8, 'inner-product', 11]);
  assert.deepEqual(
    source.shards.map(({ firstRow, rows }) => [firstRow, rows]),
    [
      [0, 6],
      [6, 5],
    ],
  );
  assert.deepEqual(
    source.shards.flatMap(({ segments }) => segments.map(({ path }) => path)),
    ['shard-00000/vectors.faiss', 'shard-00001/part_0', 'shard-00001/part_1'].map((path) => join(folder, path)),
  );
  assert.deepEqual(
    passages.map(({ path, firstRow, rows }) => [path, firstRow, rows]),
    [
      [join(folder, 'shard-00000/passages.sqlite'), 0, 6],
      [join(folder, 'shard-00001/passages.sqlite'), 6, 5],
    ],
  );
  assert.equal(shards[1]!.folder, join(folder, 'shard-00001'));
});

test('deleted rows are not among the live rows', async (t) => {
  const { source } = openIndexDirectory(await tinyIndex(t));
  assert.ok(source);
  const deleted = Array.from({ length: TINY_ROWS }, (_, row) => row).filter((row) => !source.liveRows!.has(row));
  assert.deepEqual(deleted, [TINY_DELETED_ROW]);
});

test('an index without deleted rows has no bitmap', async (t) => {
  const folder = await tinyIndex(t);
  editJson(join(folder, 'manifest.json'), (manifest) => Object.assign(manifest, { tombstones: null }));
  assert.equal(openIndexDirectory(folder).source!.liveRows, undefined);
});

test('an index opens files elsewhere by their absolute paths', async (t) => {
  const folder = await tinyIndex(t);
  const elsewhere = join(await tempFolder(t), 'adopted.faiss');
  copyFileSync(join(folder, 'shard-00000/vectors.faiss'), elsewhere);
  rmSync(join(folder, 'shard-00000/vectors.faiss'));
  editJson(join(folder, 'shard-00000/shard.json'), (shard: { vectors: { path: string }[]; files: unknown }) => {
    shard.vectors[0]!.path = elsewhere;
    shard.files = [];
  });
  assert.equal(openIndexDirectory(folder).source!.shards[0]!.segments[0]!.path, elsewhere);
  // The manifest's list of files lacks it: only the segment gives its size.
  writeFileSync(elsewhere, readFileSync(elsewhere).subarray(0, -1));
  assert.throws(() => openIndexDirectory(folder), trawlError('INDEX_FILE_TRUNCATED', /adopted\.faiss/));
  rmSync(elsewhere);
  assert.throws(() => openIndexDirectory(folder), trawlError('INDEX_FILE_MISSING', /adopted\.faiss/));
});

for (const [file, code] of FILES) {
  test(`an index without ${file} is refused; the error names the file`, async (t) => {
    const folder = await tinyIndex(t);
    rmSync(join(folder, file));
    assert.throws(() => openIndexDirectory(folder), trawlError(code, named(file)));
  });

  test(`an index with a truncated ${file} is refused; the error names the file`, async (t) => {
    const folder = await tinyIndex(t);
    const path = join(folder, file);
    const whole = readFileSync(path);
    const cutCode = file.endsWith('.json') ? 'INDEX_MANIFEST_INVALID' : 'INDEX_FILE_TRUNCATED';
    for (const length of [0, whole.length >> 1, whole.length - 2]) {
      writeFileSync(path, whole.subarray(0, length));
      assert.throws(() => openIndexDirectory(folder), trawlError(cutCode, named(file)), `${length} bytes`);
    }
    writeFileSync(path, whole);
    openIndexDirectory(folder);
  });

  test(`an index with a folder for ${file} is refused; the error names the path`, async (t) => {
    const folder = await tinyIndex(t);
    rmSync(join(folder, file));
    mkdirSync(join(folder, file));
    assert.throws(
      () => openIndexDirectory(folder),
      (error: Error & { code?: string }) => {
        assert.match(error.code!, /^INDEX_/);
        assert.match(error.message, named(file));
        return true;
      },
    );
  });
}

test('a file that has grown is refused', async (t) => {
  for (const file of [
    'tombstones.bin',
    'shard-00000/vectors.faiss',
    'shard-00001/part_1',
    'shard-00001/passages.sqlite',
  ]) {
    const folder = await tinyIndex(t);
    writeFileSync(join(folder, file), Buffer.concat([readFileSync(join(folder, file)), Buffer.alloc(1)]));
    assert.throws(() => openIndexDirectory(folder), trawlError('INDEX_FILE_TRUNCATED', named(file)));
  }
});

test('a manifest of another program is foreign', async (t) => {
  for (const file of ['manifest.json', 'shard-00001/shard.json']) {
    const folder = await tinyIndex(t);
    writeFileSync(join(folder, file), '{"name":"an-npm-package","version":"1.0.0"}');
    assert.throws(() => openIndexDirectory(folder), trawlError('INDEX_FILE_FOREIGN', named(file)));
  }
});

test('the manifests of index and shard do not replace each other', async (t) => {
  const folder = await tinyIndex(t);
  copyFileSync(join(folder, 'manifest.json'), join(folder, 'shard-00000/shard.json'));
  assert.throws(
    () => openIndexDirectory(folder),
    trawlError('INDEX_FILE_FOREIGN', /shard-00000\/shard\.json.*trawl-index/),
  );
  copyFileSync(join(folder, 'shard-00001/shard.json'), join(folder, 'manifest.json'));
  assert.throws(() => openIndexDirectory(folder), trawlError('INDEX_FILE_FOREIGN', /manifest\.json.*trawl-shard/));
});

test('a shard of another index is foreign; the error says what differs', async (t) => {
  const changes: readonly [Record<string, unknown>, RegExp][] = [
    [{ generation: 'f'.repeat(32) }, /generation is f{32}, but the index has/],
    [{ rows: 4 }, /number of rows is 4, but the index has 5/],
    [{ dimension: 16 }, /dimension is 16, but the index has 8/],
    [{ metric: 'l2' }, /metric is l2, but the index has inner-product/],
  ];
  for (const [change, message] of changes) {
    const folder = await tinyIndex(t);
    editJson(join(folder, 'shard-00001/shard.json'), (shard) => Object.assign(shard, change));
    assert.throws(
      () => openIndexDirectory(folder),
      trawlError('INDEX_FILE_FOREIGN', new RegExp(`shard-00001: .*${message.source}`)),
    );
  }
  const folder = await tinyIndex(t);
  editJson(join(folder, 'shard-00001/shard.json'), (shard: { model: Record<string, unknown> }) =>
    Object.assign(shard.model, { name: 'other-model', sha256: 'f'.repeat(64) }),
  );
  assert.throws(
    () => openIndexDirectory(folder),
    trawlError('INDEX_FILE_FOREIGN', /its model \(other-model\) differs from the model of the index \(no-model\)/),
  );
});

test('an edited field of a model is refused', async (t) => {
  for (const edit of [{ pooling: 'last' }, { architecture: 'other' }, { prefixes: { query: 'q: ', passage: 'x' } }]) {
    const folder = await tinyIndex(t);
    editJson(join(folder, 'manifest.json'), (index: { model: object }) => Object.assign(index.model, edit));
    assert.throws(() => openIndexDirectory(folder), trawlError('INDEX_FILE_FOREIGN', /model/));
  }
});

test('a manifest that was changed later is refused; the error says how to accept it', async (t) => {
  for (const file of ['manifest.json', 'shard-00001/shard.json']) {
    const folder = await tinyIndex(t);
    const path = join(folder, file);
    const manifest = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
    writeFileSync(path, JSON.stringify(withChecksum(manifest), null, 2));
    openIndexDirectory(folder);
    editJson(path, (json: Record<string, unknown>) => Object.assign(json, { remark: 'edited' }));
    assert.throws(() => openIndexDirectory(folder), trawlError('INDEX_MANIFEST_INVALID', /checksum.*remove its field/));
    editJson(path, (json: Record<string, unknown>) => {
      delete json.checksum;
    });
    openIndexDirectory(folder);
  }
});

test('a pipe in place of a file is refused without opening it', async (t) => {
  for (const file of ['shard-00000/vectors.faiss', 'shard-00000/passages.sqlite']) {
    const folder = await tinyIndex(t);
    rmSync(join(folder, file));
    execFileSync('mkfifo', [join(folder, file)]);
    assert.throws(() => openIndexDirectory(folder), trawlError('INDEX_FILE_MISSING', /not a regular file/));
  }
});

test('a passage file with fewer passages than vectors is refused', async (t) => {
  const folder = await tinyIndex(t);
  const path = join(folder, 'shard-00001/passages.sqlite');
  const database = new Database(path);
  database.exec('DELETE FROM passages WHERE row = 4; VACUUM');
  database.close();
  assert.throws(
    () => openIndexDirectory(folder),
    trawlError('INDEX_FILE_TRUNCATED', /4 passages, but the shard has 5 vectors/),
  );
});

test('a shard with the manifest of another shard is refused', async (t) => {
  const folder = await tinyIndex(t);
  copyFileSync(join(folder, 'shard-00001/shard.json'), join(folder, 'shard-00000/shard.json'));
  assert.throws(() => openIndexDirectory(folder), trawlError('INDEX_FILE_FOREIGN', /shard-00000: /));
});

test('a valid passage file of another shard is refused', async (t) => {
  const folder = await tinyIndex(t);
  copyFileSync(join(folder, 'shard-00001/passages.sqlite'), join(folder, 'shard-00000/passages.sqlite'));
  assert.throws(
    () => openIndexDirectory(folder),
    trawlError('INDEX_FILE_FOREIGN', /shard-00000\/passages\.sqlite: its content hash is/),
  );
});

test('a vector file of the right size without a FAISS header, or of another shape or metric, is refused', async (t) => {
  const folder = await tinyIndex(t);
  const path = join(folder, 'shard-00000/vectors.faiss');
  const whole = readFileSync(path);
  const withHeader = (header: Uint8Array): Buffer => Buffer.concat([header, whole.subarray(45)]);
  for (const [bytes, message] of [
    [Buffer.alloc(whole.length, 0x20), /begins with/],
    [withHeader(encodeFlatHeader({ rows: 8, dimension: 6, metric: 'inner-product' })), /has 8 rows of dimension 6/],
    [
      withHeader(encodeFlatHeader({ rows: 6, dimension: 8, metric: 'l2' })),
      /\(l2\), but the shard has 6 rows of dimension 8 \(inner-product\)/,
    ],
  ] as const) {
    writeFileSync(path, bytes);
    assert.throws(
      () => openIndexDirectory(folder),
      trawlError('INDEX_FILE_FOREIGN', new RegExp(`shard-00000/vectors\\.faiss: .*${message.source}`)),
    );
  }
});

test('a cosine index keeps its rows in an inner-product file', async (t) => {
  const folder = join(await tempFolder(t), 'cosine');
  await writeTinyIndex(folder, 'cosine');
  assert.equal(openIndexDirectory(folder).source!.metric, 'cosine');
});

test('segments that do not hold the rows of the shard make the manifest invalid', async (t) => {
  const folder = await tinyIndex(t);
  editJson(join(folder, 'shard-00001/shard.json'), (shard: { vectors: unknown[] }) => shard.vectors.pop());
  assert.throws(() => openIndexDirectory(folder), trawlError('INDEX_MANIFEST_INVALID', /shard-00001: .*78 bytes/));
});

test('segments of different types make the manifest invalid', async (t) => {
  const folder = await tinyIndex(t);
  editJson(join(folder, 'shard-00001/shard.json'), ({ vectors }: { vectors: { dtype: string }[] }) => {
    vectors[1]!.dtype = vectors[0]!.dtype === 'float16' ? 'float32' : 'float16';
  });
  assert.throws(
    () => openIndexDirectory(folder),
    trawlError('INDEX_MANIFEST_INVALID', /shard-00001: .*different types/),
  );
});

test('a bitmap of deleted rows of another size is foreign', async (t) => {
  const folder = await tinyIndex(t);
  writeFileSync(join(folder, 'tombstones.bin'), Buffer.alloc(3));
  editJson(join(folder, 'manifest.json'), (manifest: { tombstones: { bytes: number } }) => {
    manifest.tombstones.bytes = 3;
  });
  assert.throws(
    () => openIndexDirectory(folder),
    trawlError('INDEX_FILE_FOREIGN', /tombstones\.bin: has 3 bytes, but a bitmap of 11 rows has 2/),
  );
});

test('a later format version is refused in each file', async (t) => {
  for (const file of ['manifest.json', 'shard-00000/shard.json']) {
    const folder = await tinyIndex(t);
    editJson(join(folder, file), (json) => Object.assign(json, { version: 99 }));
    assert.throws(() => openIndexDirectory(folder), trawlError('INDEX_VERSION_UNSUPPORTED', named(file)));
  }
});

const BM25 = bm25Settings({ analyser: 'english', k1: 0.9, b: 0.4, fields: ['contents'] });

/** An index of words, and a function that makes its inverted indexes with another analyser. */
async function words(t: TestContext) {
  const folder = await tempFolder(t);
  const out = join(folder, 'ix');
  const corpus = writeCorpus(folder, { 'c.jsonl': rows(0, 1, 2, 3) });
  await build({ corpus, out, bm25: BM25, encoder: undefined, shardRows: 2 });
  const optimized = join(folder, 'optimized');
  cpSync(out, optimized, { recursive: true });
  const bm25 = { ...BM25, analyser: 'whitespace' } as const;
  await optimizeIndex(optimized, undefined, { float16: false, onStep: () => undefined, bm25 });
  return {
    out,
    /** Replaces the index by its optimized copy. */
    replace() {
      renameSync(out, join(folder, 'before'));
      renameSync(optimized, out);
    },
  };
}

test('an index that is optimized between the reading of its manifests is read again', async (t) => {
  const { out, replace } = await words(t);
  let calls = 0;
  const analysers = openUnchanged(out, () => {
    const manifest = readIndexManifest(out);
    if (calls++ === 0) replace();
    const shards = manifest.shards.map((entry) => openShard(out, manifest, entry));
    return shards.map((shard) => shard.manifest.bm25!.made.analyser);
  });
  assert.deepEqual(analysers, ['whitespace', 'whitespace']);
  assert.equal(calls, 2);
});

test('an index whose inverted indexes are replaced before they are opened is read again', async (t) => {
  const { out, replace } = await words(t);
  let calls = 0;
  const fields = await openUnchanged(out, () => {
    const { lexical } = openIndexDirectory(out);
    if (calls++ === 0) replace();
    return openLexicalFields(lexical);
  });
  assert.equal(calls, 2);
  // The analyser `english` would have reduced the word to its stem.
  const queries = [{ type: 'term', field: 'contents', term: 'passage' }] as const;
  assert.equal((await fields.search({ queries, k: 1 })).counts[0], 1);
  await fields.close();
});

test('a damaged index is opened twice at most, and an error that is not of its files is not retried', async (t) => {
  const { out } = await words(t);
  const manifest = readIndexManifest(out);
  let calls = 0;
  const open = (): unknown => {
    calls++;
    return openShard(out, { ...manifest, dimension: 3 }, manifest.shards[0]!);
  };
  assert.throws(() => openUnchanged(out, open), trawlError('INDEX_FILE_FOREIGN'));
  assert.equal(calls, 2);
  const wrong = new TypeError('wrong');
  calls = 0;
  const throwing = (): void => {
    calls++;
    throw wrong;
  };
  assert.throws(() => openUnchanged(out, throwing), wrong);
  assert.equal(calls, 1);
  writeFileSync(join(out, 'manifest.json'), '{');
  assert.throws(() => openIndexDirectory(out), trawlError('INDEX_MANIFEST_INVALID'));
});

test('an index that changes whenever it is opened ends with the error', async (t) => {
  const { out } = await words(t);
  let calls = 0;
  const open = (): void => {
    const path = join(out, 'shard-00001', 'shard.json');
    writeFileSync(path, `${readFileSync(path, 'utf8')} `);
    calls++;
    openShard(out, { ...readIndexManifest(out), dimension: 3 }, readIndexManifest(out).shards[0]!);
  };
  assert.throws(() => openUnchanged(out, open), trawlError('INDEX_FILE_FOREIGN'));
  assert.equal(calls, 11);
});
