import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { EXIT } from '../../cli/program/command.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import { endOf, fileFolder, sampleIndex } from '../cli/run-trawl.ts';
import { isSupported, NEEDED, oldNodes, RUNTIME, RUNTIME_VERSION, writeNewNode, writeProgram } from './old-nodes.ts';

const SUPPORTED = ['22.15.0', '22.19.1', '22.20.0', '22.23.3', '24.0.0', '25.1.0', '26.10.0', '30.0.0'];
const TOO_OLD = ['18.20.8', '20.20.2', '21.7.3', '22.0.0', '22.9.0', '22.14.0', '23.11.1'];

const folder = await fileFolder();
const cache = join(folder, 'cache');
/** A link to a link to bin/trawl, like those of `npm install -g`. */
const program = join(folder, 'links', 'trawl');
before(() => {
  writeNewNode(join(cache, 'trawl', RUNTIME, 'node_modules', '.bin', 'node'));
  mkdirSync(join(folder, 'links'));
  symlinkSync(join(packageRoot, 'bin', 'trawl'), join(folder, 'links', 'first'));
  symlinkSync('first', program);
});

function trawl(path: string, args: readonly string[], cacheFolder = cache) {
  return spawn(program, args, {
    env: { ...process.env, PATH: path, XDG_CACHE_HOME: cacheFolder },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

test('package.json, supported-node.mjs and scripts/run accept the same versions of Node.js', () => {
  const { engines } = JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8')) as {
    engines: { node: string };
  };
  assert.equal(engines.node, NEEDED);
  assert.ok(isSupported(RUNTIME_VERSION));
  assert.deepEqual([...SUPPORTED, ...TOO_OLD].filter(isSupported), SUPPORTED);
  const accepted = [...SUPPORTED, ...TOO_OLD].filter((version) => {
    const bin = join(folder, `node-${version}`);
    writeProgram(join(bin, 'node'), `if [ "$1" = --version ]; then echo v${version}; else echo "started $1"; fi`);
    const run = join(packageRoot, 'scripts', 'run');
    const { stdout } = spawnSync('sh', [run, 'script.mjs'], {
      env: { ...process.env, PATH: `${bin}:${process.env.PATH}` },
      encoding: 'utf8',
    });
    return stdout === 'started script.mjs\n';
  });
  assert.deepEqual(accepted, SUPPORTED);
});

for (const { name, version, path } of oldNodes(folder)) {
  test(`with ${name} on PATH trawl runs on the Node.js that the set-up installed, and returns its exit code`, async () => {
    const shown = await endOf(trawl(path, ['doctor']));
    assert.deepEqual([shown.code, shown.stderr], [0, '']);
    assert.match(shown.stdout, new RegExp(`on Node\\.js v?${process.versions.node.replaceAll('.', '\\.')}`));
    const unknown = await endOf(trawl(path, ['serv']));
    assert.equal(unknown.code, EXIT.usage);
    assert.match(unknown.stderr, /did you mean serve\?/);
  });

  test(`with ${name} on PATH bin/trawl becomes the Node.js process: it keeps process id, signals and open files`, async (t) => {
    const index = await sampleIndex(join(folder, version));
    const server = trawl(path, ['serve', index, '--port', '0', '--json']);
    t.after(() => server.kill('SIGKILL'));
    const ended = endOf(server);
    const [line] = (await once(server.stdout, 'data')) as [string];
    assert.equal((JSON.parse(line) as { pid: number }).pid, server.pid);
    server.kill('SIGTERM');
    assert.equal((await ended).code, 0);

    // The shell passes <( ) as an open file descriptor.
    const lines = join(folder, 'lines.jsonl');
    writeFileSync(lines, '{"id":1,"contents":"a river"}\n{"id":2,"contents":"a bridge"}\n');
    const script = `"${program}" index --format jsonl --out "${index}-2" --json <(cat "${lines}")`;
    const env = { ...process.env, PATH: path, XDG_CACHE_HOME: cache };
    const { code, stdout, stderr } = await endOf(
      spawn('bash', ['-c', script], { env, stdio: ['ignore', 'pipe', 'pipe'] }),
    );
    assert.equal(code, 0, stderr);
    assert.equal((JSON.parse(stdout) as { rows: number }).rows, 2);
  });

  test(`with only ${name}, the errors of trawl and of dist/cli/trawl.js say how to get a newer one`, async () => {
    const tooOld = (end: string) =>
      new RegExp(`Node\\.js ${version} \\(.*\\) is too old: Trawl needs \\^22\\.15 \\|\\| >=24\\. ${end}\\n$`);
    const started = await endOf(trawl(path, ['serve', 'x'], join(folder, 'empty')));
    assert.deepEqual([started.code, started.stdout], [1, '']);
    assert.match(
      started.stderr,
      tooOld('`npm run build` in .* installs Node\\.js 24\\..* into .*empty/trawl/node-24.*'),
    );
    const direct = await endOf(
      spawn('node', [join(packageRoot, 'dist', 'cli', 'trawl.js'), 'serve', 'x'], {
        env: { ...process.env, PATH: path },
        stdio: ['ignore', 'pipe', 'pipe'],
      }),
    );
    assert.deepEqual([direct.code, direct.stdout], [1, '']);
    assert.match(direct.stderr, tooOld('Start .*/bin/trawl, which finds .* or install Node\\.js 24 .*'));
  });
}

test('without Node.js the error of trawl says how to install it', async () => {
  const bin = join(folder, 'no-node');
  mkdirSync(bin);
  for (const tool of ['sh', 'dirname', 'readlink']) {
    symlinkSync(spawnSync('sh', ['-c', `command -v ${tool}`], { encoding: 'utf8' }).stdout.trim(), join(bin, tool));
  }
  const { code, stderr } = await endOf(trawl(bin, ['--version']));
  assert.deepEqual(
    [code, stderr],
    [1, 'Node.js is not installed, or not on PATH. Install Node.js 24: https://nodejs.org\n'],
  );
});
