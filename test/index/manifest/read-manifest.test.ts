import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { writeJsonDurably } from '../../../src/base/system/durable-file.ts';
import { readIndexManifest, readShardManifest } from '../../../src/index/manifest/read-manifest.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { validIndexManifest, validShardManifest, writeText } from './manifests.ts';

/** Both manifests follow the same rules. */
const MANIFESTS = [
  { file: 'manifest.json', read: readIndexManifest, valid: validIndexManifest },
  { file: 'shard.json', read: readShardManifest, valid: validShardManifest },
] as const;

/** Changes one field of a valid manifest, writes it and reads it. */
async function readChanged(
  t: TestContext,
  { file, read, valid }: (typeof MANIFESTS)[number],
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

for (const manifest of MANIFESTS) {
  const { file, read, valid } = manifest;

  test(`${file}: reading returns what was written`, async (t) => {
    const folder = await tempFolder(t);
    await writeJsonDurably(join(folder, file), valid());
    assert.deepEqual(read(folder), valid());
  });

  test(`${file}: fields of a later program are ignored, at every depth`, async (t) => {
    for (const path of ['colour', 'model.revision', 'corpus.files.0.license', 'corpus.language']) {
      await readChanged(t, manifest, path, { any: ['thing'] });
    }
  });

  test(`${file}: every field is required`, async (t) => {
    for (const field of Object.keys(valid())) {
      const code =
        field === 'format'
          ? 'INDEX_FILE_FOREIGN'
          : field === 'version'
            ? 'INDEX_VERSION_UNSUPPORTED'
            : 'INDEX_MANIFEST_INVALID';
      await assert.rejects(
        readChanged(t, manifest, field, undefined),
        trawlError(code, new RegExp(`/${file}: .*`)),
        `without ${field}`,
      );
    }
  });

  test(`${file}: a value of the wrong type is refused; the error names file and field`, async (t) => {
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
      ['model.precision', 'bf16'],
      ['model.normalize', 1],
      ['model.prefixes.query', null],
      ['model.maxTokens.passage', 0],
      ['corpus.skippedLines', -1],
      ['corpus.files', {}],
      ['corpus.files.0.sha256', ''],
    ];
    for (const [path, value] of wrong) {
      await assert.rejects(
        readChanged(t, manifest, path, value),
        trawlError('INDEX_MANIFEST_INVALID', new RegExp(`/${file}: /${path.replaceAll('.', '/')} `)),
        `${path}: ${JSON.stringify(value)}`,
      );
    }
  });

  test(`${file}: another version is an error of its own that names both versions`, async (t) => {
    for (const version of [5, 0, '1', 1.5, null]) {
      await assert.rejects(readChanged(t, manifest, 'version', version), (error: Error & { details?: unknown }) => {
        assert.deepEqual(error.details, { found: version, supported: [1, 2, 3, 4] });
        return trawlError(
          'INDEX_VERSION_UNSUPPORTED',
          new RegExp(`/${file}: its version is ${JSON.stringify(version)}.*version 1, 2, 3 and 4`),
        )(error);
      });
    }
  });

  test(`${file}: fields about vectors that contradict the version are refused by name`, async (t) => {
    await assert.rejects(
      readChanged(t, manifest, 'version', 2),
      trawlError('INDEX_MANIFEST_INVALID', /dimension must have no value in version 2/),
    );
    await assert.rejects(
      readChanged(t, manifest, 'version', 3),
      trawlError('INDEX_MANIFEST_INVALID', /model\/endpoint must have a value in version 3/),
    );
    await assert.rejects(
      readChanged(t, manifest, 'model.maxTokens.query', null),
      trawlError('INDEX_MANIFEST_INVALID', /must have values in version 1/),
    );
    for (const [field, value] of [
      ['dimension', 0],
      ['metric', null],
      ['model', null],
    ] as const) {
      await assert.rejects(
        readChanged(t, manifest, field, value),
        trawlError('INDEX_MANIFEST_INVALID', new RegExp(`${field} must have a value in version 1`)),
      );
    }
  });

  test(`${file}: JSON of another format is foreign`, async (t) => {
    for (const text of ['{}', '[]', 'null', '7', '"trawl-index"', '{"format":"trawl-model","version":1}']) {
      const folder = writeText(await tempFolder(t), file, text);
      assert.throws(
        () => read(folder),
        trawlError('INDEX_FILE_FOREIGN', new RegExp(`/${file}: its field "format" is`)),
        text,
      );
    }
  });

  test(`${file}: invalid, truncated or empty JSON is refused`, async (t) => {
    for (const text of ['', '{', JSON.stringify(valid()).slice(0, -1), 'SQLite format 3\0']) {
      const folder = writeText(await tempFolder(t), file, text);
      assert.throws(
        () => read(folder),
        trawlError('INDEX_MANIFEST_INVALID', new RegExp(`/${file}: is not valid JSON`)),
        text,
      );
    }
  });

  test(`${file}: a folder of that name is refused; the error names it`, async (t) => {
    const folder = await tempFolder(t);
    mkdirSync(join(folder, file));
    assert.throws(() => read(folder), trawlError('INDEX_MANIFEST_INVALID', new RegExp(`/${file}: cannot be read`)));
  });
}

test('a folder without manifest.json, a missing folder and a file are no index; the error says how to build one', async (t) => {
  const folder = await tempFolder(t);
  writeText(folder, 'file', '');
  for (const path of [folder, join(folder, 'gone'), join(folder, 'file')]) {
    assert.throws(
      () => readIndexManifest(path),
      trawlError('INDEX_NOT_FOUND', /no index found.*Build one with `trawl index`/),
    );
  }
});

test('a shard folder without shard.json is an error that names the file', async (t) => {
  const folder = await tempFolder(t);
  assert.throws(() => readShardManifest(folder), trawlError('INDEX_FILE_MISSING', /shard\.json is missing/));
});

test('the shards cover the rows of the index without gaps or overlaps', async (t) => {
  const [manifest] = MANIFESTS;
  for (const [path, value, message] of [
    ['shards.2.firstRow', 5, /shard \/elsewhere\/shard starts at row 5, but the previous shard ends at row 4/],
    ['shards.2.firstRow', 3, /starts at row 3, but the previous shard ends at row 4/],
    ['shards.0.firstRow', 1, /starts at row 1, but the previous shard ends at row 0/],
    ['shards.0.rows', 3, /starts at row 4, but the previous shard ends at row 3/],
    ['shards.2.rows', 6, /the shards have 10 rows together, but the index has 9/],
    ['rows', 10, /the shards have 9 rows together, but the index has 10/],
    ['shards', [], /the shards have 0 rows together, but the index has 9/],
    ['shards.1.path', '', /\/shards\/1\/path/],
    ['shards.1.generation', null, /\/shards\/1\/generation/],
  ] as const) {
    await assert.rejects(
      readChanged(t, manifest, path, value),
      trawlError('INDEX_MANIFEST_INVALID', new RegExp(`/manifest\\.json: .*${message.source}`)),
      `${path}: ${JSON.stringify(value)}`,
    );
  }
});

test('tombstones are null or a file with checksum and count', async (t) => {
  await readChanged(t, MANIFESTS[0], 'tombstones', null);
  for (const [path, value] of [
    ['tombstones.rows', undefined],
    ['tombstones.sha256', undefined],
    ['tombstones.bytes', -1],
    ['tombstones', 'file'],
  ] as const) {
    await assert.rejects(
      readChanged(t, MANIFESTS[0], path, value),
      trawlError('INDEX_MANIFEST_INVALID', /tombstones/),
      `${path}: ${value}`,
    );
  }
});

test('the vectors, codes and passages of a shard are validated', async (t) => {
  await readChanged(t, MANIFESTS[1], 'codes', null);
  await readChanged(t, MANIFESTS[1], 'vectors', []);
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
      readChanged(t, MANIFESTS[1], path, value),
      trawlError('INDEX_MANIFEST_INVALID', new RegExp(`/shard\\.json: /${path.split('.')[0]}`)),
      `${path}: ${JSON.stringify(value)}`,
    );
  }
});
