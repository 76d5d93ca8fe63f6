import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { packageRoot } from '../../src/base/package-root.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const { reasonToKeep, SITE_MARKER } = (await import(
  pathToFileURL(join(packageRoot, 'scripts', 'site-folder.mjs')).href
)) as { reasonToKeep: (folder: string) => string | undefined; SITE_MARKER: string };
const { outsideLoads } = (await import(pathToFileURL(join(packageRoot, 'scripts', 'outside-loads.mjs')).href)) as {
  outsideLoads: (text: string) => string[];
};

test('what a page would load from another host is found, and links, code and files of the site are not', () => {
  const loads = [
    '<img alt="a" src="https://a.example/x.png">',
    "<script src='//b.example/x.js'></script>",
    '<link rel="stylesheet" href="http://c.example/x.css">',
    '<video\nposter = https://d.example/x.png></video>',
    '<style>@import "https://e.example/x.css"; body { background: url( https://f.example/x.png) }</style>',
  ];
  assert.deepEqual(
    outsideLoads(loads.join('\n'))
      .map((address) => address.replace(/.*\/\/(.).*/, '$1'))
      .sort(),
    ['a', 'b', 'c', 'd', 'e', 'f'],
  );
  const own = [
    '<a class="x" href="https://a.example/">a</a>',
    '<img src="docs/search-page.png">',
    '<link rel="stylesheet" href="../site.css">',
    '<code>&lt;img src=&quot;https://a.example/x.png&quot;&gt;</code>',
    '<p>src="https://a.example" is text</p>',
  ];
  assert.deepEqual(outsideLoads(own.join('\n')), []);
});

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
