import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sampleServer } from '../helpers/sample-server.ts';

const server = await sampleServer();

interface Reply {
  readonly results: { embedded: { text: string; cut: string }; hits: { row: number; score: number }[] }[];
}

async function search(body: object): Promise<Reply> {
  const url = await server.serve({});
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${url}/v1/search`, { method: 'POST', headers, body: JSON.stringify(body) });
  assert.equal(response.status, 200, await response.clone().text());
  return (await response.json()) as Reply;
}

const QUERY = { question: 'How long is the river?', history: ['river through Vienna', 'Danube'], query: 'its length' };

test('the template of the request decides which of question, history and query are embedded', async () => {
  const forms = {
    query: 'its length',
    'question-query': 'How long is the river? [SEP] its length',
    'history-query': 'river through Vienna [SEP] Danube [SEP] its length',
    'question-history-query': 'How long is the river? [SEP] river through Vienna [SEP] Danube [SEP] its length',
  };
  for (const [template, text] of Object.entries(forms)) {
    const [composed] = (await search({ queries: [QUERY], template })).results;
    const [plain] = (await search({ queries: [text] })).results;
    assert.equal(composed!.embedded.text, text);
    assert.deepEqual(composed!.hits, plain!.hits);
  }
});

test('an index that names no template embeds question and query, whatever the history', async () => {
  const [result] = (await search({ queries: [QUERY] })).results;
  assert.equal(result!.embedded.text, 'How long is the river? [SEP] its length');
});

test('a long history loses its oldest queries with truncate: question, and the query with tail', async () => {
  const history = [...Array.from({ length: 60 }, () => 'an old query about something else entirely'), 'Danube'];
  const body = { queries: [{ ...QUERY, history }], template: 'question-history-query' };
  const [kept] = (await search({ ...body, truncate: 'question' })).results;
  assert.equal(kept!.embedded.cut, 'history');
  const [lost] = (await search(body)).results;
  assert.equal(lost!.embedded.cut, 'tail');
  const other = { ...body, queries: [{ ...QUERY, history, query: 'another query' }] };
  assert.deepEqual((await search(other)).results[0]!.hits, lost!.hits);
  assert.notDeepEqual((await search({ ...other, truncate: 'question' })).results[0]!.hits, kept!.hits);
});

test('a history that is no list of texts and an unknown template are refused with their place', async () => {
  const url = await server.serve({});
  for (const [body, place] of [
    [{ queries: [{ query: 'a', history: 'b' }] }, 'body.queries.0.history'],
    [{ queries: [{ query: 'a', history: [1] }] }, 'body.queries.0.history.0'],
    [{ queries: ['a'], template: 'all' }, 'body.template'],
  ] as const) {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(`${url}/v1/search`, { method: 'POST', headers, body: JSON.stringify(body) });
    assert.equal(response.status, 422);
    const { error } = (await response.json()) as { error: { message: string } };
    assert.ok(error.message.startsWith(place), error.message);
  }
});
