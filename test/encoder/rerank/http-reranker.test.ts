import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { HttpReranker, type HttpRerankerOptions } from '../../../src/encoder/rerank/http-reranker.ts';
import { rerankScores } from '../../../src/encoder/rerank/rerank-api.ts';
import { clientMessage } from '../../../src/server/errors/error-status.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { serve } from '../../server/build.ts';

interface Asked {
  readonly body: { query: string; texts?: string[]; documents?: string[]; model?: string };
  readonly authorization: string | undefined;
}

type Answer = (asked: Asked, count: number, response: ServerResponse, request: IncomingMessage) => unknown;

/** A server that answers with the JSON that `answer` returns; undefined: `answer` has sent the response. */
async function rerankServer(t: TestContext, answer: Answer, info?: object): Promise<{ url: string; asked: Asked[] }> {
  const asked: Asked[] = [];
  const server = createServer((request, response) => {
    if (request.method === 'GET') {
      const isInfo = info !== undefined && request.url === '/info';
      return void response.writeHead(isInfo ? 200 : 404).end(JSON.stringify(info ?? {}));
    }
    let text = '';
    request.setEncoding('utf8').on('data', (part: string) => (text += part));
    request.on('end', () => {
      const one = { body: JSON.parse(text) as Asked['body'], authorization: request.headers.authorization };
      asked.push(one);
      const reply = answer(one, asked.length, response, request);
      if (reply !== undefined) response.end(JSON.stringify(reply));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

/** The score of a text is its length. */
const tei: Answer = ({ body }) => body.texts!.map(({ length }, index) => ({ index, score: length })).reverse();
const status = (response: ServerResponse, code: number, headers = {}): undefined => {
  response.writeHead(code, headers).end('{"error":"private text"}');
};

async function opened(t: TestContext, url: string, options: HttpRerankerOptions = {}): Promise<HttpReranker> {
  const reranker = await HttpReranker.open(url, { firstWaitMs: 1, ...options });
  t.after(() => reranker.close());
  return reranker;
}

test('the formats of both APIs are found out, with Trawl as the server', async (t) => {
  const { url } = await serve(t);
  for (const [path, passages] of [
    ['', ['bb', 'a', 'ccc']],
    ['/v1/rerank', ['bb', 'a', 'ccc']],
    ['/v2/rerank', []],
  ] as const) {
    const reranker = await opened(t, `${url}${path}`);
    const { outcomes } = await reranker.score([{ query: 'q', passages }]);
    const [outcome] = outcomes;
    assert.ok(outcome?.ok);
    const scores = passages.map(({ length }) => length);
    // As a server of TEI, Trawl applies the sigmoid.
    const expected = path === '' ? scores.map((score) => Math.fround(1 / (1 + Math.exp(-score)))) : scores;
    assert.deepEqual([...outcome.scores], expected);
  }
});

test('a list of more texts than TEI takes is sent in parts; key and model go with each request', async (t) => {
  const { url, asked } = await rerankServer(t, tei);
  const reranker = await opened(t, url, { api: 'tei', apiKey: 'secret', model: 'm' });
  assert.equal(reranker.info.name, 'm');
  const passages = Array.from({ length: 70 }, (_, i) => 'x'.repeat(i));
  const [outcome] = (await reranker.score([{ query: 'q', passages }])).outcomes;
  assert.ok(outcome?.ok);
  assert.deepEqual(
    [...outcome.scores],
    passages.map(({ length }) => length),
  );
  assert.deepEqual(
    asked.map(({ body }) => body.texts!.length),
    [2, 32, 32, 6],
  );
  assert.ok(asked.every(({ authorization }) => authorization === 'Bearer secret'));
});

test('a list is sent in parts of the size that the server states, or takes', async (t) => {
  const refusing: Answer = (one, count, response, request) =>
    one.body.texts!.length > 8
      ? void response.writeHead(413).end('{"error":"batch size 50 > maximum allowed batch size 8"}')
      : tei(one, count, response, request);
  const passages = Array.from({ length: 50 }, (_, i) => 'x'.repeat(i));
  const scored = async (info: object | undefined, path = '') => {
    const { url, asked } = await rerankServer(t, refusing, info);
    const reranker = await opened(t, url + path);
    const sizes = async () => {
      const before = asked.length;
      const [outcome] = (await reranker.score([{ query: 'q', passages }])).outcomes;
      assert.ok(outcome?.ok);
      assert.deepEqual(
        [...outcome.scores],
        passages.map(({ length }) => length),
      );
      return asked.slice(before).map(({ body }) => body.texts!.length);
    };
    return [await sizes(), await sizes()];
  };
  const eights = [8, 8, 8, 8, 8, 8, 2];
  assert.deepEqual(await scored({ model_id: 'x', max_client_batch_size: 8 }), [eights, eights]);
  assert.deepEqual(await scored({ max_client_batch_size: 8 }, '/rerank'), [eights, eights]);
  for (const info of [undefined, {}, { max_client_batch_size: 0 }, { max_client_batch_size: '8' }]) {
    assert.deepEqual(await scored(info), [[32, 16, 8, 8, 16, 8, 8, 8, 8, 2], eights], JSON.stringify(info));
  }
});

test('a passage that is refused alone fails its list, with the reason of the server', async (t) => {
  const { url } = await rerankServer(t, (one, count, response, request) =>
    one.body.texts!.includes('bad')
      ? void response.writeHead(422).end('{"error":"inputs must have less than 512 tokens"}')
      : tei(one, count, response, request),
  );
  const reranker = await opened(t, url);
  const [outcome] = (await reranker.score([{ query: 'q', passages: ['a', 'b', 'bad'] }])).outcomes;
  assert.ok(outcome?.ok === false);
  assert.ok(trawlError('RERANK_REFUSED', /status 422 \("inputs must have less than 512 tokens"\)/)(outcome.error));
});

test('a request is repeated after 429, 503 and a lost connection', async (t) => {
  const { url, asked } = await rerankServer(t, (one, count, response, request) => {
    if (count === 2) return status(response, 429, { 'retry-after': '0' });
    if (count === 3) return status(response, 503);
    if (count === 4) return void request.socket.destroy();
    return tei(one, count, response, request);
  });
  const reranker = await opened(t, url, { api: 'tei' });
  const [outcome] = (await reranker.score([{ query: 'q', passages: ['a'] }])).outcomes;
  assert.ok(outcome?.ok);
  assert.equal(asked.length, 5);
});

test('a list fails alone, and its error has neither texts nor key', async (t) => {
  const { url, asked } = await rerankServer(t, (one, count, response, request) => {
    const refused = /^refused (\d+)$/.exec(one.body.query);
    if (refused !== null) return status(response, Number(refused[1]));
    if (one.body.query === 'busy') return status(response, 503);
    if (one.body.query === 'slow') return undefined;
    return tei(one, count, response, request);
  });
  const reranker = await opened(t, url, { api: 'tei', apiKey: 'secret', timeoutMs: 200 });
  const queries = ['good', 'refused 400', 'refused 413', 'refused 422', 'refused 401', 'refused 404', 'busy', 'slow'];
  const lists = queries.map((query) => ({ query, passages: ['private text'] }));
  const { outcomes } = await reranker.score(lists);
  assert.deepEqual(
    outcomes.map((outcome) => (outcome.ok ? 'ok' : outcome.error.code)),
    ['ok', ...Array<string>(3).fill('RERANK_REFUSED'), ...Array<string>(4).fill('RERANK_FAILED')],
  );
  const messages = outcomes.map((outcome) => (outcome.ok ? '' : outcome.error.message)).join(' ');
  assert.match(
    messages,
    /refuses the query.*status 400\..*failed: status 401\..*status 503, 5 times.*no answer within 200 ms, 5 times/,
  );
  assert.doesNotMatch(messages, /secret|private/);
  assert.equal(asked.filter(({ body }) => body.query.startsWith('refused')).length, 5, 'a refusal is not repeated');
});

test('replies with wrong counts, indices or scores are refused', () => {
  assert.deepEqual(
    [
      ...rerankScores(
        'cohere',
        {
          results: [
            { index: 1, relevance_score: 0.5 },
            { index: 0, relevance_score: 2 },
          ],
        },
        2,
      ),
    ],
    [2, 0.5],
  );
  for (const [reply, reason] of [
    [{ results: [] }, /it is an object, not a list/],
    [null, /it is null, not a list/],
    [['a private text', 'b'], /it has a string in place of an object with index and score/],
    [[{ index: 'a private text', score: 1 }, {}], /the index a string;/],
    [[{ index: 0, score: 1 }], /1 scores for 2 passages/],
    [
      [
        { index: 0, score: 1 },
        { index: 0, score: 1 },
      ],
      /the index 0 twice/,
    ],
    [
      [
        { index: 0, score: 1 },
        { index: 2, score: 1 },
      ],
      /index 2; expected 0 to 1/,
    ],
    [
      [
        { index: 0, score: 1 },
        { index: 0.5, score: 1 },
      ],
      /index 0.5/,
    ],
    [[{ index: 0, score: 1 }, null], /it has null in place of an object/],
    [
      [
        { index: 0, score: 1 },
        { index: 1, score: null },
      ],
      /score of passage 1 is not a finite number/,
    ],
    [
      [
        { index: 0, score: 1 },
        { index: 1, score: 1e39 },
      ],
      /not a finite number/,
    ],
    [
      [
        { index: 0, score: 1 },
        { index: 1, score: 'NaN' },
      ],
      /not a finite number/,
    ],
  ] as const) {
    assert.throws(() => rerankScores('tei', reply, 2), trawlError('RERANK_FAILED', reason), JSON.stringify(reply));
  }
  assert.throws(() => rerankScores('cohere', [], 0), trawlError('RERANK_FAILED', /no list `results`/));
});

test('clients learn what is wrong with a reply, and neither the address nor a text of it', async (t) => {
  const good = (scores: readonly unknown[]): string => JSON.stringify(scores);
  const [first, second] = [
    { index: 0, score: 1 },
    { index: 1, score: 2 },
  ];
  const broken: Readonly<Record<string, readonly [string, RegExp]>> = {
    nan: [
      '[{"index": 0, "score": NaN}, {"index": 1, "score": 1}]',
      /: a reply that is not JSON: it has NaN or Infinity\. /,
    ],
    missing: [good([first]), /: it has 1 scores for 2 passages\. /],
    doubled: [good([first, first]), /: it has the index 0 twice\. /],
    'out of range': [good([first, { ...second, index: 7 }]), /: it has the index 7; expected 0 to 1\. /],
    'wrong count': [good([first, second, second]), /: it has 3 scores for 2 passages\. /],
    html: ['<html>private</html>', /: a reply that is not JSON, but HTML or XML\. /],
    empty: ['', /: an empty reply\. /],
    strings: ['["private", "texts"]', /: it has a string in place of an object with index and score\. /],
    null: ['null', /: it is null, not a list\. /],
  };
  const { url } = await rerankServer(t, (one, count, response, request) => {
    const [reply] = broken[one.body.query] ?? [];
    return reply === undefined ? tei(one, count, response, request) : void response.end(reply);
  });
  const reranker = await opened(t, url, { api: 'tei' });
  for (const [query, [, expected]] of Object.entries(broken)) {
    const [outcome] = (await reranker.score([{ query, passages: ['a', 'b'] }])).outcomes;
    assert.ok(outcome?.ok === false, query);
    const shown = clientMessage(outcome.error);
    assert.match(shown, expected, query);
    assert.doesNotMatch(shown, /private|127\.0\.0\.1|--rerank/);
  }
  const lost = await rerankServer(t, (one, count, response, request) =>
    one.body.query === 'a' ? tei(one, count, response, request) : void request.socket.destroy(),
  );
  const [gone] = (await (await opened(t, lost.url, { api: 'tei' })).score([{ query: 'b', passages: ['a'] }])).outcomes;
  assert.ok(gone?.ok === false);
  assert.match(clientMessage(gone.error), /^The server's reranker did not answer.*: no connection.*, 5 times\. Send/);
});

test('a server that cannot be used is refused when it is opened', async (t) => {
  const { url } = await rerankServer(t, (_asked, _count, response) => status(response, 404));
  await assert.rejects(HttpReranker.open(url), trawlError('RERANK_FAILED', /cannot be used: .*status 404/));
  const text = await rerankServer(t, (_asked, _count, response) => void response.end('<html>'));
  await assert.rejects(HttpReranker.open(text.url), trawlError('RERANK_FAILED', /not JSON/));
  for (const wrong of ['ftp://host/rerank', 'http://user:secret@host/', 'http://']) {
    await assert.rejects(HttpReranker.open(wrong), (error: Error) => {
      assert.doesNotMatch(error.message, /secret/);
      return trawlError('CONFIG_INVALID', /URL of the reranker/)(error);
    });
  }
});

test('raw scores are refused where the format has none', async (t) => {
  const { url } = await serve(t);
  const reranker = await opened(t, `${url}/v2/rerank`, { api: 'cohere' });
  await assert.rejects(
    reranker.score([{ query: 'q', passages: ['a'] }], { raw: true }),
    trawlError('NOT_SUPPORTED', /no raw scores/),
  );
});

test('an aborted call and a closed reranker are cancelled', async (t) => {
  const aborted = new AbortController();
  const { url } = await rerankServer(t, (one, count, response, request) => {
    if (count === 1) return tei(one, count, response, request);
    aborted.abort();
    return undefined;
  });
  const reranker = await opened(t, url, { api: 'tei' });
  const list = { query: 'q', passages: ['a'] };
  const running = reranker.score([list], { signal: aborted.signal });
  const other = reranker.score([list]);
  await assert.rejects(running, trawlError('CANCELLED'));
  await reranker.close();
  await assert.rejects(other, trawlError('CANCELLED'));
});
