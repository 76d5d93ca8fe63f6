// Published indexes in Milvus and OpenSearch clusters whose nodes are killed, frozen and restarted (etcd-server, a JDK, Maven).
// Runs test/cluster/*.cluster.test.ts in turn, in a network namespace. First installs what comes from package registries into the user's
// cache folder, and stops with a list if something else is missing. `milvus` or `opensearch` runs a part; `--out FILE` writes the figures
// of the part as JSON. TRAWL_CLUSTER_ROWS=5000 makes a small index.
import { spawn } from 'node:child_process';
import { basename, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { fail, filesBelow, root, setup } from '../setup.mjs';

const { values, positionals } = parseArgs({ options: { out: { type: 'string' } }, allowPositionals: true });
await setup();
const { CLUSTER_PARTS } = await import('../../dist/test/cluster/parts.js');
const { inNamespace, withoutNamespace } = await import('../../dist/test/cluster/namespace.js');

const names = CLUSTER_PARTS.map(({ name }) => name);
const unknown = positionals.filter((name) => !names.includes(name));
if (unknown.length > 0) fail(`${unknown.join(' ')}: expected ${names.join(' or ')}.`);
const parts = CLUSTER_PARTS.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
if (values.out !== undefined && parts.length !== 1)
  fail(`--out FILE takes the figures of one part: ${names.join(' or ')}.`);

const note = (text) => process.stderr.write(`${text}\n`);
const missing = [];
for (const part of parts) missing.push(...(await part.prepare(note)).map((what) => `  ${part.name}: ${what}`));
if (missing.length > 0) fail(`npm run check -- cluster stops, because something is missing:\n${missing.join('\n')}`);

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
