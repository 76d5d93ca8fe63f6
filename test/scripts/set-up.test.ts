import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { packageRoot } from '../../src/package-root.ts';
import { type Ended, endOf } from '../cli/run-trawl.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

/** What a checkout needs to be set up and to run the demo; tests are left out, so that compiling is quick. */
const PARTS = [
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'scripts',
  'src',
  'corpus',
  'prepare',
  'hub',
  'checkpoint',
  'embeddings',
  'indexer',
  'export',
  'evaluation',
  'cli',
  'bench',
  // With what was built of it: compiling the engine takes most of a minute.
  'native',
];

/** A copy of this repository that borrows the installed packages, with a stand-in for npm that notes its calls. */
async function checkout(t: TestContext): Promise<{ root: string; npmCalls: () => string[] }> {
  const root = join(await tempFolder(t), 'checkout');
  for (const part of PARTS) cpSync(join(packageRoot, part), join(root, part), { recursive: true, dereference: true });
  symlinkSync(join(packageRoot, 'models'), join(root, 'models'));
  mkdirSync(join(root, 'bin'));
  // Installing is borrowing: each package of the real node_modules as a link.
  writeFileSync(
    join(root, 'bin', 'npm'),
    `#!/bin/sh
echo "$* nodedir=$npm_config_nodedir source=$npm_config_build_from_source" >> "${root}/npm-calls"
if [ -e "${root}/npm-fails" ]; then echo "npm error the registry is away" >&2; exit 1; fi
rm -rf "${root}/node_modules"; mkdir "${root}/node_modules"
ln -s "${packageRoot}"/node_modules/* "${root}/node_modules/"
`,
  );
  chmodSync(join(root, 'bin', 'npm'), 0o755);
  const calls = join(root, 'npm-calls');
  return { root, npmCalls: () => (existsSync(calls) ? readFileSync(calls, 'utf8').trim().split('\n') : []) };
}

function start(root: string, script: string, args: readonly string[] = []): ChildProcess {
  const inherited = Object.entries(process.env).filter(([name]) => !/^(npm_|TRAWL_)/i.test(name));
  const env = { ...Object.fromEntries(inherited), PATH: `${join(root, 'bin')}:${process.env.PATH}` };
  return spawn(process.execPath, [join(root, 'scripts', script), ...args], {
    cwd: root,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

function run(root: string, script: string, args: readonly string[] = []): Promise<Ended> {
  return endOf(start(root, script, args));
}

/** Content of all files below a folder as one hash, with their times. */
function stateOf(folder: string): string {
  const hash = createHash('sha256');
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()) {
    hash.update(`${name} ${statSync(join(folder, name)).mtimeMs}\n`);
  }
  return hash.digest('hex');
}

test('the set-up installs and compiles once, does nothing the second time, and only what a change needs afterwards', async (t) => {
  const { root, npmCalls } = await checkout(t);
  const first = await run(root, 'setup.mjs');
  assert.equal(first.code, 0, first.stderr);
  assert.match(first.stderr, /^Installing packages .*\.\.\. done in [\d.]+ s\nCompiling \.\.\. done in [\d.]+ s\n$/);
  assert.equal(npmCalls().length, 1);
  // From source, so that nothing is fetched but packages; with Node's own headers where they are installed.
  assert.match(npmCalls()[0]!, /^ci --no-audit --no-fund nodedir=\S* source=true$/);
  const program = () => statSync(join(root, 'dist', 'cli', 'trawl.js')).mode & 0o111;
  assert.equal(program(), 0o111, 'npx and links to the program run it');

  const built = stateOf(join(root, 'dist'));
  assert.deepEqual(await run(root, 'setup.mjs'), { code: 0, signal: null, stdout: '', stderr: '' });
  assert.equal(stateOf(join(root, 'dist')), built);
  assert.equal(npmCalls().length, 1);

  writeFileSync(join(root, 'src', 'added.ts'), 'export const added = 1;\n');
  const changed = await run(root, 'setup.mjs');
  assert.match(changed.stderr, /^Compiling \.\.\. done/);
  assert.ok(existsSync(join(root, 'dist', 'src', 'added.js')));
  assert.equal(program(), 0o111, 'also when it was compiled anew');
  rmSync(join(root, 'src', 'added.ts'));
  assert.equal((await run(root, 'setup.mjs')).code, 0);
  assert.equal(existsSync(join(root, 'dist', 'src', 'added.js')), false, 'what has no source any more goes');
  assert.equal(npmCalls().length, 1);

  writeFileSync(join(root, 'src', 'broken.ts'), 'export const broken: number = "text";\n');
  const broken = await run(root, 'setup.mjs');
  assert.equal(broken.code, 1);
  assert.match(broken.stderr, /src\/broken\.ts\(1,14\): error TS2322[\s\S]*The sources do not compile\.\n$/);
  assert.match((await run(root, 'setup.mjs')).stderr, /The sources do not compile/, 'and not taken for compiled');
});

test('packages that somebody installed by hand are taken as they are; a changed lock file installs again', async (t) => {
  const { root, npmCalls } = await checkout(t);
  await endOf(spawn(join(root, 'bin', 'npm'), ['install'], { stdio: ['ignore', 'pipe', 'pipe'] }));
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

test('an installation that fails shows what npm said and what is needed', async (t) => {
  const { root, npmCalls } = await checkout(t);
  writeFileSync(join(root, 'npm-fails'), '');
  const { code, stderr } = await run(root, 'demo.mjs', ['--port', '0']);
  assert.equal(code, 1);
  assert.match(
    stderr,
    /npm error the registry is away\n\nnpm ci failed\. Needed are the npm registry, a C\+\+ compiler, make and Python 3/,
  );
  rmSync(join(root, 'npm-fails'));
  assert.equal((await run(root, 'setup.mjs')).code, 0);
  assert.equal(npmCalls().length, 2);
});

test('the demo serves the sample, ends cleanly on Ctrl-C, and does not index again the second time', async (t) => {
  const { root } = await checkout(t);
  for (const [attempt, said] of [/270 passages × /, /is current; nothing to do/].entries()) {
    const child = start(root, 'demo.mjs', ['--port', '0']);
    t.after(() => child.kill('SIGKILL'));
    const ended = endOf(child);
    let stderr = '';
    child.stderr!.on('data', (text: string) => (stderr += text));
    while (!stderr.includes('Ctrl-C') && child.exitCode === null)
      await Promise.race([once(child.stderr!, 'data'), ended]);
    const url = /search page {3}(http:\/\/127\.0\.0\.1:\d+)\/\n/.exec(stderr)?.[1];
    assert.ok(url, stderr);
    assert.match(stderr, said);
    const answer = await fetch(`${url}/retrieve`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ queries: ['designer of the Brooklyn Bridge'] }),
    });
    const { result } = (await answer.json()) as { result: { title: string }[][] };
    assert.equal(result[0]![0]!.title, 'Brooklyn Bridge', `attempt ${attempt}`);
    child.kill('SIGINT');
    const { code, signal } = await ended;
    assert.deepEqual([code, signal], [0, null]);
  }
});

test('the demo says before any work that the port is taken, and which option changes it', async (t) => {
  const { root, npmCalls } = await checkout(t);
  const taken = createServer().listen(0, '127.0.0.1');
  t.after(() => taken.close());
  await once(taken, 'listening');
  const { port } = taken.address() as { port: number };
  const { code, stderr } = await run(root, 'demo.mjs', ['--port', `${port}`]);
  assert.equal(code, 1);
  assert.match(
    stderr,
    new RegExp(`^Port ${port} of 127\\.0\\.0\\.1 is taken by another program\\. .*npm run demo -- --port \\d+\n$`),
  );
  assert.equal(npmCalls().length, 0);
});

test('the demo explains itself and refuses what it does not know', async (t) => {
  const { root, npmCalls } = await checkout(t);
  const help = await run(root, 'demo.mjs', ['--help']);
  assert.equal(help.code, 0);
  assert.match(help.stdout, /^Usage: npm run demo -- \[--port N\] \[--host ADDRESS\]/);
  for (const [args, message] of [
    [['--prot', '1'], /Unknown option '--prot'[\s\S]*Usage: npm run demo/],
    [['--port', 'http'], /--port is "http"; it has to be a whole number from 0 to 65535/],
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

test('an old Node is refused with both versions', async (t) => {
  const { root } = await checkout(t);
  const { stderr, code } = await endOf(
    spawn(
      process.execPath,
      [
        '--input-type=module',
        '-e',
        `Object.defineProperty(process, 'version', { value: 'v18.1.0' }); Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '18.1.0' } }); const { setup } = await import(${JSON.stringify(join(root, 'scripts', 'setup.mjs'))}); await setup();`,
      ],
      { stdio: ['ignore', 'pipe', 'pipe'] },
    ),
  );
  assert.deepEqual([code, stderr], [1, 'Node.js v18.1.0 is too old: version 20 or newer is needed.\n']);
});
