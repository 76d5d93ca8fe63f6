import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { importOptional } from '../../../src/base/system/optional-package.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';

test('a package is imported from beside Trawl', async () => {
  const [loaded] = await importOptional(['fast-check@4'], 'This test needs fast-check');
  assert.equal(typeof (loaded as { assert: unknown }).assert, 'function');
});

test('a package of the current folder is imported, and a missing one is refused with the commands', async (t) => {
  const folder = await tempFolder(t);
  const before = process.cwd();
  t.after(() => process.chdir(before));
  process.chdir(folder);
  const missing = importOptional(['no-such-package@3', '@no/such'], 'The test needs two packages');
  await assert.rejects(missing, {
    code: 'PACKAGE_MISSING',
    message:
      /^The test needs two packages, which are not installed .*`npm install -g no-such-package@3 @no\/such` \(in Trawl's image as root, with `--prefix \/opt\/trawl`\), .*`npm install no-such-package@3 @no\/such`/,
  });
  await mkdir(join(folder, 'node_modules', 'no-such-package'), { recursive: true });
  await writeFile(join(folder, 'node_modules', 'no-such-package', 'index.js'), 'exports.found = true;');
  const [loaded] = await importOptional(['no-such-package@3'], 'The test needs it');
  assert.equal((loaded as { found: boolean }).found, true);
});

test('a package that is there but broken keeps its own error', async (t) => {
  const folder = await tempFolder(t);
  const before = process.cwd();
  t.after(() => process.chdir(before));
  process.chdir(folder);
  await mkdir(join(folder, 'node_modules', 'broken-package'), { recursive: true });
  await writeFile(join(folder, 'node_modules', 'broken-package', 'index.js'), 'throw new RangeError("broken");');
  await assert.rejects(importOptional(['broken-package'], 'The test needs it'), RangeError);
});
