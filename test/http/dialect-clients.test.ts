import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { TrawlError } from '../../src/errors.ts';
import { AccessKeys } from '../../src/http/access/access-keys.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { serve } from './build.ts';

/**
 * Clients that handle responses like the projects' own: which fields they read, what they retry and how they treat errors,
 * but without pauses between retries.
 */

const DOCUMENTS = ['Alpha', 'Beta', 'Gamma', 'Delta', 'Epsilon', 'Zeta'].map((title, i) =>
  JSON.stringify({ id: String(i), contents: `"${title}"\nText of ${title}.`, url: `https://example.org/${i}` }),
);

/** A server whose first `failures` responses are errors. */
async function flaky(t: TestContext, failures: number, dialects: readonly string[] = []): Promise<Flaky> {
  let left = failures;
  let asked = 0;
  const retriever = new FakeRetriever({
    documents: DOCUMENTS,
    before() {
      asked++;
      if (left-- > 0) throw new TrawlError('OVERLOADED', 'The queue is full.');
    },
  });
  const { url } = await serve(t, retriever, { dialects });
  return { url, asked: () => asked };
}

interface Flaky {
  readonly url: string;
  asked(): number;
}

function postJson(url: string, body: unknown): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
}

/** Python's `.json()["a"]`: a missing key is an error. */
function key<T>(value: unknown, name: string | number): T {
  const found = (value as Record<string | number, T>)[name];
  if (found === undefined) throw new Error(`KeyError: ${name}`);
  return found;
}

/** Search-R1's generation step: it ignores the status, never retries, and expects one list per query in order. */
async function searchR1(url: string, queries: readonly string[], topk: number): Promise<string[]> {
  const answer = await (await postJson(`${url}/retrieve`, { queries, topk, return_scores: true })).json();
  const result = key<unknown[][]>(answer, 'result');
  assert.equal(result.length, queries.length);
  return result.map((hits) =>
    hits
      .map((hit, i) => {
        const [title, ...text] = key<string>(key(hit, 'document'), 'contents').split('\n');
        return `Doc ${i + 1}(Title: ${title}) ${text.join('\n')}\n`;
      })
      .join(''),
  );
}

test('Search-R1 formats its documents, also in a step without queries', async (t) => {
  const { url } = await flaky(t, 0);
  const [first] = await searchR1(url, ['', 'x'], 3);
  assert.equal(
    first,
    'Doc 1(Title: "Alpha") Text of Alpha.\nDoc 2(Title: "Beta") Text of Beta.\nDoc 3(Title: "Gamma") Text of Gamma.\n',
  );
  assert.deepEqual(await searchR1(url, [], 3), []);
});

test('Search-R1’s inference sends the text between the tags with its spaces', async (t) => {
  const retriever = new FakeRetriever({ documents: DOCUMENTS });
  const { url } = await serve(t, retriever);
  const text = '<search> first </search> <information></information> <search>  Who is Beta? </search>';
  const query = [...text.matchAll(/<search>(.*?)<\/search>/g)].at(-1)![1]!;
  assert.equal((await searchR1(url, [query], 3)).length, 1);
  assert.deepEqual(retriever.calls[0]?.queries, ['  Who is Beta? ']);
});

test('ParallelSearch sends the parts around ## unchanged, also blank ones, and joins their documents', async (t) => {
  const { url } = await flaky(t, 0);
  const actions = [' born where? ## died where?##', 'only one'];
  const parts = actions.map((action) => action.split('##'));
  const flat = await searchR1(url, parts.flat(), 2);
  let next = 0;
  const observations = parts.map((each) => each.map(() => flat[next++]).join(''));
  assert.equal(next, flat.length);
  assert.deepEqual(
    observations.map((observation) => observation.match(/^Doc 1\(/gm)?.length),
    [3, 1],
  );
});

test('skyrl-agent sends a list of one query and requires a list of one result', async (t) => {
  const { url } = await flaky(t, 0);
  const answer = await (await postJson(`${url}/retrieve`, { queries: ['a'], topk: 3, return_scores: true })).json();
  const result = key<unknown[][]>(answer, 'result');
  assert.equal(result.length, 1);
  for (const hit of result[0]!) key<string>(key(hit, 'document'), 'contents');
});

test('AReaL’s notebook reads bare contents', async (t) => {
  const { url } = await flaky(t, 0);
  const answer = await (await postJson(`${url}/retrieve`, { queries: ['a'], topk: 3, return_scores: false })).json();
  for (const hit of key<unknown[][]>(answer, 'result')[0]!) key<string>(hit, 'contents');
});

/** verl and SkyRL: up to ten attempts on 500, 502, 503 and 504; any other error goes to the model as text. */
async function withTries(url: string, body: unknown): Promise<{ result: unknown[][] } | { fault: string }> {
  for (let attempt = 0; attempt < 10; attempt++) {
    const response = await postJson(url, body);
    if ([500, 502, 503, 504].includes(response.status)) {
      await response.arrayBuffer();
      continue;
    }
    if (!response.ok) {
      await response.arrayBuffer();
      return { fault: `API request error: ${response.status}` };
    }
    return (await response.json()) as { result: unknown[][] };
  }
  return { fault: 'gave up' };
}

test('verl retries while the server is overloaded, but not a wrong request', async (t) => {
  const { url, asked } = await flaky(t, 3);
  const answer = await withTries(`${url}/retrieve`, { queries: ['', 'b'], topk: 2, return_scores: true });
  assert.equal(asked(), 4);
  const [hits] = key<unknown[][]>(answer, 'result');
  const [title, ...text] = key<string>(key(hits![0], 'document'), 'contents').split('\n');
  assert.equal(`Doc 1 (Title: ${title})\n${text.join('\n')}`, 'Doc 1 (Title: "Alpha")\nText of Alpha.');
  assert.deepEqual(await withTries(`${url}/retrieve`, { queries: 'b', topk: 2 }), { fault: 'API request error: 422' });
  assert.equal(asked(), 4);
});

test('SkyRL sends one query and reads the only list', async (t) => {
  const { url, asked } = await flaky(t, 2);
  const answer = await withTries(`${url}/retrieve`, { query: '', topk: 3, return_scores: true });
  const result = key<unknown[][]>(answer, 'result');
  assert.equal(result.length, 1);
  const texts = result[0]!.map((hit, i) => `Doc ${i + 1}: ${key<string>(key(hit, 'document'), 'contents').trim()}\n`);
  assert.equal(texts[0], 'Doc 1: "Alpha"\nText of Alpha.\n');
  assert.equal(asked(), 3);
});

test('slime searches without scores and reads documents that are not wrapped', async (t) => {
  const { url } = await flaky(t, 0);
  const response = await postJson(`${url}/retrieve`, { queries: [''], topk: 2, return_scores: false });
  const { result } = (await response.json()) as { result: Record<string, string>[][] };
  const contents = result[0]!.map((item) => item.contents ?? 'No title.\nNo snippet available.');
  assert.deepEqual(contents, ['"Alpha"\nText of Alpha.', '"Beta"\nText of Beta.']);
});

test('verl-tool reads documents with and without a wrapper', async (t) => {
  const { url } = await flaky(t, 0);
  const read = async (scores: boolean): Promise<string[]> => {
    const response = await postJson(`${url}/retrieve`, { queries: [''], topk: 2, return_scores: scores });
    const { result } = (await response.json()) as { result: Record<string, unknown>[][] };
    return result[0]!.map((item) => key<string>('document' in item ? item.document : item, 'contents'));
  };
  assert.deepEqual(await read(true), await read(false));
});

test('RAG-R1 sends the queries of a trajectory in one request, also if there are none', async (t) => {
  const { url } = await flaky(t, 0);
  for (const text of [' a, b ,, c ', ',']) {
    const queries = text
      .split(',')
      .map((query) => query.trim())
      .filter((query) => query !== '');
    const answer = await (await postJson(`${url}/retrieve`, { queries, topk: 3, return_scores: true })).json();
    const documents = key<unknown[][]>(answer, 'result').map((hits) =>
      hits.map((hit, i) => `Doc ${i + 1}: ${key<string>(key(hit, 'document'), 'contents')}\n`).join(''),
    );
    assert.equal(documents.length, queries.length);
  }
});

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

test('rLLM reads content.contents of at most fifty passages', async (t) => {
  const { url } = await flaky(t, 0);
  const answer = await (await postJson(`${url}/retrieve`, { query: '', top_k: Math.min(80, 50) })).json();
  const results = key<unknown[]>(answer, 'results');
  assert.equal(results.length, key(answer, 'num_results'));
  const texts = results.map((hit) => key<string>(key(hit, 'content'), 'contents').slice(0, 300));
  assert.equal(texts[0], '"Alpha"\nText of Alpha.');
  assert.deepEqual(
    results.map((hit) => key(hit, 'id')),
    results.map((_, i) => `doc_${i + 1}`),
  );
});

test('rLLM’s older client reads replies to single queries and batches', async (t) => {
  const { url } = await flaky(t, 0, ['rllm-legacy']);
  const single = await (await postJson(`${url}/retrieve`, { query: '', topk: 2 })).json();
  assert.equal(key<string>(key(key<unknown[]>(single, 'results')[1], 'document'), 'contents'), '"Beta"\nText of Beta.');
  const batch = await (await postJson(`${url}/retrieve`, { queries: ['', 'b'], topk: 2 })).json();
  assert.equal(key<unknown[][]>(batch, 'result').length, key(batch, 'batch_size'));
});

test('rLLM’s client uses the next server if one refuses or is unreachable', async (t) => {
  const refusing = await flaky(t, 100);
  const { url } = await flaky(t, 0);
  let results: unknown[] = [];
  for (const server of ['http://127.0.0.1:1', refusing.url, url]) {
    const response = await postJson(`${server}/retrieve`, { query: '', top_k: 2 }).catch(() => undefined);
    if (response?.ok !== true) continue;
    results = key<unknown[]>(await response.json(), 'results');
    break;
  }
  assert.deepEqual([results.length, refusing.asked()], [2, 1]);
});

test('ZeroSearch reads text from a list, and retries ten times', async (t) => {
  const { url, asked } = await flaky(t, 3, ['zerosearch']);
  let printed = 'No information available';
  for (let attempt = 0; attempt < 10; attempt++) {
    try {
      const list = (await (await postJson(`${url}/retrieve`, { query: '', top_k: 2 })).json()) as unknown[];
      printed = list.map((item, i) => `Doc ${i + 1}: ${key<string>(item, 'text')}`).join('\n');
      break;
    } catch {
      // Retry.
    }
  }
  assert.equal(printed, 'Doc 1: "Alpha"\nText of Alpha.\nDoc 2: "Beta"\nText of Beta.');
  assert.equal(asked(), 4);
});

test('R1-Searcher removes only the number from its lines, and any error ends it', async (t) => {
  const documents = [
    '{"id":7,"contents":"1984   1984 is a novel."}',
    '{"id":"12","title":"3 Idiots","text":"A film."}',
  ];
  const { url } = await serve(t, new FakeRetriever({ documents }));
  const response = await postJson(`${url}/queries`, { queries: [''], k: 2 });
  assert.equal(response.status, 200);
  const [lines] = key<string[][]>(await response.json(), 'answers');
  const seen = lines!.map((line, i) => `(${i + 1})${line.replace(/^\d+\s+/, '')}\n`).join('');
  assert.equal(seen, '(1)1984   1984 is a novel.\n(2)3 Idiots   A film.\n');
});

test('ReSearch’s rollout joins contents, and FlashRAG’s remote retriever unpacks documents and scores', async (t) => {
  const { url, asked } = await flaky(t, 2);
  let answer: unknown;
  for (let attempt = 0; attempt < 5; attempt++) {
    const response = await postJson(`${url}/batch_search`, { query: ['', 'x'], top_n: 5, return_score: false });
    const json: unknown = await response.json();
    if (response.ok) {
      answer = json;
      break;
    }
  }
  assert.equal(asked(), 3);
  const joined = (answer as unknown[][]).map((hits) =>
    hits.map((hit) => `${key<string>(hit, 'contents')}\n\n`).join(''),
  );
  assert.equal(joined.length, 2);
  assert.match(joined[0]!, /^"Alpha"\nText of Alpha\.\n\n"Beta"/);
  const unpacked = (await (
    await postJson(`${url}/search`, { query: 'a', top_n: 2, return_score: true })
  ).json()) as unknown[][];
  const [docs, scores] = unpacked;
  assert.deepEqual([unpacked.length, docs!.length, scores!.length], [2, 2, 2]);
  for (const doc of docs!) assert.equal(typeof key(doc, 'id'), 'string');
});

test('SearchAgent-X reads texts and the status of /health', async (t) => {
  const { url } = await flaky(t, 0);
  assert.equal((await fetch(`${url}/health`)).status, 200);
  const answer = await (await postJson(`${url}/embed_and_retrieve`, { prompts: ['', 'b'], top_k: 2 })).json();
  const texts = key<string[][]>(answer, 'neighbor_texts');
  assert.deepEqual(texts[0], ['"Alpha"\nText of Alpha.', '"Beta"\nText of Beta.']);
  assert.equal(typeof key(answer, 't_embed'), 'number');
});

test('StepSearch always gets scores', async (t) => {
  const { url } = await flaky(t, 0, ['stepsearch']);
  const answer = await (await postJson(`${url}/retrieve`, { queries: [''] })).json();
  const [hits] = key<unknown[][]>(answer, 'result');
  assert.equal(hits!.length, 5);
  for (const hit of hits!) assert.equal(typeof key(hit, 'score'), 'number');
});

test('agent-lightning’s agent reads contents, asks /healthz first, and raises on an error', async (t) => {
  const { url } = await flaky(t, 1, ['agent-lightning']);
  assert.equal((await fetch(`${url}/healthz`)).status, 200);
  const refused = await postJson(`${url}/retrieve`, { queries: [''], topk: 2 });
  assert.equal(refused.status, 503);
  await refused.arrayBuffer();
  const answer = await (await postJson(`${url}/retrieve`, { queries: [''], topk: 2 })).json();
  const texts = key<unknown[][]>(answer, 'result')[0]!.map((hit) => key<string>(key(hit, 'document'), 'contents'));
  assert.deepEqual(texts, ['"Alpha"\nText of Alpha.', '"Beta"\nText of Beta.']);
});

test('UltraRAG’s tool reads ret_psg, and any other answer is an error', async (t) => {
  const { url } = await flaky(t, 1);
  const body = { query_list: ['', ''], top_k: 2, query_instruction: '' };
  const refused = (await (await postJson(`${url}/search`, body)).json()) as object;
  assert.ok(!('ret_psg' in refused));
  const lists = key<string[][]>(await (await postJson(`${url}/search`, body)).json(), 'ret_psg');
  assert.deepEqual(lists[1], ['"Alpha"\nText of Alpha.', '"Beta"\nText of Beta.']);
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

/** verl-tool's agent loop: one trajectory a request; every failure is an observation that ends the trajectory. */
async function verlTool(url: string, body: Readonly<Record<string, unknown>>) {
  let answer: unknown;
  for (let attempt = 0; attempt < 4; attempt++) {
    const response = await postJson(`${url}/get_observation`, body);
    answer = response.ok ? await response.json() : { observations: ['Tool call error'], dones: [1], valids: [0] };
    if (response.ok) break;
    await response.arrayBuffer();
  }
  const [observation] = key<unknown[]>(answer, 'observations');
  const text = typeof observation === 'string' ? observation : key<string>(observation, 'obs');
  const [done, valid] = ['dones', 'valids'].map((name) => Number(key<unknown[]>(answer, name)[0]));
  return { text, done, valid };
}

test('verl-tool’s agent gets observations as strings or objects, and closes its trajectory with a text in place of a list', async (t) => {
  const { url, asked } = await flaky(t, 2);
  const step = (action: string) =>
    verlTool(url, {
      trajectory_ids: ['f3a0'],
      actions: [action],
      finish: [false],
      is_last_step: [false],
      extra_fields: [{ question: 'Which?', images: ['data:image/png;base64,AAAA'] }],
    });
  const found = await step('<think></think><search></search>');
  assert.equal(asked(), 3);
  assert.deepEqual([found.done, found.valid], [0, 1]);
  assert.match(found.text, /^\n\n<information>Doc 1\(Title: "Alpha"\) Text of Alpha\.\nDoc 2\(Title: "Beta"\) /);
  assert.deepEqual(await step('I am lost.'), { text: '', done: 0, valid: 0 });
  assert.deepEqual(await step('<answer>Alpha</answer>'), { text: '', done: 1, valid: 0 });
  const closed = await verlTool(url, { trajectory_ids: 'f3a0', actions: [''], finish: [true], is_last_step: [true] });
  assert.deepEqual(closed, { text: '', done: 1, valid: 1 });
});

/** A retriever whose reranker fails `failures` times as if its queue were full. */
class FlakyReranker extends FakeRetriever {
  asked = 0;
  #left: number;

  constructor(failures: number) {
    super({ documents: DOCUMENTS });
    this.#left = failures;
  }

  override async rerank(call: Parameters<FakeRetriever['rerank']>[0]): ReturnType<FakeRetriever['rerank']> {
    this.asked++;
    if (this.#left-- > 0) throw new TrawlError('OVERLOADED', 'The queue is full.');
    return super.rerank(call);
  }
}

test('a client of Search-R1’s server that reranks reads documents, or texts if the server is started for them', async (t) => {
  const body = { queries: [''], topk_retrieval: 4, topk_rerank: 2, return_scores: true };
  const { url } = await flaky(t, 0);
  const [hits] = key<unknown[][]>(await (await postJson(`${url}/retrieve`, body)).json(), 'result');
  assert.deepEqual(
    hits!.map((hit) => key<string>(key(hit, 'document'), 'contents')),
    ['"Alpha"\nText of Alpha.', '"Beta"\nText of Beta.'],
  );
  const { url: texts } = await flaky(t, 0, ['search-r1-rerank-text']);
  const [same] = key<unknown[][]>(await (await postJson(`${texts}/retrieve`, body)).json(), 'result');
  assert.deepEqual(
    same!.map((hit) => key<string>(hit, 'document').split('\n')[0]),
    ['"Alpha"', '"Beta"'],
  );
});

test('StepSearch’s reranking client reads a text and a score of each hit', async (t) => {
  const { url } = await flaky(t, 0);
  const answer = await (await postJson(`${url}/retrieve/rerank`, { queries: ['', 'b'], topk: 2 })).json();
  for (const hits of key<unknown[][]>(answer, 'result')) {
    assert.equal(hits.length, 2);
    for (const hit of hits) {
      assert.equal(typeof key(hit, 'document'), 'string');
      assert.equal(typeof key(hit, 'score'), 'number');
    }
  }
});

test('Search-R1’s rerank client sends the hits of its search as they are, and reads texts with their titles', async (t) => {
  const { url } = await flaky(t, 0);
  const found = await (await postJson(`${url}/retrieve`, { queries: ['', 'b'], topk: 3, return_scores: true })).json();
  const documents = key<unknown[][]>(found, 'result');
  const body = { queries: ['', 'b'], documents, rerank_topk: 2, return_scores: true };
  const result = key<unknown[][]>(await (await postJson(`${url}/rerank`, body)).json(), 'result');
  assert.equal(result.length, 2);
  for (const hits of result) {
    assert.equal(hits.length, 2);
    for (const hit of hits) assert.match(key<string>(hit, 'document'), /^\(Title: "\w+"\) Text of \w+\.$/);
  }
});

test('a client of text-embeddings-inference waits after a 429, and puts its texts in the order of the reply', async (t) => {
  const retriever = new FlakyReranker(2);
  const { url } = await serve(t, retriever);
  const texts = ['a', 'longest', 'long'];
  let ranks: { index: number; score: number }[] | undefined;
  for (let attempt = 0; attempt < 5 && ranks === undefined; attempt++) {
    const response = await postJson(`${url}/rerank`, { query: 'q', texts, raw_scores: false, truncate: true });
    const json: unknown = await response.json();
    if (response.status === 200) ranks = json as { index: number; score: number }[];
    else {
      assert.equal(response.status, 429);
      assert.equal(typeof key(json, 'error'), 'string');
    }
  }
  assert.equal(retriever.asked, 3);
  assert.deepEqual(
    ranks!.map(({ index }) => texts[index]),
    ['longest', 'long', 'a'],
  );
});

test('the clients of Cohere, Jina and vLLM repeat an overloaded request, and read index, relevance_score and document', async (t) => {
  const documents = ['a', 'longest', 'long'];
  for (const path of ['/v1/rerank', '/v2/rerank', '/rerank']) {
    const retriever = new FlakyReranker(2);
    const { url } = await serve(t, retriever);
    let results: unknown[] | undefined;
    // Cohere's SDK: the first attempt and two more, on 408, 409, 429 and from 500.
    for (let attempt = 0; attempt < 3 && results === undefined; attempt++) {
      const response = await postJson(`${url}${path}`, { model: 'any', query: 'q', documents, top_n: 2 });
      const json: unknown = await response.json();
      if (response.ok) results = key<unknown[]>(json, 'results');
      else assert.ok([408, 409, 429].includes(response.status) || response.status >= 500);
    }
    assert.equal(retriever.asked, 3, path);
    assert.deepEqual(
      results!.map((result) => [
        documents[key<number>(result, 'index')],
        key<number>(result, 'relevance_score'),
        key<string>(key(result, 'document'), 'text'),
      ]),
      [
        ['longest', 7, 'longest'],
        ['long', 4, 'long'],
      ],
    );
  }
});
