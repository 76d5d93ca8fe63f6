import assert from 'node:assert/strict';
import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { promisify } from 'node:util';
import { packageRoot } from '../../src/base/package-root.ts';
import { ADDON_PATH } from '../../src/engine/native/load-addon.ts';
import { fileFolder, postJson, SAMPLE_PASSAGES, serveIndex } from '../cli/run-trawl.ts';
import { CLIENTS, libraryFolder, MTEB } from '../helpers/peers.ts';

const skip = existsSync(ADDON_PATH) ? false : 'the native engine is not compiled';
const folder = await fileFolder();
const bin = join(folder, 'venv', 'bin');
/** Neither Node.js nor a compiler: only what pip installed. */
const env = { PATH: `${bin}:/usr/bin:/bin`, HOME: join(folder, 'home'), TMPDIR: folder };

async function run(command: string, args: readonly string[], options: { cwd?: string; env?: NodeJS.ProcessEnv } = {}) {
  const { stdout, stderr } = await promisify(execFile)(command, [...args], {
    cwd: folder,
    maxBuffer: 1 << 26,
    ...options,
  }).catch((error: { message: string; stdout: string; stderr: string }) => {
    throw new Error(`${error.message}\n${error.stdout}\n${error.stderr}`);
  });
  return { stdout, stderr };
}

/** Runs a script in the environment; it prints JSON. */
async function python(script: string): Promise<unknown> {
  return JSON.parse((await run(join(bin, 'python'), ['-c', script], { env })).stdout);
}

/** The names of the packages in a folder node_modules, and in those of its packages. */
function packagesIn(modules: string): string[] {
  return readdirSync(modules, { recursive: true, encoding: 'utf8' }).flatMap((path) => {
    const [, name] = /(?:^|\/node_modules\/)((?:@[^/]+\/)?[^/@.][^/]*)\/package\.json$/.exec(path) ?? [];
    return name ?? [];
  });
}

before(async () => {
  if (skip !== false) return;
  const script = join(packageRoot, 'scripts', 'wheel.mjs');
  await run(process.execPath, [script, '--compiled-here', '--out', folder]);
  const wheel = readdirSync(folder).find((name) => name.endsWith('.whl'))!;
  assert.match(wheel, /^trawl_retrieval-\d+\.\d+\.\d+-py3-none-(manylinux|macosx)/);
  await run('python3', ['-m', 'venv', join(folder, 'venv')]);
  const install = ['install', '--quiet', '--disable-pip-version-check'];
  // An empty home folder, as of a new user; what pip has downloaded before is kept.
  const cache = process.env.PIP_CACHE_DIR ?? join(homedir(), '.cache', 'pip');
  await run(join(bin, 'pip'), [...install, `${join(folder, wheel)}[langchain,llama-index]`], {
    env: { ...process.env, HOME: env.HOME, PIP_CACHE_DIR: cache },
  });
});

test('in an empty environment, the wheel brings Node.js, and trawl builds and searches', { skip }, async () => {
  const index = join(folder, 'sample');
  await run(join(bin, 'trawl'), ['index', SAMPLE_PASSAGES, '--out', index, '--quiet'], { env });
  const { stdout } = await run(join(bin, 'trawl'), ['search', index, 'who designed the Eiffel Tower', '--json'], {
    env,
  });
  assert.match(stdout, /Eiffel Tower/);
  const doctor = JSON.parse((await run(join(bin, 'trawl'), ['doctor', '--json'], { env })).stdout);
  assert.match(doctor.search.origin, /^prebuilt for /);
  assert.notEqual(doctor.node, '');
});

test('the manual page is where man finds it, by the path of the program alone', {
  skip: skip || (spawnSync('man', ['--version']).error !== undefined && 'man is not installed'),
}, async () => {
  const { stdout } = await run('man', ['--where', 'trawl'], { env });
  assert.equal(stdout.trim(), join(folder, 'venv', 'share', 'man', 'man1', 'trawl.1'));
  assert.match(readFileSync(stdout.trim(), 'utf8'), /^\.TH TRAWL 1/);
});

test('npm run sbom lists every package that the wheel has, and no other besides those for compilers', {
  skip,
}, async () => {
  const [version] = readdirSync(join(folder, 'venv', 'lib'));
  const node = join(folder, 'venv', 'lib', version!, 'site-packages', 'trawl_retrieval', '_node', 'node_modules');
  const program = join(node, 'trawl-retrieval');
  const inWheel = new Set(packagesIn(node));
  inWheel.delete('trawl-retrieval');
  // Those of which the bundle has copies, which are not in node_modules.
  const licences = readFileSync(join(program, 'dist', 'bundle', 'LICENSES.txt'), 'utf8');
  await run(process.execPath, [join(packageRoot, 'scripts', 'sbom.mjs'), '--out', folder]);
  const file = readdirSync(folder).find((name) => name.endsWith('.cdx.json'))!;
  const { components } = JSON.parse(readFileSync(join(folder, file), 'utf8')) as {
    components: { name: string; version: string; purl: string }[];
  };
  const listed = components.filter(({ purl }) => purl.startsWith('pkg:npm/'));
  const names = new Set(listed.map(({ name }) => name));
  assert.deepEqual(
    [...inWheel].filter((name) => !names.has(name)),
    [],
  );
  const elsewhere = listed.filter(({ name }) => !inWheel.has(name));
  assert.deepEqual(
    elsewhere.filter((each) => !licences.includes(`${each.name} ${each.version}\n`)).map(({ name }) => name),
    ['node-addon-api', 'node-api-headers'],
  );
});

test('trawl demo of the wheel serves the sample, and Ctrl-C ends it', { skip }, async () => {
  const child = spawn(join(bin, 'trawl'), ['demo', '--port', '0', '--json'], { cwd: folder, env });
  const closed = once(child, 'close');
  let [printed, notes] = ['', ''];
  child.stderr.setEncoding('utf8').on('data', (text: string) => (notes += text));
  child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text));
  while (!printed.includes('\n') && child.exitCode === null) await Promise.race([once(child.stdout, 'data'), closed]);
  assert.ok(printed.includes('\n'), notes);
  const { url } = JSON.parse(printed.split('\n')[0]!) as { url: string };
  const ask = { queries: ['who designed the Eiffel Tower'], topk: 1 };
  const { body } = await postJson<{ result: { title: string }[][] }>(url, ask);
  assert.equal(body.result[0]![0]!.title, 'Eiffel Tower');
  child.kill('SIGINT');
  assert.deepEqual(await closed, [0, null], notes);
});

test('serve() gives a client and ends the server after the block, also after an exception', { skip }, async () => {
  const found = (await python(`
import json, os, trawl_retrieval as trawl
with trawl.serve("sample") as server:
    answer = server.client.search(["who designed the Eiffel Tower"], k=2)
    title = answer.results[0].hits[0].title
    first = server.pid
try:
    with trawl.serve("sample", options=["--quiet"]) as server:
        second = server.pid
        raise KeyError("mine")
except KeyError:
    pass
def runs(pid):
    try:
        os.kill(pid, 0)
        return True
    except ProcessLookupError:
        return False
print(json.dumps({"title": title, "running": [runs(first), runs(second)], "same": trawl.TrawlClient is type(server.client)}))
`)) as object;
  assert.deepEqual(found, { title: 'Eiffel Tower', running: [false, false], same: true });
});

test('Ctrl-C reaches only the Python process, which stops the server; a second one ends it at once', {
  skip,
}, async () => {
  const found = (await python(`
import json, os, signal, threading, time, trawl_retrieval as trawl
os.setpgrp()
with trawl.serve("sample") as server:
    try:
        os.killpg(0, signal.SIGINT)
        time.sleep(30)
    except KeyboardInterrupt:
        time.sleep(1)
    title = server.client.search(["who designed the Eiffel Tower"], k=1).results[0].hits[0].title
interrupted = False
try:
    with trawl.serve("sample") as server:
        # It cannot stop by itself any more.
        os.kill(server.pid, signal.SIGSTOP)
        threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
except KeyboardInterrupt:
    interrupted = True
try:
    os.kill(server.pid, 0)
    running = True
except ProcessLookupError:
    running = False
print(json.dumps({"title": title, "interrupted": interrupted, "running": running}))
`)) as object;
  assert.deepEqual(found, { title: 'Eiffel Tower', interrupted: true, running: false });
});

test('the wheel has its own copy of the client, so that trawl-client may be installed beside it', {
  skip,
}, async () => {
  const own = `
import importlib.util, json, trawl_retrieval as trawl
beside = importlib.util.find_spec("trawl_client")
print(json.dumps([trawl.TrawlClient.__module__, beside is not None]))
`;
  assert.deepEqual(await python(own), ['trawl_retrieval._client._client', false]);
  const pip = ['install', '--quiet', '--disable-pip-version-check', '--no-deps'];
  await run(join(bin, 'pip'), [...pip, join(packageRoot, 'clients', 'python')]);
  assert.deepEqual(await python(own), ['trawl_retrieval._client._client', true]);
  await run(join(bin, 'pip'), ['uninstall', '--quiet', '--yes', 'trawl-client']);
  assert.deepEqual(await python(own), ['trawl_retrieval._client._client', false]);
});

test('a wheel without the binary of its target is refused', { skip }, async () => {
  const script = join(packageRoot, 'scripts', 'wheel.mjs');
  const target = process.arch === 'arm64' ? 'linux-x64' : 'linux-arm64';
  await assert.rejects(
    run(process.execPath, [script, '--compiled-here', '--target', target, '--out', join(folder, 'other')]),
    new RegExp(`has no prebuilds/${target}/trawl\\.node\\. .npm run prebuilds -- ${target}`),
  );
  assert.deepEqual(readdirSync(join(folder, 'other')), []);
});

test('a server or command that fails raises the message and the exit code', { skip }, async () => {
  const found = (await python(`
import json, trawl_retrieval as trawl
errors = []
for start in (lambda: trawl.serve("none").__enter__(), lambda: trawl.run("search", "sample", "x", "--kk", "3")):
    try:
        start()
    except trawl.CommandError as error:
        errors.append([error.code, str(error)])
print(json.dumps(errors))
`)) as [number, string][];
  assert.deepEqual(
    found.map(([code]) => code),
    [1, 2],
  );
  assert.match(found[0]![1], /INDEX_NOT_FOUND/);
  assert.match(found[1]![1], /did you mean --k\?/);
});

test('the retrievers of LangChain and LlamaIndex find passages with their columns, also in asyncio', {
  skip,
}, async () => {
  const found = (await python(`
import asyncio, json, trawl_retrieval as trawl
from trawl_retrieval.langchain import TrawlRetriever as LangChain
from trawl_retrieval.llama_index import TrawlRetriever as LlamaIndex
question = "who designed the Eiffel Tower"
with trawl.serve("sample") as server:
    chain = LangChain(url=server.url, k=3)
    documents = chain.invoke(question)
    later = asyncio.run(chain.ainvoke(question))
    index = LlamaIndex(server.url, k=3, mode="dense")
    nodes = index.retrieve(question)
    nodes_later = asyncio.run(index.aretrieve(question))
    piped = (chain | (lambda documents: len(documents))).invoke(question)
print(json.dumps({
    "documents": [[d.id, d.metadata["title"], d.metadata["score"] > 0] for d in documents],
    "later": [d.id for d in later],
    "nodes": [[n.node.node_id, n.node.metadata["title"], n.score > 0] for n in nodes],
    "nodes_later": [n.node.node_id for n in nodes_later],
    "text": documents[0].page_content == nodes[0].node.text and len(nodes[0].node.text) > 100,
    "piped": piped,
}))
`)) as Record<string, unknown>;
  const documents = found['documents'] as [string, string, boolean][];
  assert.equal(documents.length, 3);
  assert.deepEqual(documents[0]!.slice(1), ['Eiffel Tower', true]);
  assert.deepEqual(found['nodes'], documents);
  const ids = documents.map(([id]) => id);
  assert.deepEqual([found['later'], found['nodes_later']], [ids, ids]);
  assert.deepEqual([found['text'], found['piped']], [true, 3]);
});

test('FlashRAG’s own pipeline runs with the wheel’s FlashRAGRetriever', {
  skip: skip || CLIENTS.missing(),
}, async (t) => {
  const { url } = await serveIndex(t, join(folder, 'sample'));
  const items = [
    { question: 'which bridge did John A. Roebling design', golden_answers: ['Brooklyn Bridge'] },
    { question: 'which city is the capital of Finland', golden_answers: ['none of them'] },
  ];
  const { body } = await postJson<{ result: { title: string }[][] }>(url, {
    queries: items.map(({ question }) => question),
    topk: 3,
  });
  const titles = body.result.map(([first]) => first!.title);
  const [version] = readdirSync(join(folder, 'venv', 'lib'));
  // Nothing else of the wheel's environment, whose packages are of other versions.
  const alone = join(folder, 'alone');
  mkdirSync(alone);
  symlinkSync(
    join(folder, 'venv', 'lib', version!, 'site-packages', 'trawl_retrieval'),
    join(alone, 'trawl_retrieval'),
  );
  const answer = (await CLIENTS.run(
    'flashrag_pipeline.py',
    { package: 'trawl_retrieval', url, libraries: libraryFolder(), items },
    { PYTHONPATH: alone },
  )) as { pred: string[]; contents: string[][]; em: number[] };
  assert.deepEqual(answer.pred, titles);
  assert.deepEqual(
    answer.contents.map((documents) => documents.length),
    [3, 3],
  );
  assert.deepEqual(
    answer.em,
    titles.map((title, i) => (items[i]!.golden_answers[0] === title ? 1 : 0)),
  );
});

test('MTEB runs a retrieval task with TrawlSearch, by vectors and by words', {
  skip: skip || MTEB.missing(),
}, async () => {
  const passages = readFileSync(SAMPLE_PASSAGES, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as { id: string; title: string; text?: string; contents: string })
    .map(({ id, title, text, contents }) => ({ id, title, text: text ?? contents }));
  // A title that only one passage has finds that passage.
  const titles = passages.map(({ title }) => title);
  const alone = passages.filter(({ title }) => titles.filter((other) => other === title).length === 1).slice(0, 20);
  assert.equal(alone.length, 20);
  const [version] = readdirSync(join(folder, 'venv', 'lib'));
  const { scores, errors } = (await MTEB.run('mteb_search.py', {
    libraries: join(folder, 'venv', 'lib', version!, 'site-packages'),
    corpus: passages,
    queries: alone.map(({ id, title }) => ({ id: `q-${id}`, text: title })),
    relevant: Object.fromEntries(alone.map(({ id }) => [`q-${id}`, { [id]: 1 }])),
  })) as { scores: Record<string, { ndcg: number; recall: number; name: string }>; errors: string[] };
  for (const mode of ['dense', 'bm25']) {
    const { ndcg, recall, name } = scores[mode]!;
    assert.equal(name, `trawl/token-average-256-${mode}`);
    assert.ok(recall > 0.9 && ndcg > 0.8 && ndcg <= 1, `${mode}: ${recall} ${ndcg}`);
  }
  assert.match(errors[0]!, /reranking tasks need an encoder/);
  assert.match(errors[1]!, /call index\(corpus, \.\.\.\) before search/);
});

test('mypy --strict and ruff find nothing in the Python package', { skip: skip || CLIENTS.missing() }, async () => {
  const cwd = join(packageRoot, 'clients', 'retrieval');
  const args = ['-m', 'mypy', '--cache-dir', join(folder, 'mypy'), '--python-executable', join(bin, 'python')];
  assert.match((await run(CLIENTS.python, args, { cwd })).stdout, /no issues found/);
  await run(CLIENTS.python, ['-m', 'ruff', 'check', '--no-cache', '.'], { cwd });
  await run(CLIENTS.python, ['-m', 'ruff', 'format', '--no-cache', '--check', '.'], { cwd });
});

test('the README of the Python package names what the package has', { skip }, () => {
  const text = readFileSync(join(packageRoot, 'clients', 'retrieval', 'README.md'), 'utf8');
  for (const name of [
    'trawl.serve',
    'trawl.run',
    'trawl_retrieval.langchain',
    'trawl_retrieval.llama_index',
    'trawl_retrieval.mteb',
  ])
    assert.ok(text.includes(name), name);
});
