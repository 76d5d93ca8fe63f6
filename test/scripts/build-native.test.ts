import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { packageRoot } from '../../src/base/package-root.ts';
import { checkout, run } from './checkout.ts';
import { writeProgram } from './old-nodes.ts';

const native = join(packageRoot, 'native');

/** The command with which make compiles a source of the addon. */
function compileCommand(source: string): string {
  const args = ['--dry-run', '--always-make', 'addon'];
  const { stdout, stderr, status } = spawnSync('make', args, { cwd: native, encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  const command = stdout.split('\n').find((line) => line.includes(` -c ${source} `));
  assert.ok(command, stdout);
  return command.replace(/ -o .*$/, '');
}

const withoutCompiler =
  spawnSync('sh', ['-c', 'command -v make && command -v g++']).status === 0 ? false : 'make and g++ are not installed';

test('the addon is compiled with the headers of the Node-API packages, not with those of an installed Node.js', {
  skip: withoutCompiler,
}, () => {
  // npm gives the user's settings to scripts in these variables.
  const env = { ...process.env, npm_config_nodedir: '/usr', npm_package_config_node_gyp_nodedir: '/usr' };
  const line = `${compileCommand('-')} -M`;
  const { stdout, stderr, status } = spawnSync('sh', ['-c', line], { cwd: native, encoding: 'utf8', env });
  assert.equal(status, 0, stderr);
  const headers = stdout
    .split(/\s+/)
    .filter((name) => /\/(?:node|v8|uv|js_native|napi)[^/]*\.h$/.test(name) && !name.includes('/c++/'));
  assert.ok(headers.some((name) => name.endsWith('/node_api.h')));
  for (const name of headers) assert.match(name, /node_modules\/node-(?:api-headers|addon-api)\//);
});

test('every supported Node.js has the version of Node-API that the addon needs', () => {
  const [, version] = /-DNAPI_VERSION=(\d+)/.exec(readFileSync(join(native, 'Makefile'), 'utf8'))!;
  assert.ok(Number(version) <= 9, 'Node.js 22 has versions 9 and 10');
  assert.ok(Number(version) <= Number(process.versions.napi));
});

const compiled = existsSync(join(native, 'build', 'addon', 'trawl.node')) ? false : 'the native engine is not compiled';

test('after a failed build, the binary of earlier sources is not left to be loaded', { skip: compiled }, async (t) => {
  const { root } = await checkout(t, { stub: true });
  const binary = join(root, 'native', 'build', 'addon', 'trawl.node');
  writeProgram(join(root, 'tools', 'make'), 'echo "f16.cpp: error" >&2; exit 2');
  const current = await run(root, 'setup.mjs');
  assert.equal(current.code, 0, current.stderr);
  assert.ok(existsSync(binary), 'a current binary needs no build');
  appendFileSync(join(root, 'native', 'src', 'base', 'f16.cpp'), '// changed\n');
  const failed = await run(root, 'setup.mjs');
  assert.equal(failed.code, 0, 'the program then searches in TypeScript');
  assert.match(failed.stderr, /f16\.cpp: error[\s\S]*The native engine could not be built\./);
  assert.equal(existsSync(binary), false);
  assert.match((await run(root, 'setup.mjs')).stderr, /could not be built/, 'it is tried again');
});

test('the list of prebuilt binaries is refused while one of them was compiled from other sources', {
  skip: compiled,
}, async (t) => {
  const { root } = await checkout(t, { stub: true });
  const folder = join(root, 'prebuilds');
  const build = pathToFileURL(join(root, 'scripts', 'build-native.mjs')).href;
  const sources = ((await import(build)) as { digestOfSources(machine: string): string }).digestOfSources('');
  for (const target of ['linuxmusl-x64', 'darwin-arm64']) {
    mkdirSync(join(folder, target), { recursive: true });
    writeFileSync(join(folder, target, 'trawl.node'), 'binary');
  }
  writeFileSync(join(folder, 'darwin-arm64', 'sources'), sources);
  const refused = await run(root, 'prebuild.mjs', ['--list']);
  assert.equal(refused.code, 1);
  assert.match(
    refused.stderr,
    /^The prebuilt binaries for linuxmusl-x64 were not compiled from the present sources\. .*npm run prebuilds -- linuxmusl-x64\n$/,
  );
  assert.equal(existsSync(join(folder, 'prebuilds.json')), false);

  writeFileSync(join(folder, 'linuxmusl-x64', 'sources'), sources);
  const listed = await run(root, 'prebuild.mjs', ['--list']);
  assert.equal(listed.code, 0, listed.stderr);
  const list = JSON.parse(readFileSync(join(folder, 'prebuilds.json'), 'utf8')) as {
    sources: string;
    binaries: object;
  };
  assert.equal(list.sources, sources);
  assert.deepEqual(Object.keys(list.binaries), ['linuxmusl-x64', 'darwin-arm64']);

  appendFileSync(join(root, 'native', 'src', 'base', 'f16.cpp'), '// changed\n');
  const changed = await run(root, 'prebuild.mjs', ['--list']);
  assert.equal(changed.code, 1);
  assert.match(changed.stderr, /linuxmusl-x64, darwin-arm64 were not compiled/);
});
