import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { packageRoot } from '../../src/base/package-root.ts';
import { endOf } from '../cli/run-trawl.ts';
import { BUILD_TOOLS, checkout, run, start } from './checkout.ts';
import { oldNodes, RUNTIME } from './old-nodes.ts';

/** A hash of the names and modification times of all files below a folder. */
function stateOf(folder: string): string {
  const hash = createHash('sha256');
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()) {
    hash.update(`${name} ${statSync(join(folder, name)).mtimeMs}\n`);
  }
  return hash.digest('hex');
}

test('two simultaneous set-ups both succeed, and the output of killed set-ups is deleted', async (t) => {
  const { root } = await checkout(t, { stub: true });
  mkdirSync(join(root, 'dist.99999999'));
  assert.equal((await run(root, 'setup.mjs')).code, 0);
  writeFileSync(join(root, 'src', 'added.ts'), 'export const added = 1;\n');
  const both = await Promise.all([run(root, 'setup.mjs'), run(root, 'setup.mjs')]);
  for (const { code, stderr } of both) assert.equal(code, 0, stderr);
  assert.ok(existsSync(join(root, 'dist', 'src', 'added.js')));
  assert.deepEqual(
    readdirSync(root).filter((name) => name.startsWith('dist')),
    ['dist'],
  );
});

test('the set-up installs and compiles once, then does nothing, and after a change only what the change needs', async (t) => {
  const { root, npmCalls } = await checkout(t, { stub: true });
  const first = await run(root, 'setup.mjs');
  assert.equal(first.code, 0, first.stderr);
  assert.match(
    first.stderr,
    /^Installing packages to run \.\.\. done in [\d.]+ s\nCompiling \.\.\. done in [\d.]+ s\n$/,
  );
  assert.equal(npmCalls().length, 1);
  assert.equal(
    npmCalls()[0],
    `ci --omit=dev --ignore-scripts --no-audit --no-fund on ${process.version}`,
    'with the Node.js that runs the set-up',
  );
  const program = () => statSync(join(root, 'dist', 'cli', 'trawl.js')).mode & 0o111;
  assert.equal(program(), 0o111, 'npx and links can execute the program');

  const built = stateOf(join(root, 'dist'));
  assert.deepEqual(await run(root, 'setup.mjs'), { code: 0, signal: null, stdout: '', stderr: '' });
  assert.equal(stateOf(join(root, 'dist')), built);
  assert.equal(npmCalls().length, 1);

  writeFileSync(join(root, 'src', 'added.ts'), 'export const added = 1;\n');
  const changed = await run(root, 'setup.mjs');
  assert.match(changed.stderr, /^Compiling \.\.\. done/);
  assert.ok(existsSync(join(root, 'dist', 'src', 'added.js')));
  assert.equal(program(), 0o111, 'also after compiling again');
  rmSync(join(root, 'src', 'added.ts'));
  assert.equal((await run(root, 'setup.mjs')).code, 0);
  assert.equal(existsSync(join(root, 'dist', 'src', 'added.js')), false, 'output without a source is deleted');
  assert.equal(npmCalls().length, 1);

  writeFileSync(join(root, 'src', 'broken.ts'), 'export const = 1;\n');
  const broken = await run(root, 'setup.mjs');
  assert.equal(broken.code, 1);
  assert.match(broken.stderr, /src\/broken\.ts\(1,14\): error TS1134[\s\S]*The sources do not compile\.\n$/);
  assert.match(
    (await run(root, 'setup.mjs')).stderr,
    /The sources do not compile/,
    'a failed compilation is not taken for a finished one',
  );
});

test('the set-up installs what running needs; a script for development adds the rest and removes nothing', async (t) => {
  const { root, npmCalls } = await checkout(t, { stub: true });
  const isThere = (name: string) => existsSync(join(root, 'node_modules', name));
  writeFileSync(join(root, 'scripts', 'develop.mjs'), "import { setup } from './setup.mjs';\nawait setup();\n");
  assert.equal((await run(root, 'setup.mjs')).code, 0);
  assert.deepEqual([isThere('pino'), isThere('fast-check')], [true, false]);
  writeFileSync(join(root, 'node_modules', 'pino-was-kept'), '');

  writeFileSync(join(root, 'npm-fails'), '');
  assert.equal((await run(root, 'develop.mjs')).code, 1);
  assert.equal((await run(root, 'setup.mjs')).code, 0, 'what running needs is still there');
  rmSync(join(root, 'npm-fails'));
  const added = await run(root, 'develop.mjs');
  assert.match(added.stderr, /^Installing packages \.\.\. done in [\d.]+ s\n$/);
  assert.deepEqual([isThere('fast-check'), isThere('pino-was-kept')], [true, true]);
  const options = '--ignore-scripts --no-audit --no-fund on';
  assert.deepEqual(
    npmCalls(),
    [`ci --omit=dev ${options}`, `install --no-save ${options}`, `install --no-save ${options}`].map(
      (call) => `${call} ${process.version}`,
    ),
  );
  for (const script of ['develop.mjs', 'setup.mjs'])
    assert.deepEqual(await run(root, script), { code: 0, signal: null, stdout: '', stderr: '' });

  rmSync(join(root, 'node_modules'), { recursive: true });
  writeFileSync(join(root, 'npm-adds-nothing'), '');
  assert.equal((await run(root, 'setup.mjs')).code, 0);
  assert.equal((await run(root, 'develop.mjs')).code, 0);
  assert.ok(isThere('fast-check'), 'what npm install left incomplete is installed anew');
  assert.match(npmCalls().at(-1)!, /^ci --ignore-scripts/);
});

test('of several set-ups at once one installs the packages, and a killed one hinders none', async (t) => {
  const { root, npmCalls } = await checkout(t, { stub: true });
  writeFileSync(join(root, 'npm-slow'), '');
  writeFileSync(join(root, '.packages.lock'), '99999999');
  const all = await Promise.all([1, 2, 3].map(() => run(root, 'setup.mjs')));
  for (const { code, stderr } of all) assert.equal(code, 0, stderr);
  assert.equal(npmCalls().length, 1);
  assert.deepEqual(
    readdirSync(root).filter((name) => name.startsWith('.packages')),
    [],
  );
});

test('the set-up translates sources whose types are wrong, and the check of types finds them', async (t) => {
  const { root } = await checkout(t, { stub: true });
  writeFileSync(join(root, 'src', 'wrong.ts'), "export const wrong: number = 'text';\n");
  const { code, stderr } = await run(root, 'setup.mjs');
  assert.equal(code, 0, stderr);
  assert.ok(existsSync(join(root, 'dist', 'src', 'wrong.js')));
  writeFileSync(
    join(root, 'scripts', 'types.mjs'),
    "import { typeErrors } from './typescript.mjs';\nconsole.log(await typeErrors());\n",
  );
  const types = await run(root, 'types.mjs');
  assert.match(types.stdout, /src\/wrong\.ts\(1,14\): error TS2322/);
  writeFileSync(join(root, 'src', 'wrong.ts'), 'export const wrong: number = 1;\n');
  assert.equal((await run(root, 'types.mjs')).stdout, 'undefined\n');
});

test('packages installed by hand are kept; after a change of the lock file they are installed again', async (t) => {
  const { root, npmCalls } = await checkout(t, { stub: true });
  await endOf(spawn(join(root, 'tools', 'npm'), ['install'], { stdio: ['ignore', 'pipe', 'pipe'] }));
  cpSync(join(packageRoot, 'node_modules', '.package-lock.json'), join(root, 'node_modules', '.package-lock.json'));
  assert.match((await run(root, 'setup.mjs')).stderr, /^Compiling/);
  assert.equal(npmCalls().length, 1);

  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { version: string }>;
  };
  lock.packages['node_modules/pino']!.version = '99.0.0';
  writeFileSync(join(root, 'package-lock.json'), JSON.stringify(lock));
  assert.match((await run(root, 'setup.mjs')).stderr, /^Installing packages/);
  assert.equal(npmCalls().length, 2);
});

test('if npm fails, its output is shown with the advice that the registry is needed', async (t) => {
  const { root, npmCalls } = await checkout(t, { stub: true });
  writeFileSync(join(root, 'npm-fails'), '');
  const { code, stderr } = await run(root, 'demo.mjs', ['--port', '0']);
  assert.equal(code, 1);
  assert.match(
    stderr,
    /npm error the registry is away\n\nnpm could not install the packages\. Check that the npm registry can be reached\.\n$/,
  );
  rmSync(join(root, 'npm-fails'));
  assert.equal((await run(root, 'setup.mjs')).code, 0);
  assert.equal(npmCalls().length, 2);
});

test('the demo serves the sample, stops on Ctrl-C, and does not build the index a second time', async (t) => {
  const { root } = await checkout(t);
  for (const [attempt, message] of [/270 passages × /, /is up to date; nothing to do/].entries()) {
    const child = start(root, 'demo.mjs', ['--port', '0']);
    t.after(() => child.kill('SIGKILL'));
    const ended = endOf(child);
    let stderr = '';
    child.stderr!.on('data', (text: string) => (stderr += text));
    while (!stderr.includes('Ctrl-C') && child.exitCode === null)
      await Promise.race([once(child.stderr!, 'data'), ended]);
    const url = /search page {3}(http:\/\/127\.0\.0\.1:\d+)\/\n/.exec(stderr)?.[1];
    assert.ok(url, stderr);
    assert.match(stderr, message);
    const answer = await fetch(`${url}/retrieve`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ queries: ['designer of the Brooklyn Bridge'] }),
    });
    const { result } = (await answer.json()) as { result: { title: string }[][] };
    assert.equal(result[0]![0]!.title, 'Brooklyn Bridge', `attempt ${attempt}`);
    const { indexes } = (await (await fetch(`${url}/v1/indexes`)).json()) as { indexes: { modes: string[] }[] };
    assert.deepEqual(indexes[0]!.modes, ['dense', 'bm25', 'hybrid']);
    child.kill('SIGINT');
    const { code, signal } = await ended;
    assert.deepEqual([code, signal], [0, null]);
  }
});

test('the demo fails before any work if the port is taken, and the error names the option to change it', async (t) => {
  const { root, npmCalls } = await checkout(t);
  const taken = createServer().listen(0, '127.0.0.1');
  t.after(() => taken.close());
  await once(taken, 'listening');
  const { port } = taken.address() as { port: number };
  const { code, stderr } = await run(root, 'demo.mjs', ['--port', `${port}`]);
  assert.equal(code, 1);
  assert.match(
    stderr,
    new RegExp(`^Port ${port} of 127\\.0\\.0\\.1 is in use by another program\\. .*npm run demo -- --port \\d+\n$`),
  );
  assert.equal(npmCalls().length, 0);
});

test('the demo has --help and refuses unknown options and invalid values', async (t) => {
  const { root, npmCalls } = await checkout(t);
  const help = await run(root, 'demo.mjs', ['--help']);
  assert.equal(help.code, 0);
  assert.match(help.stdout, /^Usage: npm run demo -- \[--port N\] \[--host ADDRESS\]/);
  for (const [args, message] of [
    [['--prot', '1'], /Unknown option '--prot'[\s\S]*Usage: npm run demo/],
    [['--port', 'http'], /--port is "http"; expected a whole number from 0 to 65535/],
    [['--port', '1e3'], /--port is "1e3"/],
    [['--port', ''], /--port is ""/],
    [['--port', '65536'], /--port is "65536"/],
    [['--host', '192.0.2.1'], /Cannot listen on 192\.0\.2\.1:8000: /],
  ] as const) {
    const { code, stderr } = await run(root, 'demo.mjs', args);
    assert.equal(code, 1);
    assert.match(stderr, message);
  }
  assert.equal(npmCalls().length, 0);
});

test('on a too old Node.js the set-up installs a newer one, once, and runs on it', async (t) => {
  const { root, npmCalls } = await checkout(t, { stub: true });
  const cache = join(root, 'cache');
  const env = { XDG_CACHE_HOME: cache };
  const [imitated, real = imitated!] = oldNodes(root);
  mkdirSync(join(cache, 'trawl', `${RUNTIME}.99999999`), { recursive: true });

  writeFileSync(join(root, 'npm-fails'), '');
  const failed = await run(root, 'setup.mjs', [], { path: real.path, env });
  assert.equal(failed.code, 1);
  assert.match(
    failed.stderr,
    /^Node\.js v[\d.]+ .* is too old: Trawl needs .*\nInstalling Node\.js .*\nnpm error the registry is away\n\nnpm could not install .*https:\/\/nodejs\.org/s,
  );
  rmSync(join(root, 'npm-fails'));

  const first = await run(root, 'setup.mjs', [], { path: real.path, env });
  assert.equal(first.code, 0, first.stderr);
  assert.match(
    first.stderr,
    /\nInstalling Node\.js .* done in .*\nInstalling packages .*\nCompiling .*\n$/,
    'no other output',
  );
  assert.deepEqual(readdirSync(join(cache, 'trawl')), [BUILD_TOOLS, RUNTIME], 'the unfinished installation is deleted');
  assert.ok(npmCalls().includes(`ci --omit=dev --ignore-scripts --no-audit --no-fund on ${process.version}`));

  rmSync(cache, { recursive: true });
  const both = await Promise.all([imitated!, real].map(({ path }) => run(root, 'setup.mjs', [], { path, env })));
  for (const { code, stderr } of both) assert.equal(code, 0, stderr);
  assert.deepEqual(readdirSync(join(cache, 'trawl')), [RUNTIME], 'nothing is translated again');

  const calls = npmCalls().length;
  const again = await run(root, 'setup.mjs', [], { path: real.path, env });
  assert.deepEqual(again, { code: 0, signal: null, stdout: '', stderr: '' });
  assert.equal(npmCalls().length, calls);
});

test('a script that is started directly with a too old Node.js says how to start it', async (t) => {
  const { root } = await checkout(t);
  const { path, version } = oldNodes(root)[0]!;
  const child = spawn('node', ['scripts/setup.mjs', '--some', 'argument'], {
    cwd: root,
    env: { ...process.env, PATH: path },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const { code, stderr } = await endOf(child);
  assert.equal(code, 1);
  assert.ok(stderr.startsWith(`Node.js ${version} (`), stderr);
  assert.ok(stderr.endsWith(`\n  cd ${root} && sh scripts/run scripts/setup.mjs --some argument\n`), stderr);
});
