import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { packageRoot } from '../../src/package-root.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const { reasonToKeep, SITE_MARKER } = (await import(
  pathToFileURL(join(packageRoot, 'scripts', 'site-folder.mjs')).href
)) as { reasonToKeep: (folder: string) => string | undefined; SITE_MARKER: string };

test('npm run docs refuses a folder with other files before it does anything, and leaves it as it is', async (t) => {
  const folder = await tempFolder(t);
  writeFileSync(join(folder, 'mine.txt'), 'kept');
  const script = join(packageRoot, 'scripts', 'docs.mjs');
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, '--out', '.'], {
    cwd: folder,
    encoding: 'utf8',
  });
  assert.equal(status, 1);
  assert.equal(stdout, '');
  assert.match(stderr, /has files that npm run docs did not make .*--out, or empty this one\.\n$/);
  assert.deepEqual(readdirSync(folder), ['mine.txt']);
  assert.equal(readFileSync(join(folder, 'mine.txt'), 'utf8'), 'kept');
});

test('a site may replace a missing folder, an empty one and an earlier site, and nothing else', async (t) => {
  const folder = await tempFolder(t);
  assert.equal(reasonToKeep(join(folder, 'missing')), undefined);
  const site = join(folder, 'site');
  mkdirSync(site);
  assert.equal(reasonToKeep(site), undefined);
  writeFileSync(join(site, 'index.html'), '');
  assert.match(reasonToKeep(site)!, /did not make/);
  mkdirSync(join(site, SITE_MARKER));
  assert.match(reasonToKeep(site)!, /did not make/, 'a folder of that name is no marker');
  const made = join(folder, 'made');
  mkdirSync(made);
  for (const name of ['index.html', SITE_MARKER]) writeFileSync(join(made, name), '');
  assert.equal(reasonToKeep(made), undefined);
  assert.match(reasonToKeep(join(made, 'index.html'))!, /is not a folder/);
  symlinkSync(made, join(folder, 'link'));
  assert.match(reasonToKeep(join(folder, 'link'))!, /is not a folder/);
});
