// `npm run test:cluster`: runs the tests of published indexes with engines of several nodes (test/cluster/*.cluster.test.ts), in a network
// namespace, and in turn. It first installs what comes from package registries into the user's cache folder, and stops with a list if something
// else is missing. `-- milvus` or `-- opensearch` runs a part; with `--out FILE` the part writes its figures as JSON.
import { spawn } from 'node:child_process';
import { basename, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { fail, filesBelow, root, setup } from './setup.mjs';

const { values, positionals } = parseArgs({ options: { out: { type: 'string' } }, allowPositionals: true });
await setup();
const { CLUSTER_PARTS } = await import('../dist/test/cluster/parts.js');
const { inNamespace, withoutNamespace } = await import('../dist/test/cluster/namespace.js');

const names = CLUSTER_PARTS.map(({ name }) => name);
const unknown = positionals.filter((name) => !names.includes(name));
if (unknown.length > 0) fail(`${unknown.join(' ')}: expected ${names.join(' or ')}.`);
const parts = CLUSTER_PARTS.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
if (values.out !== undefined && parts.length !== 1)
  fail(`--out FILE takes the figures of one part: ${names.join(' or ')}.`);

const note = (text) => process.stderr.write(`${text}\n`);
const missing = [];
for (const part of parts) missing.push(...(await part.prepare(note)).map((what) => `  ${part.name}: ${what}`));
if (missing.length > 0) fail(`npm run test:cluster stops, because something is missing:\n${missing.join('\n')}`);

const files = filesBelow(join(root, 'dist', 'test', 'cluster'), '.cluster.test.js')
  .filter((file) => parts.some(({ name }) => basename(file).startsWith(name)))
  .sort();
// Without files, Node.js would run all tests that it finds.
if (files.length === 0) fail(`There is no test of ${parts.map(({ name }) => name).join(' or ')} in test/cluster yet.`);
const tests = [process.execPath, '--test', '--test-reporter=spec', '--test-concurrency=1', ...files];
const [command, ...args] = withoutNamespace() === undefined ? inNamespace(tests) : tests;
const env = { ...process.env };
// Read by the part's test.
if (values.out !== undefined) env.TRAWL_CLUSTER_FIGURES = resolve(values.out);
const child = spawn(command, args, { cwd: root, env, stdio: 'inherit' });
// The signal of a terminal goes to all processes; this one waits for the others.
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
child.on('error', (error) => fail(error.message));
child.on('close', (code) => {
  process.exitCode = code ?? 1;
});
