import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { HubServer } from '../helpers/hub-server.ts';
import { tinyCheckpoint } from '../helpers/tiny-checkpoint.ts';
import { fileFolder, postJson, runTrawl, SAMPLE_PASSAGES, serveIndex } from './run-trawl.ts';

/** Small files for the launch scripts of other projects: `$file_path` is this folder. The hub is a test server. */
const folder = await fileFolder();
const CHECKPOINT = tinyCheckpoint(1);
const PREFIXES = ['--query-prefix', 'query: ', '--passage-prefix', 'passage: '];
let hub: HubServer;
let env: Record<string, string> = {};

before(async () => {
  hub = await HubServer.start({ name: 'intfloat/e5-base-v2', files: CHECKPOINT });
  env = { HF_ENDPOINT: hub.endpoint, HF_HOME: join(folder, 'no-token'), HF_TOKEN: '', HF_HUB_OFFLINE: '' };
  for (const [path, content] of Object.entries(CHECKPOINT)) {
    mkdirSync(dirname(join(folder, 'llm', 'e5-base-v2', path)), { recursive: true });
    writeFileSync(join(folder, 'llm', 'e5-base-v2', path), content);
  }
  // Vectors and a corpus as a project publishes them.
  const made = [
    ['model', 'add', './llm/e5-base-v2', '--name', 'maker', '--precision', 'float32'],
    ['index', SAMPLE_PASSAGES, '--model', 'maker', ...PREFIXES, '--out', 'made'],
  ];
  for (const line of made) {
    const { code, stderr } = await runTrawl(line, { cwd: folder });
    assert.equal(code, 0, stderr);
  }
  for (const name of ['e5_Flat.index', 'e5-base-v2_Flat.index']) {
    copyFileSync(join(folder, 'made', 'shard-00000', 'vectors.faiss'), join(folder, name));
  }
  for (const name of ['wiki-18.jsonl', 'wiki18_100w.jsonl']) symlinkSync(SAMPLE_PASSAGES, join(folder, name));
  // So that the scripts find no model.
  renameSync(join(folder, 'models'), join(folder, 'other-models'));
});

after(() => hub.close());

const SCRIPTS: readonly { readonly project: string; readonly line: string; readonly fromHub: boolean }[] = [
  {
    project: 'Search-R1’s and verl’s',
    line: '--index_path $file_path/e5_Flat.index --corpus_path $file_path/wiki-18.jsonl --topk 3 --retriever_name e5 --retriever_model intfloat/e5-base-v2 --faiss_gpu',
    fromHub: true,
  },
  {
    project: 'Agentic-R’s',
    line: '--index_path $file_path/e5-base-v2_Flat.index --corpus_path $file_path/wiki18_100w.jsonl --topk 3 --retriever_name e5 --retriever_model $file_path/llm/e5-base-v2 --faiss_gpu',
    fromHub: false,
  },
];

for (const { project, line, fromHub } of SCRIPTS) {
  test(`${project} launch line adds the model, imports the vectors and serves them`, async (t) => {
    const words = line.replaceAll('$file_path', folder).split(' ');
    const cwd = join(folder, fromHub ? 'from-hub' : 'from-folder');
    mkdirSync(cwd);
    const requestsBefore = hub.requests.length;
    const { url, child, ended } = await serveIndex(t, words.pop()!, words, { cwd, env });
    const { body } = await postJson<{ result: { document: { contents: string }; score: number }[][] }>(url, {
      queries: ['who designed the Brooklyn Bridge', 'capital of Finland'],
      topk: 3,
      return_scores: true,
    });
    assert.deepEqual(
      body.result.map((hits) => hits.length),
      [3, 3],
    );
    const facts = (await (await fetch(`${url}/v1/indexes`)).json()) as {
      indexes: { model: { prefixes: object; maxTokens: { query: number } } }[];
    };
    const { prefixes, maxTokens } = facts.indexes[0]!.model;
    // The checkpoint has 128 positions, fewer than the 256 tokens of the original server.
    assert.deepEqual([prefixes, maxTokens.query], [{ query: 'query: ', passage: 'passage: ' }, 128]);
    assert.equal(hub.requests.length > requestsBefore, fromHub);
    child.kill('SIGTERM');
    const { code, stderr } = await ended;
    assert.equal(code, 0);
    assert.match(stderr, /^trawl model add /m);
    assert.match(stderr, /^trawl import --corpus /m);
  });
}
