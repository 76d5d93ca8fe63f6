import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import Value from 'typebox/value';
import { packageRoot } from '../src/base/package-root.ts';
import { openRetriever } from '../src/search/opening/open-retriever.ts';
import type { OpenRetriever } from '../src/search/retriever.ts';
import { buildApp } from '../src/server/app.ts';
import { listen } from '../src/server/connections/listen.ts';
import type { ServerList, ServerPassage } from '../src/server/dialects/dialect.ts';
import { DIALECTS, NAMEABLE_DIALECTS, SEARCH_DIALECTS } from '../src/server/dialects/dispatch.ts';
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

test('concurrent requests in all dialects get the passages that each request gets alone', async () => {
  const queries = readFileSync(join(SAMPLE, 'questions.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .slice(0, 20)
    .map((line) => (JSON.parse(line) as { question: string }).question);
  const requests = SEARCH_DIALECTS.filter(({ name }) => name !== 'elasticsearch').flatMap((dialect) =>
    queries.map((query) => ({ dialect, query })),
  );
  const ask = async ({ dialect, query }: (typeof requests)[number]): Promise<readonly ServerList[]> => {
    const { name, method, path, client } = dialect;
    const url = (await serverOf(NAMEABLE_DIALECTS.includes(name) ? name : '')) + path;
    const fields = client.request([query], 4);
    if (method === 'POST') return client.lists(await postJson(url, fields));
    const texts = Object.entries(fields).map(([key, value]): [string, string] => [key, String(value)]);
    return client.lists(await (await fetch(`${url}?${new URLSearchParams(texts)}`)).json());
  };
  const alone: (readonly ServerList[])[] = [];
  for (const request of requests) alone.push(await ask(request));
  const together = await Promise.all(requests.map(ask));
  for (const [i, { dialect, query }] of requests.entries()) {
    assert.ok((alone[i]![0] as readonly ServerPassage[]).length >= 3, dialect.name);
    assert.deepEqual(together[i], alone[i], `${dialect.name} ${query}`);
  }
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

test('BrowseComp-Plus gets the docids of its corpus, whose rows have a URL too, and reads documents by them', async (t) => {
  const rows = ['5412', '077'].map((docid) => ({
    docid,
    text: `Bridge ${docid}.`,
    url: `https://example.org/${docid}`,
  }));
  const file = join(folder, 'browsecomp-plus.jsonl');
  writeFileSync(file, rows.map((row) => JSON.stringify(row)).join('\n'));
  const out = join(folder, 'browsecomp-plus');
  const { code, stderr } = await runTrawl(['index', file, '--bm25', '--out', out, '--quiet']);
  assert.equal(code, 0, stderr);
  const opened = await openRetriever(out);
  const mcp = { hosts: ['127.0.0.1'], tools: 'browsecomp-plus', snippetTokens: 0 } as const;
  const app = buildApp(opened, { dialects: ['browsecomp-plus'], mcp });
  t.after(async () => {
    await app.close();
    await opened.close();
  });
  const call = async (name: string, args: object): Promise<unknown> => {
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } };
    const accept = 'application/json, text/event-stream';
    const { json, text } = await postTo(app, '/mcp', body, {
      accept,
      'content-type': 'application/json',
      host: 'localhost',
    });
    const { result } = json as { result?: { content: { text: string }[] } };
    assert.ok(result, text);
    return JSON.parse(result.content[0]!.text) as unknown;
  };
  const docids = (found: unknown): string[] => (found as { docid: string }[]).map(({ docid }) => docid).toSorted();
  assert.deepEqual(docids(await call('search', { query: 'bridge' })), ['077', '5412']);
  const { json } = await postTo(app, '/retrieve', { query: 'bridge' });
  assert.deepEqual(docids((json as { result: unknown }).result), ['077', '5412']);
  for (const { docid, text } of rows) assert.deepEqual(await call('get_document', { docid }), { docid, text });
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
      if (section === 'jina-reader') {
        assert.match(body, /^Title: Brooklyn Bridge\n\nURL Source: trawl:\/\/sample\/s-0001\n/);
        continue;
      }
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
