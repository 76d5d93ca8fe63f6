import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { readIndexManifest, readShardManifest } from '../../src/manifest/read-manifest.ts';
import { writeJsonDurably } from '../../src/manifest/write-json.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { validIndexManifest, validShardManifest, writeText } from './manifests.ts';

/** The two manifests, which are read by the same rules. */
const KINDS = [
  { kind: 'index', file: 'manifest.json', read: readIndexManifest, valid: validIndexManifest },
  { kind: 'shard', file: 'shard.json', read: readShardManifest, valid: validShardManifest },
] as const;

/** Writes a manifest after a change and reads it. */
async function readChanged(
  t: TestContext,
  { file, read, valid }: (typeof KINDS)[number],
  path: string,
  value: unknown,
): Promise<unknown> {
  const manifest: unknown = valid();
  const keys = path.split('.');
  let at = manifest as Record<string, unknown>;
  for (const key of keys.slice(0, -1)) at = at[key] as Record<string, unknown>;
  if (value === undefined) delete at[keys.at(-1)!];
  else at[keys.at(-1)!] = value;
  return read(writeText(await tempFolder(t), file, JSON.stringify(manifest)));
}

for (const kind of KINDS) {
  const { file, read, valid } = kind;

  test(`${file}: what is written is read back`, async (t) => {
    const folder = await tempFolder(t);
    await writeJsonDurably(join(folder, file), valid());
    assert.deepEqual(read(folder), valid());
  });

  test(`${file}: fields of a later program are ignored, at every depth`, async (t) => {
    for (const path of ['colour', 'model.revision', 'corpus.files.0.license', 'corpus.language']) {
      await readChanged(t, kind, path, { any: ['thing'] });
    }
  });

  test(`${file}: each field has to be there`, async (t) => {
    for (const field of Object.keys(valid())) {
      const code =
        field === 'format'
          ? 'INDEX_FILE_FOREIGN'
          : field === 'version'
            ? 'INDEX_VERSION_UNSUPPORTED'
            : 'INDEX_MANIFEST_INVALID';
      await assert.rejects(
        readChanged(t, kind, field, undefined),
        trawlError(code, new RegExp(`/${file}: .*`)),
        `without ${field}`,
      );
    }
  });

  test(`${file}: a value of the wrong kind is refused, and the file and the field are named`, async (t) => {
    const wrong: readonly [string, unknown][] = [
      ['rows', -1],
      ['rows', 1.5],
      ['rows', '9'],
      ['rows', null],
      ['dimension', 0],
      ['dimension', true],
      ['metric', 'manhattan'],
      ['generation', 'xyz'],
      ['generation', 'A'.repeat(32)],
      ['model', null],
      ['model', []],
      ['model.name', 5],
      ['model.sha256', 'a'.repeat(63)],
      ['model.pooling', 'max'],
      ['model.precision', 'bfloat16'],
      ['model.normalize', 1],
      ['model.prefixes.query', null],
      ['model.maxTokens.passage', 0],
      ['corpus.skippedLines', -1],
      ['corpus.files', {}],
      ['corpus.files.0.sha256', ''],
    ];
    for (const [path, value] of wrong) {
      await assert.rejects(
        readChanged(t, kind, path, value),
        trawlError('INDEX_MANIFEST_INVALID', new RegExp(`/${file}: /${path.replaceAll('.', '/')} `)),
        `${path}: ${JSON.stringify(value)}`,
      );
    }
  });

  test(`${file}: a later version is told apart from a broken file, with both versions`, async (t) => {
    for (const version of [2, 0, '1', 1.5, null]) {
      await assert.rejects(readChanged(t, kind, 'version', version), (error: Error & { details?: unknown }) => {
        assert.deepEqual(error.details, { found: version, supported: 1 });
        return trawlError(
          'INDEX_VERSION_UNSUPPORTED',
          new RegExp(`/${file}: has version ${JSON.stringify(version)}.*version 1`),
        )(error);
      });
    }
  });

  test(`${file}: JSON of another kind is foreign`, async (t) => {
    for (const text of ['{}', '[]', 'null', '7', '"trawl-index"', '{"format":"trawl-model","version":1}']) {
      const folder = writeText(await tempFolder(t), file, text);
      assert.throws(() => read(folder), trawlError('INDEX_FILE_FOREIGN', new RegExp(`/${file}: has "format"`)), text);
    }
  });

  test(`${file}: text that is no JSON is invalid, cut or empty`, async (t) => {
    for (const text of ['', '{', JSON.stringify(valid()).slice(0, -1), 'SQLite format 3\0']) {
      const folder = writeText(await tempFolder(t), file, text);
      assert.throws(
        () => read(folder),
        trawlError('INDEX_MANIFEST_INVALID', new RegExp(`/${file}: is not valid JSON`)),
        text,
      );
    }
  });

  test(`${file}: a folder in its place is named`, async (t) => {
    const folder = await tempFolder(t);
    mkdirSync(join(folder, file));
    assert.throws(() => read(folder), trawlError('INDEX_MANIFEST_INVALID', new RegExp(`/${file}: cannot be read`)));
  });
}

test('a folder without manifest.json, no folder, and a file are no index, and the way out is named', async (t) => {
  const folder = await tempFolder(t);
  writeText(folder, 'file', '');
  for (const path of [folder, join(folder, 'gone'), join(folder, 'file')]) {
    assert.throws(
      () => readIndexManifest(path),
      trawlError('INDEX_NOT_FOUND', /no index there.*Build one with `trawl index`/),
    );
  }
});

test('a shard folder without shard.json lacks a file', async (t) => {
  const folder = await tempFolder(t);
  assert.throws(() => readShardManifest(folder), trawlError('INDEX_FILE_MISSING', /shard\.json: is missing/));
});

test('shards have to follow each other without gap or overlap and give the rows of the index', async (t) => {
  const kind = KINDS[0];
  for (const [path, value, message] of [
    ['shards.2.firstRow', 5, /shard \/elsewhere\/shard begins at row 5, the one before ends at 4/],
    ['shards.2.firstRow', 3, /begins at row 3, the one before ends at 4/],
    ['shards.0.firstRow', 1, /begins at row 1, the one before ends at 0/],
    ['shards.0.rows', 3, /begins at row 4, the one before ends at 3/],
    ['shards.2.rows', 6, /its shards have 10 rows, the index 9/],
    ['rows', 10, /its shards have 9 rows, the index 10/],
    ['shards', [], /its shards have 0 rows, the index 9/],
    ['shards.1.path', '', /\/shards\/1\/path/],
    ['shards.1.generation', null, /\/shards\/1\/generation/],
  ] as const) {
    await assert.rejects(
      readChanged(t, kind, path, value),
      trawlError('INDEX_MANIFEST_INVALID', new RegExp(`/manifest\\.json: .*${message.source}`)),
      `${path}: ${JSON.stringify(value)}`,
    );
  }
});

test('tombstones are a file with its checksum and count, or null', async (t) => {
  await readChanged(t, KINDS[0], 'tombstones', null);
  for (const [path, value] of [
    ['tombstones.rows', undefined],
    ['tombstones.sha256', undefined],
    ['tombstones.bytes', -1],
    ['tombstones', 'file'],
  ] as const) {
    await assert.rejects(
      readChanged(t, KINDS[0], path, value),
      trawlError('INDEX_MANIFEST_INVALID', /tombstones/),
      `${path}: ${value}`,
    );
  }
});

test('vector segments, codes and passages of a shard are checked', async (t) => {
  await readChanged(t, KINDS[1], 'codes', null);
  await readChanged(t, KINDS[1], 'vectors', []);
  for (const [path, value] of [
    ['vectors.0.offset', -1],
    ['vectors.0.bytes', 1.5],
    ['vectors.1.dtype', 'float64'],
    ['vectors.1.path', ''],
    ['codes', {}],
    ['passages.sha256', 'd'],
    ['files.0.bytes', '75'],
  ] as const) {
    await assert.rejects(
      readChanged(t, KINDS[1], path, value),
      trawlError('INDEX_MANIFEST_INVALID', new RegExp(`/shard\\.json: /${path.split('.')[0]}`)),
      `${path}: ${JSON.stringify(value)}`,
    );
  }
});
