import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { AccessKeys } from '../../../src/server/access/access-keys.ts';
import { FakeRetriever } from '../../helpers/fake-retriever.ts';
import { build, postTo, serve } from '../build.ts';
import { memoryLog } from '../memory-log.ts';
import { DOCUMENTS, flaky, key, postJson } from './client-server.ts';

/** ASearcher and RLinf: up to ten attempts on any error, also on a missing key; then pages by the URLs found. */
async function asearcher(url: string): Promise<{ documents: string[]; urls: string[]; pages: unknown[] }> {
  for (let attempt = 0; attempt < 10; attempt++) {
    try {
      const response = await postJson(`${url}/retrieve`, { queries: [''], topk: 2, return_scores: false });
      const [hits] = key<unknown[][]>(await response.json(), 'result');
      const documents = hits!.map((hit) => key<string>(hit, 'contents'));
      const urls = hits!.map((hit) => key<string>(hit, 'url'));
      const pages = await (await postJson(`${url}/access`, { urls: [...urls, 'https://example.org/none'] })).json();
      return { documents, urls, pages: key<unknown[]>(pages, 'result') };
    } catch {
      // Retry.
    }
  }
  throw new Error('gave up');
}

test('ASearcher and RLinf read contents and url, retry any error, and open pages', async (t) => {
  const { url, asked } = await flaky(t, 4);
  const { documents, pages } = await asearcher(url);
  assert.equal(asked(), 5);
  assert.deepEqual(
    pages.slice(0, 2).map((page) => key<string>(page, 'contents')),
    documents,
  );
  assert.equal(pages[2], null);
});

test('with --dialect asearcher, ASearcher finds pages by title in a corpus without URLs', async (t) => {
  const documents = ['Alpha', 'Beta'].map((title, i) =>
    JSON.stringify({ id: `${i}`, contents: `"${title}"\nText of ${title}.` }),
  );
  const { url } = await serve(t, new FakeRetriever({ documents }), { dialects: ['asearcher'] });
  const { documents: found, urls, pages } = await asearcher(url);
  assert.deepEqual(urls, ['Alpha', 'Beta']);
  assert.deepEqual(
    pages.slice(0, 2).map((page) => key<string>(page, 'contents')),
    found,
  );
  const { url: without } = await serve(t, new FakeRetriever({ documents }));
  await assert.rejects(asearcher(without), /gave up/);
});

test('DR Tulu’s massive-serve tool reads texts and scores of the first query', async (t) => {
  const { url, asked } = await flaky(t, 2);
  const body = { query: '', n_docs: 2, domains: 'dpr_wiki_contriever_ivfpq' };
  let answer: unknown;
  // Its training code repeats 500, 502 and 504 three times; urllib3 repeats a 503 with retry-after as well.
  for (let attempt = 0; attempt < 4 && answer === undefined; attempt++) {
    const response = await postJson(`${url}/search`, body);
    const json: unknown = await response.json();
    if (response.ok) answer = json;
  }
  assert.equal(asked(), 3);
  const results = key<unknown>(answer, 'results');
  const data = key<string[][]>(results, 'passages')[0]!.map((passage, i) => ({
    passage,
    score: key<number[][]>(results, 'scores')[0]![i],
  }));
  assert.equal(data[1]!.passage, '"Beta"\nText of Beta.');
  assert.ok(data.every(({ score }) => typeof score === 'number'));
});

test('FoldAgent’s client raises after three tries, takes documents, and opens one by both keys', async (t) => {
  const { url, asked } = await flaky(t, 2);
  let pages: unknown[] | undefined;
  for (let attempt = 0; attempt < 3 && pages === undefined; attempt++) {
    const response = await postJson(`${url}/search`, { query: '', k: 50 });
    const json: unknown = await response.json();
    if (response.ok) pages = Array.isArray(json) ? json : key<unknown[]>(json, 'results');
  }
  assert.equal(asked(), 3);
  const shown = pages!.map((page) => ({
    docid: key<string>(page, 'docid'),
    url: key<string>(page, 'url'),
    words: key<string>(page, 'text').split(/\s+/).slice(0, 512).join(' '),
  }));
  assert.deepEqual(shown[1], { docid: '1', url: 'https://example.org/1', words: 'Text of Beta.' });
  for (const body of [
    { docid: '1', url: null },
    { docid: null, url: 'https://example.org/1' },
  ]) {
    const opened = await (await postJson(`${url}/open`, body)).json();
    assert.equal(key<string>(key<unknown[]>(opened, 'results')[0], 'text'), 'Text of Beta.');
  }
});

test('OpenResearcher’s browser gives any status but 200 to the model, and opens a URL of its results', async (t) => {
  const { url } = await flaky(t, 1);
  assert.notEqual((await postJson(`${url}/search`, { query: '', topn: 2 })).status, 200);
  const answers = await Promise.all(
    ['', ''].map(async (query) => (await postJson(`${url}/search`, { query, topn: 2 })).json()),
  );
  const [first] = answers.map((answer) => key<unknown[]>(answer, 'results'));
  assert.equal(first!.length, 2);
  for (const name of ['url', 'title', 'summary']) assert.ok(key<string>(first![0], name).length > 0);
  const page = await (await postJson(`${url}/get_content`, { url: key<string>(first![0], 'url') })).json();
  assert.deepEqual([key(page, 'title'), key(page, 'content')], ['Alpha', 'Text of Alpha.']);
});

test('DeepResearchGym’s agent repeats failed requests, and decodes each result', async (t) => {
  const { url, asked } = await flaky(t, 3);
  let results: string[] | undefined;
  for (let attempt = 0; attempt < 20 && results === undefined; attempt++) {
    // The query is not escaped in its code; fetch escapes spaces as its library does.
    const response = await fetch(`${url}/search?query=&k=2`, { headers: { 'X-API-Key': 'any' } });
    const json: unknown = await response.json();
    if (response.ok) results = key<string[]>(json, 'results');
  }
  assert.equal(asked(), 4);
  const page: unknown = JSON.parse(Buffer.from(results![0]!, 'base64').toString());
  for (const name of ['URL', 'URL-hash', 'ClueWeb22-ID', 'Clean-Text']) assert.ok(key<string>(page, name).length > 0);
});

test('BrowseComp-Plus’s client reads document and docid of a flat list', async (t) => {
  const { url } = await flaky(t, 0, ['browsecomp-plus']);
  const list = key<unknown[]>(await (await postJson(`${url}/retrieve`, { query: '' })).json(), 'result');
  const texts = list.map(
    (item) => `${key<string>(key(item, 'document'), 'title')}: ${key<string>(key(item, 'document'), 'text')}`,
  );
  assert.deepEqual([texts[0], key(list[0], 'docid')], ['Alpha: Text of Alpha.', '0']);
});

test('an agent that searches with Serper reads title, link and snippet, and sends its key in x-api-key', async (t) => {
  const keys = AccessKeys.parse('read:0123456789abcdef', 'keys');
  const { url } = await serve(t, new FakeRetriever({ documents: DOCUMENTS }), { keys });
  const ask = (apiKey: string): Promise<Response> =>
    fetch(`${url}/search`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'X-API-KEY': apiKey },
      body: JSON.stringify({ q: '', num: 2 }),
    });
  assert.equal((await ask('wrong-key-0123456')).status, 401);
  const lines = key<unknown[]>(await (await ask('0123456789abcdef')).json(), 'organic').map(
    (page, i) =>
      `${i + 1}. [${key<string>(page, 'title')}](${key<string>(page, 'link')})\n${key<string>(page, 'snippet')}`,
  );
  assert.deepEqual(lines[0], '1. [Alpha](https://example.org/0)\nText of Alpha.');
});

/** WebSailor, WebDancer and DeepResearch: three attempts, each read only at the status 200. */
async function webSailor(url: string, link: string): Promise<string> {
  for (let attempt = 0; attempt < 3; attempt++) {
    const response = await fetch(`${url}/${link}`, { headers: { authorization: 'Bearer jina' } });
    if (response.status === 200) return response.text();
  }
  return '[visit] Failed to read page.';
}

test('WebSailor opens the links of its search as Jina’s reader does, also the links of passages without a URL', async (t) => {
  const documents = [
    JSON.stringify({ id: 'a/b %20', title: 'Without', text: 'No URL.' }),
    JSON.stringify({ id: '1', title: 'Žižkov', text: 'A quarter.', url: 'https://cs.example.org/Žižkov' }),
    JSON.stringify({ id: '2', title: 'Page', text: 'Two.', url: 'https://example.org/?index=none&view=x&page=2' }),
    JSON.stringify({ id: '3', title: 'Encoded', text: 'Three.', url: 'https://example.org/a%20b' }),
  ];
  const { url } = await serve(t, new FakeRetriever({ documents }));
  const { organic } = key<never>(await (await postJson(`${url}/search`, [{ q: '' }])).json(), 0) as {
    organic: { title: string; link: string; snippet: string }[];
  };
  assert.equal(organic.length, 4);
  for (const { title, link, snippet } of organic) {
    const page = await webSailor(url, link);
    const source = link.replaceAll('%C5%BD', 'Ž');
    assert.equal(page, `Title: ${title}\n\nURL Source: ${source}\n\nMarkdown Content:\n${snippet}\n`);
    // What a proxy makes of the path, and what other clients of Jina's reader send.
    for (const path of [
      link.replace('://', ':/'),
      encodeURIComponent(link),
      `?url=${encodeURIComponent(link)}`,
      `reader?url=${encodeURIComponent(link)}`,
      `${link}#history`,
    ]) {
      assert.equal(await webSailor(url, path), page, path);
    }
    assert.equal(await webSailor(`${url}/indexes/fake-sample`, link), page);
    assert.match(await webSailor(`${url}/indexes/none`, link), /Failed/);
    for (const named of [link, `${link}#history`]) {
      const scraped = (await (await postJson(`${url}/scrape`, { url: named })).json()) as { text: string };
      assert.equal(scraped.text, snippet, named);
    }
  }
  const unknown = await fetch(`${url}/https://example.org/none`);
  assert.deepEqual([unknown.status, key<{ code: string }>(await unknown.json(), 'error').code], [404, 'NOT_FOUND']);
  assert.equal(await webSailor(url, 'https://example.org/none'), '[visit] Failed to read page.');
  assert.equal((await fetch(`${url}/reader`)).status, 422);
});

test('Jina’s reader is asked with the key of the server in place of Jina’s', async (t) => {
  const keys = AccessKeys.parse('read:0123456789abcdef', 'keys');
  const { url } = await serve(t, new FakeRetriever({ documents: DOCUMENTS }), { keys });
  const ask = (key: string) =>
    fetch(`${url}/https://example.org/1`, { headers: { authorization: `Bearer ${key}`, 'x-return-format': 'text' } });
  assert.equal((await ask('jina_0123456789abcdef')).status, 401);
  assert.match(await (await ask('0123456789abcdef')).text(), /^Title: Beta\n/);
});

/** Runs work with a clock that `wait` moves forward. */
async function asked(t: TestContext, app: FastifyInstance, waits: readonly number[], body: object): Promise<void> {
  const now = performance.now.bind(performance);
  let passed = 0;
  t.mock.method(performance, 'now', () => now() + passed);
  for (const wait of waits) {
    passed += wait;
    assert.equal((await postTo(app, '/retrieve', body)).status, 200);
  }
}

test('a server says once in its log that a client repeats its searches because passages have no url', async (t) => {
  const documents = ['{"id":"0","contents":"\\"T\\"\\nwith \\"url\\" in its text"}'];
  const body = { queries: ['a'], topk: 1, return_scores: false };
  const warnings = async (
    waits: readonly number[],
    { request = body as object, rows = documents, dialects = [] as string[] } = {},
  ): Promise<string[]> => {
    const { logger, lines } = memoryLog();
    await asked(t, build(t, new FakeRetriever({ documents: rows }), { logger, dialects }), waits, request);
    t.mock.restoreAll();
    return lines.filter(({ level }) => level === 40).map(({ msg }) => String(msg));
  };
  const repeated = [0, 10_020, 10_030, 10_500];
  const [said, ...more] = await warnings([...repeated, ...repeated]);
  assert.match(said!, /every ten seconds, as clients of ASearcher and RLinf .* --dialect asearcher, or .* column url$/);
  assert.deepEqual(more, []);
  // Sixteen rollouts of a question, all of which repeat.
  assert.equal((await warnings(repeated.flatMap((wait) => [wait, ...Array(15).fill(1)]))).length, 1);
  const withUrl = ['{"id":"0","contents":"x","url":"u"}'];
  for (const [waits, options] of [
    [repeated.slice(1), {}],
    [[0, 10_000, 20_000, 10_000, 10_000], {}],
    [[0, 1_000, 1_000, 1_000, 1_000], {}],
    [repeated, { rows: withUrl }],
    [repeated, { request: { queries: ['a', 'b'], topk: 1 } }],
    [repeated, { request: { query: 'a', topk: 1 } }],
    [repeated, { dialects: ['asearcher'] }],
  ] as const) {
    assert.deepEqual(await warnings(waits, options as object), [], JSON.stringify([waits, options]));
  }
});
