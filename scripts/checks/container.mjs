// deploy/Dockerfile built with buildah, run read-only and searched (root; apt-get install buildah mmdebstrap).
// The image runs as its settings say: as its user, with a read-only root file system, an index at /data and nothing else. No registry of
// images is needed: the base is made with mmdebstrap and the Node.js that runs this. `--package FILE.tgz` takes a package.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { after, test } from 'node:test';
import { parseArgs } from 'node:util';
import { cachePath } from '../cached-packages.mjs';
import { fail, root, run } from '../steps.mjs';

const { values } = parseArgs({ options: { package: { type: 'string' } } });
if (process.getuid() !== 0) fail('The container check needs root, for chroot and mounts.');
for (const program of ['buildah', 'mmdebstrap', 'unshare'])
  if (spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0)
    fail(`${program} is not installed (Debian: apt-get install buildah mmdebstrap util-linux).`);

const work = mkdtempSync(join(tmpdir(), 'trawl-container-'));
const storage = ['--root', join(work, 'storage'), '--runroot', join(work, 'run'), '--storage-driver', 'vfs'];
const containers = [];
after(() => {
  for (const container of containers) spawnSync('buildah', [...storage, 'umount', container]);
  rmSync(work, { recursive: true, force: true });
});

function output(command, args, options) {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
    ...options,
  });
  assert.equal(status, 0, `${command} ${args.join(' ')}: ${error ?? ''}${stderr}${stdout}`);
  return stdout.trim();
}

const buildah = (...args) => output('buildah', [...storage, ...args]);

/** A minimal Debian, kept in the user's cache folder. */
function debian() {
  const file = cachePath('debian-bookworm.tar');
  if (existsSync(file)) return file;
  output('mmdebstrap', ['--variant=minbase', '--include=ca-certificates,libstdc++6', 'bookworm', `${file}.new.tar`]);
  renameSync(`${file}.new.tar`, file);
  return file;
}

/** An image like node:24-bookworm-slim. */
function nodeImage() {
  const container = buildah('from', 'scratch');
  buildah('add', container, debian(), '/');
  buildah('copy', container, process.execPath, '/usr/local/bin/node');
  const npm = process.env.npm_execpath ?? output('readlink', ['-f', output('sh', ['-c', 'command -v npm'])]);
  buildah('copy', container, resolve(npm, '..', '..'), '/usr/local/lib/node_modules/npm');
  // As on this machine, whose certificates the registry may need.
  const settings = join(work, 'npmrc');
  writeFileSync(settings, 'cafile=/etc/ssl/certs/ca-certificates.crt\n');
  buildah('copy', container, settings, '/root/.npmrc');
  buildah('copy', container, '/etc/ssl/certs/ca-certificates.crt', '/etc/ssl/certs/ca-certificates.crt');
  const link = ['ln', '-s', '../lib/node_modules/npm/bin/npm-cli.js', '/usr/local/bin/npm'];
  buildah('run', '--isolation', 'chroot', container, '--', ...link);
  buildah('config', '--env', 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', container);
  buildah('commit', '--quiet', '--rm', container, 'localhost/node');
}

async function context() {
  const folder = join(work, 'context');
  mkdirSync(folder);
  if (values.package !== undefined) cpSync(resolve(values.package), join(folder, basename(values.package)));
  else {
    const args = [join(root, 'scripts', 'package.mjs'), '--only-here', '--out', folder];
    await run(process.execPath, args, { onFailure: 'No package was made.' });
  }
  const [name, ...others] = readdirSync(folder);
  const version = /^trawl-retrieval-(.+)\.tgz$/.exec(name)?.[1];
  if (version === undefined || others.length > 0) fail(`${name}: expected one package trawl-retrieval-VERSION.tgz.`);
  return { folder, version };
}

const { folder, version } = await context();
nodeImage();
const build = [
  '--format',
  'docker',
  '--isolation',
  'chroot',
  '--network',
  'host',
  '--build-arg',
  'NODE_IMAGE=localhost/node',
  '--build-arg',
  `VERSION=${version}`,
];
buildah('bud', '--quiet', ...build, '-f', join(root, 'deploy', 'Dockerfile'), '-t', 'localhost/trawl', folder);
const container = buildah('from', '--pull-never', 'localhost/trawl');
containers.push(container);
const { config } = JSON.parse(buildah('inspect', '--type', 'image', 'localhost/trawl')).Docker;
const tree = buildah('mount', container);

/** The index of the sample, made by the checkout. */
const index = join(work, 'data', 'sample');
const corpus = join(root, 'corpus', 'sample', 'passages.jsonl');
output(process.execPath, [join(root, 'dist', 'cli', 'trawl.js'), 'index', corpus, '--out', index, '--quiet']);

/** Runs words in the image: its files read-only, an empty /tmp, the index at /data. */
function inImage(words) {
  const script = `set -e
mount --bind '${tree}' '${tree}'
mount --bind '${join(work, 'data')}' '${tree}/data'
mount -t tmpfs tmpfs '${tree}/tmp'
mount -t proc proc '${tree}/proc'
mount -o remount,ro,bind '${tree}'
mount -o remount,ro,bind '${tree}/data'
cd '${tree}'
exec chroot --userspec=${config.User} '${tree}' /usr/bin/env -i ${config.Env.map((text) => `'${text}'`).join(' ')} sh -c 'cd ${config.WorkingDir}; exec "$@"' sh "$@"`;
  return spawn('unshare', ['--mount', 'sh', '-c', script, 'sh', ...words], { stdio: ['ignore', 'pipe', 'pipe'] });
}

async function ended(child) {
  let text = '';
  child.stdout.on('data', (part) => (text += part));
  child.stderr.on('data', (part) => (text += part));
  const [code] = await once(child, 'close');
  return { code, text };
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
}

test('the image runs as a user without rights, has no compiler, and has the size of its parts', (t) => {
  assert.equal(config.User, '10001:10001');
  assert.deepEqual(config.Entrypoint, ['trawl']);
  for (const program of ['gcc', 'make', 'python3']) assert.ok(!existsSync(join(tree, 'usr', 'bin', program)), program);
  const size = (path) => Number(output('du', ['-sm', path]).split('\t')[0]);
  t.diagnostic(
    `${size(tree)} MB, of it ${size(join(tree, 'opt', 'trawl'))} MB Trawl with its packages, ${size(join(tree, 'usr/local/bin/node'))} MB Node.js`,
  );
});

test('its root file system may be read-only: a write fails, and a search answers', async () => {
  const write = await ended(inImage(['sh', '-c', 'touch /opt/trawl/x']));
  assert.notEqual(write.code, 0);
  const search = await ended(
    inImage([...config.Entrypoint, 'search', '/data/sample', 'who designed the Eiffel Tower', '--json', '--k', '1']),
  );
  assert.equal(search.code, 0, search.text);
  assert.match(search.text, /Eiffel Tower/);
});

test('the server is healthy when it answers, and ends by SIGTERM with exit code 0', async () => {
  // The health check asks port 8000; another program may have it.
  const port = await freePort();
  const child = inImage([...config.Entrypoint, 'serve', '/data/sample', '--port', `${port}`, '--json']);
  const done = ended(child);
  const [line] = await Promise.race([once(child.stdout, 'data'), done.then(({ text }) => assert.fail(text))]);
  const { url } = JSON.parse(line);
  const health = config.Healthcheck.Test.slice(1).map((word) => word.replace(':8000/', `:${port}/`));
  const healthy = await ended(inImage(health));
  assert.equal(healthy.code, 0, healthy.text);
  const answer = await fetch(`${url}/retrieve`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ queries: ['who designed the Eiffel Tower'], topk: 1 }),
  });
  assert.equal((await answer.json()).result[0][0].title, 'Eiffel Tower');
  child.kill('SIGTERM');
  assert.equal((await done).code, 0);
  assert.notEqual((await ended(inImage(health))).code, 0, 'a server that is gone is not healthy');
});
