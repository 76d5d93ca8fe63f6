import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeRetriever } from '../../helpers/fake-retriever.ts';
import { serve } from '../build.ts';
import { DOCUMENTS, flaky, key, postJson } from './client-server.ts';

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
  // While searches run it asks which were stopped early, asserts the status, and waits for these; before an experiment it resets.
  const stalled = await fetch(`${url}/check_stall?step_low_ema=0.9`);
  assert.equal(stalled.status, 200);
  assert.deepEqual(key(await stalled.json(), 'stopeed_requests'), []);
  assert.equal((await fetch(`${url}/check_stall`)).status, 200);
  assert.equal((await fetch(`${url}/reset`)).status, 200);
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
