import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { packageRoot } from '../src/base/package-root.ts';
import { TrawlClient } from '../src/client/index.ts';
import { endOf, fileFolder, runTrawl, SAMPLE_PASSAGES, spawnTrawl } from './cli/run-trawl.ts';
import { type DocExample, docExamples } from './helpers/doc-examples.ts';
import { sampleServer } from './helpers/sample-server.ts';
import { tinyCheckpoint } from './helpers/tiny-checkpoint.ts';

/** The examples of docs/agents.md. This file runs JavaScript and command lines; `npm run check -- peers` runs the Python. */
const EXAMPLES = docExamples('agents.md');
const server = await sampleServer();
const folder = await fileFolder();

test('docs/agents.md has at least 9 examples, each with its output', () => {
  const shown = EXAMPLES.filter(({ language }) => language === 'python' || language === 'js');
  assert.ok(shown.length >= 9, `${shown.length}`);
  for (const { section, output } of shown) assert.ok(output !== undefined && output.length > 5, section);
});

test('the JavaScript example prints the output on the page', async (t) => {
  const [example] = EXAMPLES.filter(({ language }) => language === 'js');
  // Inside the package, where Node.js resolves `trawl-retrieval` to the package itself.
  const file = join(packageRoot, 'dist', `example-${process.pid}.mjs`);
  t.after(() => rmSync(file, { force: true }));
  writeFileSync(file, example!.code.replaceAll('http://127.0.0.1:8000', server.url));
  const { stdout } = await promisify(execFile)(process.execPath, [file]);
  assert.equal(stdout, example!.output);
});

const AGENTIC_R = 'Replace the index while training (Agentic-R)';

/** The arguments of each `trawl` line of a section. */
function commandLines(section: string): string[][] {
  const isCommand = (example: DocExample): boolean => example.section === section && example.language === '';
  return EXAMPLES.filter(isCommand)
    .flatMap(({ code }) => code.replaceAll('\\\n', ' ').split('\n'))
    .filter((line) => line.startsWith('trawl '))
    .map((line) => [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain!).slice(1));
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as { port: number };
  probe.close();
  await once(probe, 'close');
  return port;
}

/** Adds a checkpoint and builds its index with the commands of Agentic-R's section; returns the command to serve it. */
async function iterate(step: number, port: number): Promise<string[]> {
  const checkpoint = join(folder, 'checkpoints', `step-${step}`);
  for (const [name, content] of Object.entries(tinyCheckpoint(step))) {
    mkdirSync(dirname(join(checkpoint, name)), { recursive: true });
    writeFileSync(join(checkpoint, name), content);
  }
  const changed = (words: readonly string[]): string[] =>
    words.map((word) =>
      word === 'wiki-18.jsonl.gz'
        ? SAMPLE_PASSAGES
        : word === '8000'
          ? String(port)
          : word.replace('100', String(step)),
    );
  const [add, index, serve] = commandLines(AGENTIC_R).map(changed);
  for (const line of [add!, index!]) {
    const { code, stderr } = await runTrawl(line, { cwd: folder });
    assert.equal(code, 0, stderr);
  }
  return serve!;
}

test('Agentic-R’s loop: the index of the next iteration replaces the old one without a failed request', async (t) => {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const child = spawnTrawl(await iterate(1, port), { cwd: folder });
  t.after(() => child.kill('SIGKILL'));
  child.stdout?.resume();
  child.stderr?.resume();
  const client = new TrawlClient(url, { retry: { attempts: 1 } });
  const { facts } = await client.waitUntilReady({ timeoutMs: 60_000, pollMs: 50 });
  assert.deepEqual([facts.index, facts.model], ['retriever', 'agentic-r-1']);
  const seen = new Set<string>();
  let isRunning = true;
  const searching = (async () => {
    while (isRunning) {
      const { index, results } = await client.search([{ question: 'Where is it?', query: 'a bridge' }]);
      assert.ok(results[0]?.ok === true);
      assert.equal(results[0].embedded.text, 'query: Where is it? [SEP] a bridge');
      seen.add(index.generation);
    }
  })();
  // The server answers from the old index meanwhile.
  await iterate(2, port);
  const exchange = EXAMPLES.find(({ section, code }) => section === AGENTIC_R && code.includes('/reload'))!.code;
  const line = exchange.replace('http://127.0.0.1:8000', url).replace('agentic-r-200', 'agentic-r-2');
  const { stdout } = await promisify(execFile)('bash', ['-c', line], { cwd: folder });
  const { generation, previous, model } = JSON.parse(stdout) as Record<string, string>;
  assert.equal(model, 'agentic-r-2');
  while (!seen.has(generation!)) await Promise.race([searching, new Promise((resolve) => setTimeout(resolve, 20))]);
  isRunning = false;
  await searching;
  assert.deepEqual([...seen], [previous, generation]);
  assert.equal((await client.ready()).facts.model, 'agentic-r-2');
});

test('an index of one iteration is refused with the retriever of another', async () => {
  cpSync(join(folder, 'indexes', 'agentic-r-1'), join(folder, 'copied'), { recursive: true });
  const { code, stderr } = await runTrawl(['serve', 'copied', '--model', 'agentic-r-2', '--port', '0'], {
    cwd: folder,
  });
  assert.equal(code, 1);
  assert.match(stderr, /MODEL_MISMATCH/);
});

test('Agentic-R’s launch line accepts a checkpoint as the model of its vectors', async (t) => {
  const vectors = join('indexes', 'agentic-r-1', 'shard-00000', 'vectors.faiss');
  const files = ['--index_path', vectors, '--corpus_path', SAMPLE_PASSAGES, '--out', 'launched'];
  const model = ['--retriever_name', 'e5', '--retriever_model', './checkpoints/step-1'];
  const port = await freePort();
  const child = spawnTrawl(['serve', ...files, ...model, '--faiss_gpu', '--port', String(port)], { cwd: folder });
  t.after(() => child.kill('SIGKILL'));
  const ended = endOf(child);
  const client = new TrawlClient(`http://127.0.0.1:${port}`);
  const ready = client.waitUntilReady({ timeoutMs: 60_000, pollMs: 50 });
  await Promise.race([ready, ended.then(({ stderr }) => Promise.reject(new Error(stderr)))]);
  const [index] = await client.indexes();
  assert.match(index!.model!.name, /^step-1-[0-9a-f]{12}$/);
  assert.deepEqual(index!.model!.prefixes, { query: 'query: ', passage: 'passage: ' });
  child.kill('SIGTERM');
  const { code, stderr } = await ended;
  assert.equal(code, 0);
  assert.match(stderr, /^trawl model add .*\/checkpoints\/step-1 --name step-1-/m);
  assert.match(stderr, /^trawl import --corpus /m);
});

test('a launch line with another model than that of the vectors is refused', async () => {
  const vectors = join('indexes', 'agentic-r-1', 'shard-00000', 'vectors.faiss');
  const files = ['--index_path', vectors, '--corpus_path', SAMPLE_PASSAGES, '--out', 'refused'];
  const args = ['serve', ...files, '--retriever_name', 'e5', '--retriever_model', './checkpoints/step-2'];
  const { code, stderr } = await runTrawl(args, { cwd: folder });
  assert.equal(code, 1);
  assert.match(stderr, /\[VECTORS_OF_ANOTHER_MODEL\]/);
});
