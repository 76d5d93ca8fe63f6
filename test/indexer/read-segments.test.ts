import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readSegments } from '../../indexer/vectors/read-segments.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { trawlError } from '../helpers/trawl-error.ts';

test('a missing or short file is refused before the first row, with the code of an index or of a build', async (t) => {
  const folder = await tempFolder(t);
  const whole = { path: join(folder, 'whole'), offset: 0, bytes: 64, dtype: 'float32' } as const;
  const short = { ...whole, path: join(folder, 'short'), offset: 1 };
  const absent = { ...whole, path: join(folder, 'absent') };
  for (const { path } of [whole, short]) writeFileSync(path, Buffer.alloc(64));
  for (const [last, files, code, advice] of [
    [absent, 'index', 'INDEX_FILE_MISSING', 'Restore the file'],
    [short, 'index', 'INDEX_FILE_TRUNCATED', 'Restore the file'],
    [absent, 'build', 'VECTORS_NOT_FOUND', 'Check the path'],
    [short, 'build', 'VECTORS_INVALID', 'Check the path'],
  ] as const) {
    const blocks = readSegments([whole, last], 4, { files });
    await assert.rejects(blocks.next(), trawlError(code, new RegExp(`^${last.path}: .*\\. ${advice}`)));
  }
  assert.equal((await readSegments([whole], 4).next()).value?.count, 4);
});
