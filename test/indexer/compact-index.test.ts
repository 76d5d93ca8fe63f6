import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { compactIndex } from '../../indexer/update/compact-index.ts';
import { removePassages } from '../../indexer/update/remove-passages.ts';
import { readIndexManifest } from '../../src/index/manifest/read-manifest.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { damagePages } from '../index/passages/passage-files.ts';
import { indexProblems } from './index-problems.ts';
import { filesOf, searchIndex } from './update.ts';
import { indexed, kernel, row, rows, skip, withoutRow } from './updated-index.ts';

test('compaction leaves out deleted rows, and searches find the same', { skip }, async (t) => {
  const { out, to } = await indexed(t, rows(...Array.from({ length: 12 }, (_, i) => i)), { shardRows: 4 });
  // The first shard loses some rows, the second all, the third none; a fourth is added.
  await to(rows(0, 3, 8, 9, 10, 11, 20, 21));
  const before = await searchIndex(out, 'any', 100);
  const { manifest: old } = openIndexDirectory(out);
  const files = filesOf(out);
  const step = { onStep: () => undefined };
  const { compacted, dropped, manifest } = await compactIndex(out, kernel, step);
  assert.deepEqual([compacted, dropped, manifest.rows, manifest.tombstones], [1, 6, 8, null]);
  assert.deepEqual(
    manifest.shards.map(({ path, firstRow, rows: count }) => [path, firstRow, count]),
    [
      ['shard-00004', 0, 2],
      ['shard-00002', 2, 4],
      ['shard-00003', 6, 2],
    ],
  );
  assert.notEqual(manifest.generation, old.generation);
  assert.deepEqual((await searchIndex(out, 'any', 100)).map(withoutRow), before.map(withoutRow));
  assert.deepEqual(await indexProblems(out), []);
  for (const [name, bytes] of files) {
    if (name !== 'manifest.json')
      assert.deepEqual(filesOf(out).get(name), bytes, `${name} stays for servers that have it open`);
  }
  assert.equal(existsSync(`${out}.partial`), false);
  // The second run only removes the old shards.
  assert.equal((await compactIndex(out, kernel, step)).compacted, 0);
  assert.deepEqual(readdirSync(out).sort(), ['manifest.json', 'shard-00002', 'shard-00003', 'shard-00004']);
  assert.deepEqual((await searchIndex(out, 'any', 100)).map(withoutRow), before.map(withoutRow));
  // It can be updated like any other.
  const { kept, added, removed } = await to(rows(0, 3, 8, 30));
  assert.deepEqual([kept, added, removed], [3, 1, 5]);
});

test('a compaction refuses vectors and passages that changed', { skip }, async (t) => {
  // The sign of a value, and the last letter of a passage.
  for (const [name, bit, placeIn] of [
    ['vectors.faiss', 0x80, () => 45 + 4 * 8 * 2 + 3],
    ['passages.sqlite', 1, (bytes: Buffer) => bytes.indexOf('passage 2') + 'passage '.length],
  ] as const) {
    const { out } = await indexed(t, rows(...Array.from({ length: 6 }, (_, i) => i)));
    await removePassages(out, ['1']);
    const { generation } = readIndexManifest(out);
    const path = join(out, 'shard-00000', name);
    const bytes = readFileSync(path);
    const place = placeIn(bytes);
    bytes[place] = bytes[place]! ^ bit;
    writeFileSync(path, bytes);
    const refused = trawlError('INDEX_FILE_FOREIGN', new RegExp(`${name.replace('.', '\\.')}.* restore`, 'i'));
    await assert.rejects(compactIndex(out, kernel, { onStep: () => undefined }), refused, name);
    assert.equal(readIndexManifest(out).generation, generation);
    assert.equal(existsSync(`${out}.partial`), false);
  }
});

test('a compaction of passages with a damaged page names their file, not the index, as what is wrong', {
  skip,
}, async (t) => {
  const long = Array.from({ length: 60 }, (_, id) => row(id, `passage ${id} ${'long '.repeat(500)}`));
  const { out } = await indexed(t, long);
  await removePassages(out, ['1']);
  const { generation } = readIndexManifest(out);
  // A page of the table that opening the index does not read.
  damagePages(join(out, 'shard-00000', 'passages.sqlite'), 25, 26);
  await assert.rejects(
    compactIndex(out, kernel, { onStep: () => undefined }),
    trawlError('INDEX_FILE_FOREIGN', /shard-00000\/passages\.sqlite: cannot be read .* build the file again/),
  );
  assert.equal(readIndexManifest(out).generation, generation);
});

test('a stopped compaction leaves the index unchanged, and the next starts from the beginning', { skip }, async (t) => {
  const { out, to } = await indexed(t, rows(0, 1, 2, 3));
  await to(rows(0, 2));
  const files = filesOf(out);
  await assert.rejects(
    compactIndex(out, kernel, { onStep: () => undefined, signal: AbortSignal.abort() }),
    trawlError('CANCELLED'),
  );
  assert.deepEqual(filesOf(out), files);
  assert.equal(existsSync(`${out}.partial`), false);
  // A killed process leaves its files.
  mkdirSync(join(`${out}.partial`, 'compact', 'shard-00001'), { recursive: true });
  assert.equal((await compactIndex(out, kernel, { onStep: () => undefined })).dropped, 2);
  assert.equal(existsSync(`${out}.partial`), false);
});
