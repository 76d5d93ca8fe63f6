import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { packageRoot } from '../../src/package-root.ts';

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
  const line = `${compileCommand('addon/addon.cpp')} -M`;
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
