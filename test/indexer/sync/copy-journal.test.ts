import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { CopyJournal } from '../../../indexer/sync/copy-journal.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';

test('a journal that is missing, damaged or cannot be read counts as empty', async (t) => {
  const folder = await tempFolder(t);
  const damaged = join(folder, 'damaged');
  writeFileSync(damaged, '{"path":1}\n{"pa');
  for (const file of [join(folder, 'missing'), damaged, folder]) {
    assert.deepEqual(new CopyJournal(file, folder).files(), [], file);
  }
});
