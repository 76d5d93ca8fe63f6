import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { TrawlError } from '../../src/base/errors.ts';
import type { QueryOutcome } from '../../src/search/calls/query-outcome.ts';
import type { RecordedSearch } from '../../src/server/recording/recorded-search.ts';
import type { McpConfig, ServerConfig } from '../../src/server/server-config.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { serve } from './build.ts';

const ROWS = [
  { doc_id: 'd1', passage: 0, id: 'd1-0', title: 'Ants', text: 'one two three', url: 'https://example.org/ants' },
  { doc_id: 'd1', passage: 1, id: 'd1-1', title: 'Ants', text: 'four naïve', url: 'https://example.org/ants' },
  { id: 'd2', title: 'Bees', text: 'Bees fly over the sea.' },
].map((row) => JSON.stringify(row));

interface Reply {
  readonly isError?: boolean;
  readonly content: readonly { readonly type: string; readonly text: string }[];
  readonly structuredContent?: unknown;
}

type Call = (name: string, args: Record<string, unknown>) => Promise<Reply>;

interface Connected {
  readonly client: Client;
  readonly call: Call;
  readonly retriever: FakeRetriever;
}

/** A client of a server with a set of tools. */
async function connected(
  t: TestContext,
  mcp: Omit<McpConfig, 'hosts'>,
  config: Partial<ServerConfig> = {},
  retriever = new FakeRetriever({ documents: ROWS }),
): Promise<Connected> {
  const { url } = await serve(t, retriever, { ...config, mcp: { hosts: [], ...mcp } });
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)));
  t.after(() => client.close());
  // After listing the tools, the SDK checks structured content against the output schemas.
  await client.listTools();
  const call: Call = async (name, args) => (await client.callTool({ name, arguments: args })) as unknown as Reply;
  return { client, call, retriever };
}

const BROWSECOMP = { tools: 'browsecomp-plus' } as const;
const SCORES = [0.9, 0.8, 0.7].map(Math.fround);

test('BrowseComp-Plus’s client finds search and get_document, each with one argument and no output schema', async (t) => {
  const { client } = await connected(t, BROWSECOMP);
  const { tools } = await client.listTools();
  assert.deepEqual(
    tools.map(({ name, inputSchema, outputSchema }) => [name, inputSchema.required, outputSchema]),
    [
      ['search', ['query'], undefined],
      ['get_document', ['docid'], undefined],
    ],
  );
  assert.equal(client.getInstructions(), undefined);
});

test('BrowseComp-Plus’s search gives --topk distinct documents as indented JSON in one text block', async (t) => {
  const recorded: RecordedSearch[] = [];
  const record = { record: (_request: object, search: RecordedSearch) => void recorded.push(search) };
  const { call } = await connected(t, { ...BROWSECOMP, snippetTokens: 4 }, { topk: 2, record });
  const { content, structuredContent } = await call('search', { query: '' });
  const expected = [
    { docid: 'd1', score: SCORES[0], snippet: 'one two three four' },
    { docid: 'd2', score: SCORES[2], snippet: 'Bees fly over the' },
  ];
  assert.deepEqual([content.length, structuredContent], [1, undefined]);
  assert.equal(content[0]!.text, JSON.stringify(expected, null, 2));
  assert.deepEqual(
    recorded.map(({ queries, k }) => [queries, k]),
    [[[''], 2]],
  );
});

test('BrowseComp-Plus’s search gives a single hit without a list, and whole texts without a limit', async (t) => {
  const { call } = await connected(t, { ...BROWSECOMP, snippetTokens: 0 }, { topk: 1 });
  const { content } = await call('search', { query: '' });
  const expected = { docid: 'd1', score: SCORES[0], snippet: 'one two three four naïve' };
  assert.equal(content[0]!.text, JSON.stringify(expected, null, 2));
  assert.match(content[0]!.text, /^\{\n {2}"docid": "d1",\n {2}"score": /);
});

test('BrowseComp-Plus’s get_document reads a document by its docid, and an unknown one has no text block', async (t) => {
  const { call } = await connected(t, BROWSECOMP);
  const { content } = await call('get_document', { docid: 'd1' });
  assert.equal(content[0]!.text, '{\n  "docid": "d1",\n  "text": "one two three four naïve"\n}');
  assert.deepEqual((await call('get_document', { docid: 'none' })).content, []);
  const empty = await connected(t, BROWSECOMP, {}, new FakeRetriever({ documents: [] }));
  assert.deepEqual((await empty.call('search', { query: 'x' })).content, []);
});

test('BrowseComp-Plus’s tools refuse a docid of another type, other arguments and the tools of another set', async (t) => {
  const { call, retriever } = await connected(t, BROWSECOMP);
  for (const [name, args, message] of [
    ['get_document', { docid: 12 }, /INVALID_REQUEST.*docid/],
    ['search', { query: 'x', k: 3 }, /INVALID_REQUEST.*k/],
    ['search', {}, /INVALID_REQUEST.*query/],
    ['fetch', { id: 'd1' }, /Tool "fetch" not found\. Expected search or get_document\./],
  ] as const) {
    const { isError, content } = await call(name, args);
    assert.equal(isError, true, name);
    assert.match(content[0]!.text, message);
  }
  assert.equal(retriever.calls.length, 0);
});

const DR_TULU = { tools: 'dr-tulu' } as const;

/** DR Tulu's client: only the first block counts, as one JSON object, and a key `error` is a failure. */
async function drTulu(call: Call, name: string, args: Record<string, unknown>): Promise<Record<string, unknown>> {
  const { isError, content } = await call(name, args);
  if (isError === true) throw new Error(content[0]!.text);
  return JSON.parse(content[0]!.text) as Record<string, unknown>;
}

test('DR Tulu’s client lists its tools by their names', async (t) => {
  const { client } = await connected(t, DR_TULU);
  const { tools } = await client.listTools();
  assert.deepEqual(
    tools.map(({ name }) => name),
    [
      'massive_serve_search',
      'serper_google_webpage_search',
      'semantic_scholar_snippet_search',
      'vllm_hosted_reranker',
      'serper_fetch_webpage_content',
      'jina_fetch_webpage_content',
      'crawl4ai_fetch_webpage_content',
    ],
  );
});

test('DR Tulu’s search tools return what its client reads, whatever service the arguments name', async (t) => {
  const { call, retriever } = await connected(t, DR_TULU);
  const massive = await drTulu(call, 'massive_serve_search', {
    query: '',
    n_docs: 2,
    domains: 'dpr_wiki_contriever_ivfpq',
    base_url: 'host:1',
    nprobe: 64,
  });
  assert.deepEqual(massive.data, [
    { passage: '"Ants"\none two three', score: SCORES[0], doc_id: [0, 0] },
    { passage: '"Ants"\nfour naïve', score: SCORES[1], doc_id: [0, 1] },
  ]);
  const web = await drTulu(call, 'serper_google_webpage_search', { query: '', num_results: 1, gl: 'us', hl: 'en' });
  assert.deepEqual(web.organic, [
    { title: 'Ants', link: 'https://example.org/ants', snippet: 'one two three', position: 1 },
  ]);
  const papers = await drTulu(call, 'semantic_scholar_snippet_search', { query: '', limit: 3, year: null });
  assert.deepEqual((papers.data as unknown[])[2], {
    snippet: { text: 'Bees fly over the sea.', snippetKind: 'body' },
    paper: { title: 'Bees', corpusId: 'd2' },
    score: SCORES[2],
  });
  await drTulu(call, 'massive_serve_search', { query: '' });
  assert.deepEqual(
    retriever.calls.map(({ k }) => k),
    [2, 1, 3, 10],
  );
});

test('DR Tulu’s reranker orders texts by the server’s model', async (t) => {
  const { call } = await connected(t, DR_TULU);
  const args = { query: 'q', documents: ['a', 'longest', 'long'], model_name: 'any', api_url: 'http://localhost:1' };
  const all = await drTulu(call, 'vllm_hosted_reranker', { ...args, top_n: -1 });
  assert.deepEqual(all, {
    method: 'vllm_hosted',
    model_name: 'fake-reranker',
    results: [
      { index: 1, relevance_score: 7, document: { text: 'longest' } },
      { index: 2, relevance_score: 4, document: { text: 'long' } },
      { index: 0, relevance_score: 1, document: { text: 'a' } },
    ],
  });
  const first = await drTulu(call, 'vllm_hosted_reranker', { ...args, top_n: 1 });
  assert.equal((first.results as unknown[]).length, 1);
});

test('DR Tulu’s page tools read the link of a search; an unknown one is a reply with an error', async (t) => {
  const { call } = await connected(t, DR_TULU);
  const text = 'one two three four naïve';
  const url = 'https://example.org/ants';
  assert.deepEqual(await drTulu(call, 'serper_fetch_webpage_content', { webpage_url: url, include_markdown: true }), {
    url,
    success: true,
    text,
    markdown: text,
    metadata: { title: 'Ants' },
  });
  assert.deepEqual(await drTulu(call, 'jina_fetch_webpage_content', { webpage_url: url, timeout: 30 }), {
    url,
    success: true,
    title: 'Ants',
    content: text,
  });
  const crawled = await drTulu(call, 'crawl4ai_fetch_webpage_content', {
    url: 'trawl://fake-sample/d2',
    timeout_ms: 1,
  });
  assert.equal(crawled.markdown, 'Bees fly over the sea.');
  const none = await drTulu(call, 'crawl4ai_fetch_webpage_content', { url: 'https://example.org/none' });
  assert.deepEqual([none.success, none.markdown], [false, undefined]);
  assert.match(none.error as string, /"https:\/\/example\.org\/none"/);
});

test('a failed search, a filter that DR Tulu’s snippets cannot have, and too many hits are errors of the tool', async (t) => {
  const outcome = (): QueryOutcome => ({ ok: false, error: new TrawlError('ENCODING_FAILED', 'a bug') });
  const failing = await connected(t, DR_TULU, {}, new FakeRetriever({ outcome }));
  await assert.rejects(drTulu(failing.call, 'massive_serve_search', { query: 'x' }), /^Error: ENCODING_FAILED: /);
  const { call } = await connected(t, DR_TULU, { maxK: 20 });
  await assert.rejects(
    drTulu(call, 'semantic_scholar_snippet_search', { query: 'x', year: '2024', venue: 'ACL' }),
    /NOT_SUPPORTED: .*year and venue/,
  );
  await assert.rejects(drTulu(call, 'serper_google_webpage_search', { query: 'x', num_results: 21 }), /K_TOO_LARGE/);
  await assert.rejects(drTulu(call, 'massive_serve_search', { query: 'x', n_docs: 0 }), /INVALID_REQUEST/);
});
