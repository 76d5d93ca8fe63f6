import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import Value from 'typebox/value';
import { packageRoot } from '../src/base/package-root.ts';
import { withContents } from '../src/index/passages/contents.ts';
import { documentFields } from '../src/index/passages/document-fields.ts';
import type { Hit } from '../src/search/calls/query-outcome.ts';
import { openRetriever } from '../src/search/opening/open-retriever.ts';
import type { OpenRetriever } from '../src/search/retriever.ts';
import { buildApp } from '../src/server/app.ts';
import { listen } from '../src/server/connections/listen.ts';
import { DIALECTS, NAMEABLE_DIALECTS } from '../src/server/dialects/dispatch.ts';
import { tsvLine } from '../src/server/dialects/r1-searcher.ts';
import { excerpt, wordsOf } from '../src/server/excerpt.ts';
import { passageName } from '../src/server/passage-name.ts';
import { fileFolder, runTrawl, SAMPLE } from './cli/run-trawl.ts';
import { FakeReranker } from './helpers/fake-reranker.ts';
import { buildSampleIndex } from './helpers/sample-index.ts';
import { postTo } from './server/build.ts';

const folder = await fileFolder();
const servers = new Map<string, { app: ReturnType<typeof buildApp>; url: Promise<string> }>();
let retriever: OpenRetriever;

before(async () => {
  // All scores are equal, so that the order stays that of the search.
  const reranker = new FakeReranker({ score: () => 1 });
  retriever = await openRetriever(await buildSampleIndex(folder), { encoderThreads: 1, reranker });
});

after(async () => {
  for (const { app } of servers.values()) {
    app.server.closeAllConnections();
    await app.close();
  }
  await retriever.close();
});

/** The server with `--dialect DIALECT`; '' for none. All servers share one index. */
function serverOf(dialect: string): Promise<string> {
  const known = servers.get(dialect);
  if (known !== undefined) return known.url;
  const app = buildApp(retriever, { dialects: dialect === '' ? [] : [dialect] });
  const url = listen(app, { host: '127.0.0.1', port: 0 });
  servers.set(dialect, { app, url });
  return url;
}

async function postJson<T>(url: string, body: unknown): Promise<T> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  assert.equal(response.status, 200, await response.clone().text());
  return (await response.json()) as T;
}

const parsed = (hit: Hit): unknown => JSON.parse(withContents(hit.document));
const scored = (hit: Hit): unknown => ({ document: parsed(hit), score: hit.score });

/** The expected reply of each dialect to one query, made from the retriever's hits. */
const ASKED: readonly {
  readonly dialect?: string;
  readonly path: string;
  body(query: string): object;
  reply(hits: readonly Hit[], query: string): unknown;
}[] = [
  {
    path: '/retrieve',
    body: (query) => ({ queries: [query], topk: 4, return_scores: true }),
    reply: (hits) => ({ result: [hits.map(scored)] }),
  },
  {
    path: '/retrieve',
    body: (query) => ({ queries: [query, query], topk: 4 }),
    reply: (hits) => ({ result: [hits.map(parsed), hits.map(parsed)] }),
  },
  {
    path: '/retrieve',
    body: (query) => ({ queries: [query], topk_retrieval: 4, topk_rerank: 4, return_scores: true }),
    reply: (hits) => ({ result: [hits.map((hit) => ({ document: parsed(hit), score: 1 }))] }),
  },
  {
    dialect: 'search-r1-rerank-text',
    path: '/retrieve',
    body: (query) => ({ queries: [query], topk_retrieval: 4, topk_rerank: 4 }),
    reply: (hits) => ({ result: [hits.map(({ document }) => documentFields(document).contents)] }),
  },
  {
    path: '/retrieve/rerank',
    body: (query) => ({ queries: [query], topk: 4, topk_retrieval: 4 }),
    reply: (hits) => ({
      result: [hits.map(({ document }) => ({ document: documentFields(document).contents, score: 1 }))],
    }),
  },
  {
    dialect: 'stepsearch',
    path: '/retrieve',
    body: (query) => ({ queries: [query], topk: 4 }),
    reply: (hits) => ({ result: [hits.map(scored)] }),
  },
  {
    dialect: 'asearcher',
    path: '/retrieve',
    body: (query) => ({ queries: [query], topk: 4 }),
    reply: (hits) => ({
      result: [
        hits.map(({ document }) => ({ url: documentFields(document).title, ...JSON.parse(withContents(document)) })),
      ],
    }),
  },
  {
    path: '/retrieve',
    body: (query) => ({ query, topk: 4, return_scores: true }),
    reply: (hits) => ({ result: [hits.map(scored)] }),
  },
  {
    path: '/retrieve',
    body: (query) => ({ query, top_k: 4 }),
    reply: (hits, query) => ({
      query,
      method: 'dense_exact',
      results: hits.map((hit, i) => ({ id: `doc_${i + 1}`, content: parsed(hit), score: hit.score })),
      num_results: hits.length,
    }),
  },
  {
    dialect: 'rllm-legacy',
    path: '/retrieve',
    body: (query) => ({ query, k: 4 }),
    reply: (hits, query) => ({ query, method: 'dense_exact', results: hits.map(scored), num_results: hits.length }),
  },
  {
    dialect: 'zerosearch',
    path: '/retrieve',
    body: (query) => ({ query, top_k: 4 }),
    reply: (hits) =>
      hits.map(({ document, score }) => {
        const { id, title, contents } = documentFields(document);
        return { id, title, text: contents, score };
      }),
  },
  {
    dialect: 'agent-lightning',
    path: '/retrieve',
    body: (query) => ({ queries: [query], topk: 4 }),
    reply: (hits) => ({
      result: [
        hits.map(({ document, score }) => {
          const { id, title, text, contents } = documentFields(document);
          return { document: { id, title, text, contents }, score };
        }),
      ],
    }),
  },
  {
    path: '/search',
    body: (query) => ({ query_list: [query], top_k: 4 }),
    reply: (hits) => ({ ret_psg: [hits.map(({ document }) => documentFields(document).contents)] }),
  },
  {
    path: '/search',
    body: (query) => ({ query, n_docs: 4 }),
    reply: (hits, query) => ({
      message: 'Search completed.',
      query,
      n_docs: 4,
      nprobe: null,
      results: {
        scores: [hits.map(({ score }) => score)],
        passages: [hits.map(({ document }) => documentFields(document).contents)],
        IDs: [hits.map(({ row }) => [0, row])],
      },
    }),
  },
  {
    path: '/search',
    body: (query) => ({ q: query, num: 4 }),
    reply: (hits, query) => ({
      searchParameters: { q: query, type: 'search', num: 4, page: 1 },
      organic: hits.map(({ row, document }, i) => {
        const fields = documentFields(document);
        const { title, url } = passageName(retriever.info.index, row, fields);
        return { title, link: url, snippet: excerpt(fields.text, wordsOf(query), 1_000).text, position: i + 1 };
      }),
    }),
  },
  {
    path: '/queries',
    body: (query) => ({ queries: [query], k: 4 }),
    reply: (hits, query) => ({ answers: [hits.map(tsvLine)], queries: [query] }),
  },
  {
    path: '/search',
    body: (query) => ({ query, top_n: 4, return_score: true }),
    reply: (hits) => [hits.map(idAndContents), hits.map(({ score }) => score)],
  },
  {
    path: '/batch_search',
    body: (query) => ({ query: [query], top_n: 4 }),
    reply: (hits) => [hits.map(idAndContents)],
  },
];

function idAndContents({ document }: Hit): object {
  const { id, contents } = documentFields(document);
  return { id, contents };
}

test('concurrent requests in all dialects return the hits of the retriever, each in its format', async () => {
  const queries = readFileSync(join(SAMPLE, 'questions.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .slice(0, 20)
    .map((line) => (JSON.parse(line) as { question: string }).question);
  const { outcomes } = await retriever.retrieve({ queries, k: 4 });
  const asked = queries.flatMap((query, q) =>
    ASKED.map(async ({ dialect = '', path, body, reply }) => {
      const answer = await postJson(`${await serverOf(dialect)}${path}`, body(query));
      const outcome = outcomes[q]!;
      assert.ok(outcome.ok);
      assert.deepEqual(answer, reply(outcome.hits, query), `${dialect} ${path}`);
    }),
  );
  const texts = queries.map(async (query, q) => {
    const url = await serverOf('');
    const { neighbor_texts } = await postJson<{ neighbor_texts: string[][] }>(`${url}/embed_and_retrieve`, {
      prompts: [query],
      top_k: 4,
    });
    const native = await postJson<{ results: { hits: { row: number; score: number }[] }[] }>(`${url}/v1/search`, {
      queries: [query],
      k: 4,
    });
    const outcome = outcomes[q]!;
    assert.ok(outcome.ok);
    assert.deepEqual(neighbor_texts, [outcome.hits.map(({ document }) => documentFields(document).contents)]);
    assert.deepEqual(
      native.results[0]!.hits.map(({ row, score }) => [row, score]),
      outcome.hits.map(({ row, score }) => [row, score]),
    );
  });
  const observations = queries.map(async (query, q) => {
    const answer = await postJson<{ observations: string[] }>(`${await serverOf('')}/get_observation`, {
      trajectory_ids: ['a'],
      actions: [`<search>${query}</search>`],
    });
    const outcome = outcomes[q]!;
    assert.ok(outcome.ok);
    const shown = outcome.hits.slice(0, 3).map(({ document }, i) => {
      const [title, ...text] = documentFields(document).contents.split('\n');
      return `Doc ${i + 1}(Title: ${title}) ${text.join('\n')}`;
    });
    assert.deepEqual(answer.observations, [`\n\n<information>${shown.join('\n').trim()}</information>\n\n`]);
  });
  const pages = outcomes.map(async (outcome) => {
    assert.ok(outcome.ok);
    const ids = outcome.hits.map(({ document }) => documentFields(document).id!);
    const urls = outcome.hits.map(({ document }) => documentFields(document).title!);
    const { result } = await postJson<{ result: { id?: string; passages?: string[] }[] }>(
      `${await serverOf('')}/access`,
      { urls },
    );
    for (const [i, page] of result.entries()) assert.ok((page.passages ?? [page.id]).includes(ids[i]), urls[i]);
  });
  await Promise.all([...asked, ...texts, ...observations, ...pages]);
});

test('a query with a question gets the same hits as the text that an Agentic-R client composes', async () => {
  const url = await serverOf('');
  const question = 'Where was the designer of the Sydney Opera House born?';
  const query = 'birthplace of the architect';
  const composed = `${question} [SEP] ${query}`;
  const search = (queries: unknown[]) =>
    postJson<{ results: { embedded: { text: string; tokens: number }; hits: unknown[] }[] }>(`${url}/v1/search`, {
      queries,
      k: 5,
    });
  const { results } = await search([{ question, query }, composed]);
  assert.equal(results[0]!.embedded.text, composed);
  assert.deepEqual(results[0], results[1]);
  const lists = await Promise.all([
    postJson<{ result: unknown[][] }>(`${url}/retrieve`, { queries: [query], questions: [question], topk: 5 }),
    postJson<{ result: unknown[][] }>(`${url}/retrieve`, { query, question, topk: 5 }),
    postJson<{ result: unknown[][] }>(`${url}/retrieve`, { queries: [composed], topk: 5 }),
  ]);
  assert.deepEqual(lists[0], lists[2]);
  assert.deepEqual(lists[1], lists[2]);
});

test('with truncate: question a long question is truncated instead of its query, and the reply says so', async () => {
  const url = await serverOf('');
  const question = 'where does this very long question end '.repeat(100);
  const results = await Promise.all(
    (['tail', 'question'] as const).map(async (truncate) => {
      const answer = await postJson<{ results: { embedded: { tokens: number; cut: string }; hits: unknown[] }[] }>(
        `${url}/v1/search`,
        { queries: [{ question, query: 'longest river of the Czech Republic' }], truncate },
      );
      return answer.results[0]!;
    }),
  );
  assert.deepEqual(
    results.map(({ embedded }) => [embedded.tokens, embedded.cut]),
    [
      [256, 'tail'],
      [256, 'question'],
    ],
  );
  assert.notDeepEqual(results[0]!.hits, results[1]!.hits);
});

test('the inner product of two embeddings is the score of the search', async () => {
  const url = await serverOf('');
  const passage = JSON.parse(
    (await retriever.find({ by: 'id', keys: ['s-0001'], limit: 1 })).found[0]![0]!.document,
  ) as {
    title: string;
    text: string;
  };
  const embed = async (input: string, inputType: string): Promise<number[]> => {
    const { data } = await postJson<{ data: { embedding: number[] }[] }>(`${url}/v1/embeddings`, {
      input,
      model: `token-average-256-${inputType}`,
    });
    return data[0]!.embedding;
  };
  const query = await embed('who designed the Brooklyn Bridge', 'query');
  const document = await embed(`"${passage.title}"\n${passage.text}`, 'passage');
  const { outcomes } = await retriever.retrieve({ queries: ['who designed the Brooklyn Bridge'], k: 1 });
  assert.ok(outcomes[0]!.ok);
  const product = query.reduce((sum, value, i) => sum + value * document[i]!, 0);
  assert.equal(Math.fround(product), outcomes[0]!.hits[0]!.score);
});

test('/access finds a page by its title and by the URL of a wiki', async () => {
  const url = await serverOf('');
  const { result } = await postJson<{ result: ({ id: string } | null)[] }>(`${url}/access`, {
    urls: ['Vltava', 'https://en.wikipedia.org/wiki/Brooklyn_Bridge', 'https://en.wikipedia.org/wiki/None_such'],
  });
  assert.deepEqual(
    result.map((page) => page?.id ?? null),
    ['s-0066', 's-0001', null],
  );
});

test('/queries returns lines of R1-Searcher’s corpora unchanged', async (t) => {
  const lines = [
    '0\tTitle: 1984 Text:  1984 is a novel by George Orwell.',
    '1\t"Title: ""Quoted"" Text:  He said ""no"" twice."',
    '2\tA   A A (named , plural As',
    '3\tMany   spaces    and\ta tab, \u2028 and \u0085 in it',
    '007\tBond   An id that is no canonical number stays as it is written.',
  ];
  const file = join(folder, 'abstracts.tsv');
  writeFileSync(file, `\ufeff${lines.join('\r\n')}\n`);
  const out = join(folder, 'abstracts');
  const { code, stderr } = await runTrawl(['index', file, '--tsv-layout', 'r1-searcher', '--out', out, '--quiet']);
  assert.equal(code, 0, stderr);
  const lined = await openRetriever(out, { encoderThreads: 1 });
  const app = buildApp(lined);
  t.after(async () => {
    await app.close();
    await lined.close();
  });
  const { status, json } = await postTo(app, '/queries', { queries: ['a novel'], k: 10 });
  assert.equal(status, 200);
  assert.deepEqual((json as { answers: string[][] }).answers[0]!.toSorted(), lines.toSorted());
});

/** The curl lines of a page, each with the value of `--dialect` that its section names. */
function curlLines(page: string): { line: string; dialect: string; section: string }[] {
  const text = readFileSync(join(packageRoot, 'docs', page), 'utf8');
  return text.split(/^## /m).flatMap((part) => {
    const section = part.slice(0, part.indexOf('\n'));
    const dialect = part.includes('Named by `--dialect') && NAMEABLE_DIALECTS.includes(section) ? section : '';
    return [...part.matchAll(/^```sh\n(curl [\s\S]*?)\n```/gm)].map(([, line]) => ({ line: line!, dialect, section }));
  });
}

/** Least number of curl lines of pages with few of them. */
const LEAST_LINES: Readonly<Record<string, number>> = { 'agents.md': 2, 'rerank.md': 2 };

for (const page of ['dialects.md', 'http-api.md', 'agents.md', 'rerank.md']) {
  test(`every curl line of docs/${page} gets a reply that matches the schema of its dialect`, async () => {
    const lines = curlLines(page);
    assert.ok(lines.length >= (LEAST_LINES[page] ?? 6), `${lines.length} lines`);
    for (const { line, dialect, section } of lines) {
      // Elasticsearch's interface has an address of its own.
      if (!line.includes('http://127.0.0.1:8000')) continue;
      const url = await serverOf(dialect);
      const command = `${line.replace('http://127.0.0.1:8000', url)} -w '\\n%{http_code}'`;
      const { stdout } = await promisify(execFile)('bash', ['-c', command]);
      const [body, status] = [stdout.slice(0, stdout.lastIndexOf('\n')), stdout.slice(stdout.lastIndexOf('\n') + 1)];
      assert.equal(status, '200', `${section}: ${body}`);
      const path = new URL(/http:\S+/.exec(line)![0]).pathname;
      const dialects = DIALECTS.filter((each) => each.path === path && Object.keys(each.example).length > 0);
      const own = dialects.find(({ name }) => name === section || name === dialect);
      const candidates = own === undefined ? dialects : [own];
      const reply: unknown = JSON.parse(body);
      if (candidates.length > 0) {
        assert.ok(
          candidates.some((each) => Value.Check(each.reply, reply)),
          `${section}: ${body.slice(0, 300)}`,
        );
      }
    }
  });
}

/** Sections of dialects with several paths. */
const SECTIONS: Readonly<Record<string, string>> = {
  'research-batch': 'research',
  'foldagent-open': 'foldagent',
  'openresearcher-content': 'openresearcher',
  'search-r1-rerank-text': 'search-r1-rerank',
  'rerank-v2': 'rerank',
  'verl-tool-question': 'verl-tool',
};

test('every dialect has a section with a curl line and a row in the table', () => {
  const text = readFileSync(join(packageRoot, 'docs', 'dialects.md'), 'utf8');
  const sections = new Set(curlLines('dialects.md').map(({ section }) => section));
  for (const { name, example, path } of DIALECTS) {
    if (Object.keys(example).length === 0 || path.startsWith('/v1/')) continue;
    const section = SECTIONS[name] ?? name;
    assert.ok(sections.has(section), name);
    assert.ok(text.includes(`| \`${section}\` |`), name);
  }
});
