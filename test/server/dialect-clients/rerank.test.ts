import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TrawlError } from '../../../src/base/errors.ts';
import { FakeRetriever } from '../../helpers/fake-retriever.ts';
import { serve } from '../build.ts';
import { DOCUMENTS, flaky, key, postJson } from './client-server.ts';

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
