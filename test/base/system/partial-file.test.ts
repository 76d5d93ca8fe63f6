import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { TrawlError } from '../../../src/base/errors.ts';
import { PartialFile } from '../../../src/base/system/partial-file.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';

test('if several runs write the same file at the same time, one succeeds and the others fail with OUTPUT_EXISTS', async (t) => {
  const path = join(await tempFolder(t), 'p.jsonl');
  const created = await Promise.allSettled(Array.from({ length: 8 }, () => PartialFile.create(path, false)));
  const published = [];
  for (const result of created) {
    if (result.status === 'fulfilled') published.push(result.value.publish());
    else assertTakenOver(result.reason);
  }
  const ended = await Promise.allSettled(published);
  for (const result of ended) if (result.status === 'rejected') assertTakenOver(result.reason);
  assert.equal(ended.filter(({ status }) => status === 'fulfilled').length, 1);
});

function assertTakenOver(error: unknown): void {
  assert.ok(error instanceof TrawlError && error.code === 'OUTPUT_EXISTS', String(error));
  assert.match(error.message, /Another run replaced/);
}
