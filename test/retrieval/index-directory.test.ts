import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import Database from 'better-sqlite3';
import type { ErrorCode } from '../../src/errors.ts';
import { withChecksum } from '../../src/manifest/manifest-checksum.ts';
import { openIndexDirectory } from '../../src/retrieval/index-directory.ts';
import { encodeFlatHeader } from '../../src/vector-index/faiss-format.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { TINY_ROWS, TINY_TOMBSTONE, writeTinyIndex } from './tiny-index.ts';

/** Every file of the tiny index, with the code of its absence. */
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

test('a whole index is opened with absolute paths and row numbers of the index', async (t) => {
  const folder = await tinyIndex(t);
  const { source, passages, manifest, shards } = openIndexDirectory(folder);
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

test('removed rows are the ones that are not alive', async (t) => {
  const { source } = openIndexDirectory(await tinyIndex(t));
  const dead = Array.from({ length: TINY_ROWS }, (_, row) => row).filter((row) => !source.alive!.has(row));
  assert.deepEqual(dead, [TINY_TOMBSTONE]);
});

test('an index without tombstones has no bitmap', async (t) => {
  const folder = await tinyIndex(t);
  editJson(join(folder, 'manifest.json'), (manifest) => Object.assign(manifest, { tombstones: null }));
  assert.equal('alive' in openIndexDirectory(folder).source, false);
});

test('an index whose files are elsewhere is opened by absolute paths', async (t) => {
  const folder = await tinyIndex(t);
  const elsewhere = join(await tempFolder(t), 'adopted.faiss');
  copyFileSync(join(folder, 'shard-00000/vectors.faiss'), elsewhere);
  rmSync(join(folder, 'shard-00000/vectors.faiss'));
  editJson(join(folder, 'shard-00000/shard.json'), (shard: { vectors: { path: string }[]; files: unknown }) => {
    shard.vectors[0]!.path = elsewhere;
    shard.files = [];
  });
  assert.equal(openIndexDirectory(folder).source.shards[0]!.segments[0]!.path, elsewhere);
  // Not among the recorded files, so its size is known from the segment alone.
  writeFileSync(elsewhere, readFileSync(elsewhere).subarray(0, -1));
  assert.throws(() => openIndexDirectory(folder), trawlError('INDEX_FILE_TRUNCATED', /adopted\.faiss/));
  rmSync(elsewhere);
  assert.throws(() => openIndexDirectory(folder), trawlError('INDEX_FILE_MISSING', /adopted\.faiss/));
});

for (const [file, code] of FILES) {
  test(`without ${file} the index is refused and the file named`, async (t) => {
    const folder = await tinyIndex(t);
    rmSync(join(folder, file));
    assert.throws(() => openIndexDirectory(folder), trawlError(code, named(file)));
  });

  test(`with ${file} cut short the index is refused and the file named`, async (t) => {
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

  test(`with a folder in place of ${file} the index is refused and the path named`, async (t) => {
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

test('a file that grew is refused as well', async (t) => {
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

test('a manifest of another program is foreign, in the index and in a shard', async (t) => {
  for (const file of ['manifest.json', 'shard-00001/shard.json']) {
    const folder = await tinyIndex(t);
    writeFileSync(join(folder, file), '{"name":"an-npm-package","version":"1.0.0"}');
    assert.throws(() => openIndexDirectory(folder), trawlError('INDEX_FILE_FOREIGN', named(file)));
  }
});

test('the manifest of an index is none of a shard, and the other way round', async (t) => {
  const folder = await tinyIndex(t);
  copyFileSync(join(folder, 'manifest.json'), join(folder, 'shard-00000/shard.json'));
  assert.throws(
    () => openIndexDirectory(folder),
    trawlError('INDEX_FILE_FOREIGN', /shard-00000\/shard\.json.*trawl-index/),
  );
  copyFileSync(join(folder, 'shard-00001/shard.json'), join(folder, 'manifest.json'));
  assert.throws(() => openIndexDirectory(folder), trawlError('INDEX_FILE_FOREIGN', /manifest\.json.*trawl-shard/));
});

test('a shard of another index is foreign, and what differs is said', async (t) => {
  const changes: readonly [Record<string, unknown>, RegExp][] = [
    [{ generation: 'f'.repeat(32) }, /generation f{32} where the index names/],
    [{ rows: 4 }, /4 rows where the index names 5/],
    [{ dimension: 16 }, /dimension 16 in an index of 8/],
    [{ metric: 'l2' }, /metric l2 in an index of inner-product/],
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
    trawlError('INDEX_FILE_FOREIGN', /its model \(other-model\) is not that of the index \(no-model\)/),
  );
});

test('an edited field of a model is refused, whichever it is', async (t) => {
  for (const edit of [{ pooling: 'last' }, { architecture: 'other' }, { prefixes: { query: 'q: ', passage: 'x' } }]) {
    const folder = await tinyIndex(t);
    editJson(join(folder, 'manifest.json'), (index: { model: object }) => Object.assign(index.model, edit));
    assert.throws(() => openIndexDirectory(folder), trawlError('INDEX_FILE_FOREIGN', /model/));
  }
});

test('a manifest that was changed after it was written is refused, and says how to accept it', async (t) => {
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

test('a pipe in place of a file is refused, not waited for', async (t) => {
  for (const file of ['shard-00000/vectors.faiss', 'shard-00000/passages.sqlite']) {
    const folder = await tinyIndex(t);
    rmSync(join(folder, file));
    execFileSync('mkfifo', [join(folder, file)]);
    assert.throws(() => openIndexDirectory(folder), trawlError('INDEX_FILE_MISSING', /no regular file/));
  }
});

test('a passage file with fewer passages than vectors is refused', async (t) => {
  const folder = await tinyIndex(t);
  const path = join(folder, 'shard-00001/passages.sqlite');
  const database = new Database(path);
  database.exec('DELETE FROM passages WHERE row = 4; VACUUM');
  database.close();
  assert.throws(() => openIndexDirectory(folder), trawlError('INDEX_FILE_TRUNCATED', /4 passages for 5 vectors/));
});

test('two shards that changed places are refused', async (t) => {
  const folder = await tinyIndex(t);
  copyFileSync(join(folder, 'shard-00001/shard.json'), join(folder, 'shard-00000/shard.json'));
  assert.throws(() => openIndexDirectory(folder), trawlError('INDEX_FILE_FOREIGN', /shard-00000: /));
});

test('the passages of another shard are refused, though they are whole and of our kind', async (t) => {
  const folder = await tinyIndex(t);
  copyFileSync(join(folder, 'shard-00001/passages.sqlite'), join(folder, 'shard-00000/passages.sqlite'));
  assert.throws(
    () => openIndexDirectory(folder),
    trawlError('INDEX_FILE_FOREIGN', /shard-00000\/passages\.sqlite: holds other passages/),
  );
});

test('vectors of the right size that are no FAISS file, or of another shape or metric, are refused', async (t) => {
  const folder = await tinyIndex(t);
  const path = join(folder, 'shard-00000/vectors.faiss');
  const whole = readFileSync(path);
  const withHeader = (header: Uint8Array): Buffer => Buffer.concat([header, whole.subarray(45)]);
  for (const [bytes, message] of [
    [Buffer.alloc(whole.length, 0x20), /begins with/],
    [withHeader(encodeFlatHeader({ rows: 8, dimension: 6, metric: 'inner-product' })), /holds 8 rows of 6/],
    [
      withHeader(encodeFlatHeader({ rows: 6, dimension: 8, metric: 'l2' })),
      /\(l2\), the shard has 6 of 8 \(inner-product\)/,
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
  assert.equal(openIndexDirectory(folder).source.metric, 'cosine');
});

test('segments that are not the rows of the shard are a bad manifest', async (t) => {
  const folder = await tinyIndex(t);
  editJson(join(folder, 'shard-00001/shard.json'), (shard: { vectors: unknown[] }) => shard.vectors.pop());
  assert.throws(() => openIndexDirectory(folder), trawlError('INDEX_MANIFEST_INVALID', /shard-00001: .*78 bytes/));
});

test('tombstones of another number of rows are foreign', async (t) => {
  const folder = await tinyIndex(t);
  writeFileSync(join(folder, 'tombstones.bin'), Buffer.alloc(3));
  editJson(join(folder, 'manifest.json'), (manifest: { tombstones: { bytes: number } }) => {
    manifest.tombstones.bytes = 3;
  });
  assert.throws(
    () => openIndexDirectory(folder),
    trawlError('INDEX_FILE_FOREIGN', /tombstones\.bin: 3 bytes are no bitmap of 11/),
  );
});

test('a version of the future is refused as such in each of its files', async (t) => {
  for (const file of ['manifest.json', 'shard-00000/shard.json']) {
    const folder = await tinyIndex(t);
    editJson(join(folder, file), (json) => Object.assign(json, { version: 99 }));
    assert.throws(() => openIndexDirectory(folder), trawlError('INDEX_VERSION_UNSUPPORTED', named(file)));
  }
});
