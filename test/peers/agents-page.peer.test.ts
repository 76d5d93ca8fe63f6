import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { packageRoot } from '../../src/base/package-root.ts';
import type { QueryOrigin } from '../../src/server/recording/query-origin.ts';
import type { RecordedSearch } from '../../src/server/recording/recorded-search.ts';
import { docExamples } from '../helpers/doc-examples.ts';
import { CLIENTS, libraryFolder } from '../helpers/peers.ts';
import { sampleServer } from '../helpers/sample-server.ts';

/** Checks docs/agents.md against the projects' own packages. */
const skip = CLIENTS.missing();
const server = await sampleServer();
const EXAMPLES = docExamples('agents.md');
const QUERIES = ['who designed the Brooklyn Bridge', 'longest river of the Czech Republic'];

function library(path: string): string {
  return readFileSync(join(libraryFolder(), path), 'utf8');
}

function exampleOf(section: string): string {
  const found = EXAMPLES.find((example) => example.section === section);
  assert.ok(found, section);
  return found.code;
}

test('every Python example prints the output that the page shows', { skip }, async () => {
  const examples = EXAMPLES.filter(({ language }) => language === 'python');
  const env = { ...process.env, PYTHONPATH: join(packageRoot, 'clients', 'python', 'src'), PYTHONUTF8: '1' };
  const printed = await Promise.all(
    examples.map(async ({ code, section }) => {
      const program = code.replaceAll('http://127.0.0.1:8000', server.url);
      const { stdout } = await promisify(execFile)(CLIENTS.python, ['-c', program], { env });
      return { section, stdout };
    }),
  );
  assert.deepEqual(
    printed,
    examples.map(({ section, output }) => ({ section, stdout: output })),
  );
});

/** What the projects have where the page adds its lines, and the requests that they then send. */
const TRAJECTORY_PROGRAM = `
import contextvars, httpx, json, sys, uuid
from types import SimpleNamespace
url, verl, skyrl, slime = json.load(sys.stdin)
body = {"queries": ["a"], "topk": 1}

self = SimpleNamespace(retrieval_service_url=url)
agent_data = SimpleNamespace(request_id="of-verl", assistant_turns=2)
httpx.post(eval(verl.strip()), json=body).raise_for_status()

env_config = SimpleNamespace(search_url=url)
self = SimpleNamespace(tool_group=SimpleNamespace(search_url=url), turns=3)
exec(skyrl)
httpx.post(self.tool_group.search_url, json=body).raise_for_status()

sample, turn = SimpleNamespace(session_id="of-slime", metadata={"id": "q-9"}), 4
exec(slime)
httpx.post(url, json=body, params=ORIGIN.get()).raise_for_status()
`;

test('the lines that the page adds to verl, SkyRL and slime name trajectory, turn and question', { skip }, async () => {
  const recorded: (readonly QueryOrigin[] | undefined)[] = [];
  const record = { record: (_request: object, { origins }: RecordedSearch) => void recorded.push(origins) };
  const url = `${await server.serve({ record })}/retrieve`;
  const lines = EXAMPLES.filter(
    ({ section, language }) => section.startsWith('Name the trajectory') && language === '',
  );
  assert.equal(lines.length, 3);
  const running = promisify(execFile)(CLIENTS.python, ['-c', TRAJECTORY_PROGRAM]);
  running.child.stdin!.end(JSON.stringify([url, ...lines.map(({ code }) => code)]));
  await running;
  const [verl, skyrl, slime] = recorded.flatMap((origins) => origins ?? []);
  assert.deepEqual(verl, { trajectory: 'of-verl', turn: 2 });
  assert.match(skyrl!.trajectory!, /^[0-9a-f]{32}$/);
  assert.deepEqual({ ...skyrl, trajectory: '' }, { trajectory: '', turn: 3 });
  assert.deepEqual(slime, { trajectory: 'of-slime', turn: 4, questionId: 'q-9' });
});

test('SkyRL’s and verl’s own clients read the answers', { skip }, async () => {
  const answer = (await CLIENTS.run('library_clients.py', {
    url: `${server.url}/retrieve`,
    libraries: libraryFolder(),
    queries: QUERIES,
    tool: exampleOf('verl'),
  })) as Record<string, unknown>;
  const { outcomes } = await server.retriever.retrieve({ queries: QUERIES, k: 2 });
  const contents = outcomes.map((outcome) => {
    assert.ok(outcome.ok);
    return outcome.hits.map(({ document }) => {
      const { title, text } = JSON.parse(document) as { title: string; text: string };
      return [`"${title}"`, text] as const;
    });
  });
  const skyrl = contents[0]!.map(([title, text], i) => `Doc ${i + 1}: ${title}\n${text}\n`).join('');
  const [, observed] = /^\n<information>(.*)<\/information>\n$/.exec(String(answer.skyrl)) ?? [];
  assert.deepEqual(JSON.parse(observed!), { result: skyrl });
  const verl = contents.map((hits) =>
    hits
      .map(([title, text], i) => `Doc ${i + 1} (Title: ${title})\n${text}\n\n`)
      .join('')
      .trim(),
  );
  assert.equal(answer.verl, verl.join('\n---\n'));
  assert.deepEqual([answer.verl_status, answer.verl_total, answer.verl_refused], ['success', 4, 'api_error']);
});

test('RLinf’s own clients read documents, URLs and pages of a corpus without URLs, also those for Serper and Jina’s reader', {
  skip,
}, async () => {
  const url = await server.serve({ dialects: ['asearcher'] });
  const [query] = QUERIES;
  const answer = (await CLIENTS.run('rlinf_clients.py', {
    address: new URL(url).host,
    libraries: libraryFolder(),
    query,
    topk: 3,
  })) as Record<'searched' | 'again' | 'found', { documents: string[]; urls: string[] }> &
    Record<'pages' | 'read', string[]>;
  const { outcomes } = await server.retriever.retrieve({ queries: [query!], k: 3 });
  assert.ok(outcomes[0]?.ok === true);
  const rows = outcomes[0].hits.map(({ document }) => JSON.parse(document) as { title: string; text: string });
  const documents = rows.map(({ title, text }) => `"${title}"\n${text}`);
  assert.deepEqual([answer.searched.documents, answer.searched.urls], [documents, rows.map(({ title }) => title)]);
  assert.deepEqual(answer.again, answer.searched);
  assert.deepEqual(answer.pages, [...documents, '']);
  assert.equal(answer.found.urls.length, 3);
  assert.deepEqual(
    answer.found.documents.map((found) => found.slice(0, 30)),
    rows.map(({ title, text }) => `${title} ${text}`.slice(0, 30)),
  );
  const read = rows.map(
    ({ title, text }, i) => `Title: ${title}\n\nURL Source: ${answer.found.urls[i]}\n\nMarkdown Content:\n${text}\n`,
  );
  assert.deepEqual(answer.read, [
    ...read,
    'The current URL cannot be searched. Please switch to a different URL and try again.',
  ]);
  const setting = /`tools\.search\.(\w+)=/.exec(readFileSync(join(packageRoot, 'docs', 'agents.md'), 'utf8'))?.[1];
  for (const path of ['searchr1/search_tool_worker.py', 'wideseek_r1/tools.py']) {
    assert.ok(library(`rlinf/agents/${path}`).includes(`cfg.tools.search.${setting}`), path);
  }
});

test('verl’s tool class reads every setting that the page shows', { skip }, async () => {
  const { tool, type } = (await CLIENTS.run('verl_tool.py', {
    libraries: libraryFolder(),
    yaml: exampleOf('verl'),
  })) as { tool: { class_name: string; config: Record<string, unknown> }; type: string };
  assert.equal(type, 'function');
  const source = library(`${tool.class_name.split('.').slice(0, -1).join('/')}.py`);
  assert.match(source, new RegExp(`^class ${tool.class_name.split('.').at(-1)}\\(BaseTool\\)`, 'm'));
  for (const key of Object.keys(tool.config)) assert.ok(source.includes(`config.get("${key}"`), key);
  assert.match(library('verl/trainer/config/rollout/rollout.yaml'), /^ *tool_config_path:/m);
});

test('SkyRL’s settings are fields of its configuration', { skip }, () => {
  const config = library('skyrl/train/config/config.py');
  const field = (className: string, name: string): string => {
    const body = config.split(`class ${className}(BaseConfig):`)[1]?.split('\n@dataclass')[0] ?? '';
    const [, type] = new RegExp(`^    ${name}: (\\w+)`, 'm').exec(body) ?? [];
    assert.ok(type, `${className} has no ${name}`);
    return type;
  };
  assert.match(config, /^ {4}environment: EnvironmentConfig/m);
  const settings = exampleOf('SkyRL').trim().split('\n');
  assert.equal(settings.length, 4);
  for (const setting of settings) {
    const path = setting.split('=')[0]!.split('.').slice(1);
    let className = 'EnvironmentConfig';
    // The fields of the search environment are defined in skyrl-gym.
    for (const name of path.slice(0, 2)) className = field(className, name);
    if (path.length > 2) {
      assert.equal(className, 'SearchEnvConfig');
      assert.match(library('skyrl-gym/skyrl_gym/envs/search/env.py'), new RegExp(`^    ${path[2]}: `, 'm'));
    }
  }
  const agent = library('skyrl-agent/skyrl_agent/tools/local_search.py');
  for (const name of ['LOCAL_SEARCH_URL', 'LOCAL_SEARCH_TOP_K']) assert.ok(agent.includes(name), name);
});

test('FlashRAG’s pipelines take a retriever, and its retriever reads topk from the configuration', { skip }, () => {
  const pipeline = library('flashrag/pipeline/pipeline.py');
  assert.match(pipeline, /def __init__\(self, config, prompt_template=None, retriever=None, generator=None\)/);
  const retriever = library('flashrag/retriever/retriever.py');
  for (const key of ['retrieval_topk', 'retrieval_batch_size']) assert.ok(retriever.includes(`config["${key}"]`), key);
});

for (const [project, why] of [
  ['slime', 'PyPI’s slime is another package (mixed models)'],
  ['rLLM', 'it is not on PyPI'],
  ['Search-R1', 'it is not on PyPI'],
  ['Agentic-R', 'it is not on PyPI'],
] as const) {
  test(`${project}’s settings are compared with its package`, { skip: `${why}; the page says so` }, () => undefined);
}

test('the page names the versions that are tested', () => {
  const page = readFileSync(join(packageRoot, 'docs', 'agents.md'), 'utf8');
  const pinned = ['requirements-clients.txt', 'requirements-libraries.txt']
    .map((file) => readFileSync(join(packageRoot, 'test', 'peers', file), 'utf8'))
    .join('\n');
  for (const [, name, version] of pinned.matchAll(/^(verl|skyrl|skyrl-gym|flashrag-dev|rlinf)==(.*)$/gm)) {
    assert.ok(page.includes(`${name} ${version}`), `${name} ${version}`);
  }
  assert.ok(skip !== false || existsSync(libraryFolder()));
});
