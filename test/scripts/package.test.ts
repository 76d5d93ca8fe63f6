import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { packageRoot } from '../../src/base/package-root.ts';

function npm(...args: readonly string[]) {
  return spawnSync('npm', args, { cwd: packageRoot, encoding: 'utf8', maxBuffer: 1 << 28 });
}

test('the package has the program, its sample and what a compiler needs, and neither tests nor source maps', () => {
  const { stdout, stderr, status } = npm('pack', '--dry-run', '--json', '--ignore-scripts');
  assert.equal(status, 0, stderr);
  const [{ files }] = JSON.parse(stdout) as [{ files: { path: string }[] }];
  const paths = new Set(files.map(({ path }) => path));
  for (const path of [
    'bin/trawl',
    'dist/cli/trawl.js',
    'dist/bundle/main.js',
    'dist/bundle/LICENSES.txt',
    'dist/src/engine/native/load-addon.js',
    'corpus/sample/passages.jsonl',
    'models/token-average-256/trawl-model.json',
    'native/Makefile',
    'native/generated/scan.ptx',
    'native/src/dense/search/search.cpp',
    'scripts/build-native.mjs',
    'scripts/supported-node.mjs',
    'scripts/node-runtime/package-lock.json',
    'src/engine/lexical/analysis/unicode-tables.json',
    'src/server/page/index.html',
    'README.md',
    'LICENSE',
    'CHANGELOG.md',
  ])
    assert.ok(paths.has(path), path);
  const foreign = [...paths].filter((path) => /^dist\/test\/|\.map$|^test\/|^native\/(build|test)\/|\.tgz$/.test(path));
  assert.deepEqual(foreign, []);
});

test('npm pack and npm publish of the checkout refuse, and name the command that makes the package', () => {
  const { status, stderr } = npm('pack', '--dry-run');
  assert.notEqual(status, 0);
  assert.match(stderr, /npm run package/);
});

/** Licences that allow use in programs of any licence, with the text kept. */
const ALLOWED = ['MIT', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'ISC', 'BlueOak-1.0.0', '0BSD'];

test('every package that is installed with Trawl, or copied into its bundle, has a permissive licence', async () => {
  const script = pathToFileURL(join(packageRoot, 'scripts', 'installed-packages.mjs')).href;
  const { installedPackages } = (await import(script)) as {
    installedPackages: () => Record<string, { license?: string }>;
  };
  const installed = Object.entries(installedPackages());
  assert.ok(installed.length > 80);
  assert.deepEqual(
    installed
      .filter(([, { license }]) => !ALLOWED.includes(license ?? 'none'))
      .map(([path, { license }]) => [path, license]),
    [],
  );
});

test('the prebuilt binaries and a compiled one need the same version of Node-API, which every supported Node.js has', () => {
  const list = join(packageRoot, 'prebuilds', 'prebuilds.json');
  const [, version] = /-DNAPI_VERSION=(\d+)/.exec(readFileSync(join(packageRoot, 'native', 'Makefile'), 'utf8'))!;
  assert.equal(Number(version), 8);
  if (existsSync(list)) assert.equal((JSON.parse(readFileSync(list, 'utf8')) as { nodeApi: number }).nodeApi, 8);
});

test('the version is the same in every package of the project', () => {
  const { version } = JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8')) as { version: string };
  assert.match(version, /^\d+\.\d+\.\d+$/);
  for (const file of [
    'clients/python/pyproject.toml',
    'clients/retrieval/pyproject.toml',
    'clients/python/src/trawl_client/__init__.py',
    'clients/retrieval/src/trawl_retrieval/__init__.py',
  ])
    assert.match(
      readFileSync(join(packageRoot, file), 'utf8'),
      new RegExp(`^(__version__|version) = "${version}"$`, 'm'),
      file,
    );
  for (const [file, pattern] of [
    ['deploy/Dockerfile', /trawl:(\d[\w.]*)|^ARG VERSION=(.+)$/gm],
    ['deploy/compose.yaml', /trawl:(\d[\w.]*)|VERSION: ([\w.]+)/g],
    ['deploy/kubernetes/kustomization.yaml', /newTag: (\S+)()/g],
    ['deploy/kubernetes/serve.yaml', /image: \S+trawl:(\S+)()/g],
    ['docs/building.md', /docker build .*trawl:(\S+)() /g],
  ] as const) {
    const found = [...readFileSync(join(packageRoot, file), 'utf8').matchAll(pattern)].map(
      (match) => match[1] ?? match[2],
    );
    assert.ok(found.length > 0, file);
    assert.deepEqual([...new Set(found)], [version], file);
  }
});
