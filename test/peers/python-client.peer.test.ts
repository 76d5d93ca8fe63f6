import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { before, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { packageRoot } from '../../src/base/package-root.ts';
import { Perturbation } from '../../training/perturbation/perturbation.ts';
import { perturbationSettings } from '../../training/perturbation/settings.ts';
import { fileFolder, runTrawl, SAMPLE_PASSAGES, serveIndex } from '../cli/run-trawl.ts';
import { CLIENTS, libraryFolder } from '../helpers/peers.ts';
import { sampleServer } from '../helpers/sample-server.ts';

const skip = CLIENTS.missing();
const project = join(packageRoot, 'clients', 'python');
const installed = join(await fileFolder(), 'site');
const server = await sampleServer();

/** Runs the environment's Python in the project's folder. Rejects with the output if it fails. */
async function python(args: readonly string[], env: Record<string, string> = {}): Promise<string> {
  const { stdout, stderr } = await promisify(execFile)(CLIENTS.python, [...args], {
    cwd: project,
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1', ...env },
  }).catch((error: { stdout: string; stderr: string }) => {
    throw new Error(`${args.join(' ')}\n${error.stdout}\n${error.stderr}`);
  });
  return stdout + stderr;
}

/** Serves an index of words alone; resolves to its URL. */
async function wordsServer(t: TestContext): Promise<string> {
  const index = join(await fileFolder(), 'words');
  const { code, stderr } = await runTrawl(['index', SAMPLE_PASSAGES, '--bm25', '--out', index, '--quiet']);
  assert.equal(code, 0, stderr);
  return (await serveIndex(t, index)).url;
}

before(async () => {
  if (skip !== false) return;
  // pip builds the package with the backend that pyproject.toml names.
  const options = [
    '--quiet',
    '--disable-pip-version-check',
    '--no-deps',
    '--no-build-isolation',
    '--target',
    installed,
  ];
  await python(['-m', 'pip', 'install', ...options, project]);
});

test('the Python package installs with its types', { skip }, () => {
  assert.ok(existsSync(join(installed, 'trawl_client', 'py.typed')));
});

test('the Python client passes its tests against real servers', { skip }, async (t) => {
  const output = await python(['-m', 'unittest', 'discover', '-t', '.', '-s', 'tests'], {
    SERVER_URL: server.url,
    WORDS_URL: await wordsServer(t),
    PERTURBED_URL: await server.serve({
      searchHook: new Perturbation(perturbationSettings({ distractors: 1, delay: 1 }, { delayMs: 1 })),
    }),
    PYTHONPATH: installed,
  });
  assert.match(output, /Ran (\d{2,}) tests in [\s\S]*\nOK\n/);
});

test('mypy --strict and ruff find nothing in the Python package', { skip }, async () => {
  const cache = await fileFolder();
  assert.match(await python(['-m', 'mypy', '--cache-dir', cache]), /no issues found/);
  await python(['-m', 'ruff', 'check', '--no-cache', '.']);
  await python(['-m', 'ruff', 'format', '--no-cache', '--check', '.']);
});

test('FlashRAG’s own pipeline runs with FlashRAGRetriever', { skip }, async () => {
  const items = [
    { question: 'which bridge did John A. Roebling design', golden_answers: ['Brooklyn Bridge'] },
    { question: 'what is the longest river of the Czech Republic', golden_answers: ['Vltava'] },
    { question: 'which city is the capital of Finland', golden_answers: ['none of them'] },
  ];
  const { outcomes } = await server.retriever.retrieve({ queries: items.map(({ question }) => question), k: 3 });
  const titles = outcomes.map((outcome) => {
    assert.ok(outcome.ok);
    return (JSON.parse(outcome.hits[0]!.document) as { title: string }).title;
  });
  const answer = (await CLIENTS.run(
    'flashrag_pipeline.py',
    { package: 'trawl_client', url: server.url, libraries: libraryFolder(), items },
    { PYTHONPATH: installed },
  )) as { pred: string[]; contents: string[][]; em: number[] };
  assert.deepEqual(answer.pred, titles);
  assert.deepEqual(
    answer.contents.map((documents) => documents.length),
    [3, 3, 3],
  );
  assert.deepEqual(
    answer.em,
    titles.map((title, i) => (items[i]!.golden_answers[0] === title ? 1 : 0)),
  );
});
