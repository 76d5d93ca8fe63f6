import assert from 'node:assert/strict';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { checkFilesApart } from '../../../evaluation/bulk-search/check-files-apart.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

test('two spellings of a file that cannot be examined are the same file', async (t) => {
  const folder = await tempFolder(t);
  mkdirSync(join(folder, 'real'));
  symlinkSync('real', join(folder, 'link'));
  symlinkSync('circle', join(folder, 'real', 'circle'));
  const outputs = [
    { name: '--out', path: join(folder, 'real', 'circle') },
    { name: '--scores-out', path: join(folder, 'link', 'circle') },
  ];
  assert.throws(
    () => checkFilesApart(outputs, [], []),
    trawlError('USAGE', /--scores-out .* is the same file as --out/),
  );
});
