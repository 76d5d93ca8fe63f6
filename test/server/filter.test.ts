import assert from 'node:assert/strict';
import { join } from 'node:path';
import { before, type TestContext, test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { buildIndex } from '../../indexer/building/build-index.ts';
import { TrawlClient } from '../../src/client/client.ts';
import type { SearchRequest } from '../../src/client/types.ts';
import { openEncoder } from '../../src/encoder/open-encoder.ts';
import { parseFilterExpression } from '../../src/engine/filter/filter-expression.ts';
import { openRetriever } from '../../src/search/opening/open-retriever.ts';
import type { OpenRetriever } from '../../src/search/retriever.ts';
import type { RecordedSearch } from '../../src/server/recording/recorded-search.ts';
import type { ServerConfig } from '../../src/server/server-config.ts';
import { fileFolder } from '../cli/run-trawl.ts';
import { keptEncoders } from '../helpers/kept-encoders.ts';
import { writeCorpus } from '../indexer/build.ts';
import { postTo, serve } from './build.ts';

const ROWS = Array.from({ length: 12 }, (_, i) => ({
  id: `p${i}`,
  text: `Passage ${i} about rivers.`,
  source: i % 3 === 0 ? 'wiki' : 'news',
  date: `20${String(10 + i)}-06-01`,
}));

const encoderPools = keptEncoders();
const folder = await fileFolder();
before(async () => {
  const encoder = await openEncoder('token-average-256', { pools: encoderPools });
  await buildIndex({
    corpus: writeCorpus(folder, { 'news.jsonl': ROWS }),
    corpusOptions: {},
    encoder,
    out: join(folder, 'news'),
    columns: [
      { name: 'source', type: 'string' },
      { name: 'date', type: 'date' },
    ],
    overwrite: false,
    passageTemplate: '{text}',
    uniqueIds: true,
    onProgress: () => undefined,
  });
  await encoder.close();
});

async function newsRetriever(t: TestContext): Promise<OpenRetriever> {
  const retriever = await openRetriever(join(folder, 'news'), { encoderPools });
  t.after(() => retriever.close());
  return retriever;
}

async function served(t: TestContext, config: Partial<ServerConfig> = {}) {
  return serve(t, await newsRetriever(t), { topk: 20, ...config });
}

const numbers = (hits: readonly { readonly id?: unknown }[]): number[] =>
  hits.map(({ id }) => Number(String(id).slice(1))).sort((a, b) => a - b);

test('/v1/search finds only passages that pass an expression or its JSON, and records the filter', async (t) => {
  const recorded: RecordedSearch[] = [];
  const { url } = await served(t, { record: { record: (_request, search) => void recorded.push(search) } });
  const client = new TrawlClient(url);
  const search = async (filter: SearchRequest['filter']): Promise<number[]> => {
    const { results } = await client.search({ queries: ['rivers'], filter: filter! });
    const [result] = results;
    assert.ok(result?.ok === true);
    return numbers(result.hits!);
  };
  assert.deepEqual(await search("source = 'wiki' and date > 2013-01-01"), [3, 6, 9]);
  assert.deepEqual(
    await search({
      and: [
        { column: 'source', op: '!=', value: 'wiki' },
        { column: 'date', op: '<', value: '2013-01-01' },
      ],
    }),
    [1, 2],
  );
  assert.deepEqual(await search("source = 'none'"), []);
  // A list that a program makes may be empty: no passage has one of its values.
  for (const empty of ['source in ()', { column: 'source', op: 'in', values: [] }] as const) {
    assert.deepEqual(await search(empty), []);
  }
  assert.equal((await search('source not in ()')).length, ROWS.length);
  assert.equal((await search(null)).length, ROWS.length);
  assert.deepEqual(recorded[2]!.filter, { column: 'source', op: '=', value: 'none' });
  assert.equal(recorded.at(-1)!.filter, undefined);
  const [index] = await client.indexes();
  assert.deepEqual(index!.columns, [
    { name: 'source', type: 'string' },
    { name: 'date', type: 'date' },
  ]);
});

test('a filter that cannot be read, an unknown column and a value of another type are 422', async (t) => {
  const { app } = await served(t);
  for (const [filter, message] of [
    ['source =', /^body\.filter: The filter cannot be read at character 9: found the end/],
    [{ column: 'source' }, /^body\.filter: filter\.op: found nothing, expected =/],
    [7, /^body\.filter: filter: found 7, expected an object/],
    ['sauce exists', /names the column "sauce", but the index news has source \(string\), date \(date\)/],
    ['date > 3', /"date" is a date, but the filter compares it with 3/],
  ] as const) {
    const { status, json } = await postTo(app, '/v1/search', { queries: ['a'], filter });
    assert.equal(status, 422);
    const { error, detail } = json as { error: { code: string; message: string }; detail: { msg: string }[] };
    assert.equal(error.code, 'INVALID_REQUEST');
    assert.match(error.message, message);
    assert.ok(error.message.endsWith(detail[0]!.msg), 'clients of FastAPI read the list of faults');
  }
});

test('the filter of a server narrows every dialect and MCP; a request can narrow it further, but not leave it', async (t) => {
  const { app, url } = await served(t, {
    filter: parseFilterExpression("source = 'wiki'"),
    mcp: { hosts: [] },
  });
  const found = async (filter?: string): Promise<number[]> => {
    const { json } = await postTo(app, '/v1/search', {
      queries: ['rivers'],
      filter,
    });
    return numbers((json as { results: { hits: { id: string }[] }[] }).results[0]!.hits);
  };
  assert.deepEqual(await found(), [0, 3, 6, 9]);
  assert.deepEqual(await found("source = 'news' or source exists"), [0, 3, 6, 9]);
  assert.deepEqual(await found('date > 2015-01-01'), [6, 9]);
  assert.deepEqual(await found("source = 'news'"), []);
  const { json } = await postTo(app, '/retrieve', { queries: ['rivers'], topk: 20, return_scores: true });
  const lists = (json as { result: { document: { id: string } }[][] }).result;
  assert.deepEqual(numbers(lists[0]!.map(({ document }) => document)), [0, 3, 6, 9]);
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)));
  t.after(() => client.close());
  const tool = async (
    args: object,
  ): Promise<{ isError?: boolean; structuredContent?: unknown; content: { text: string }[] }> =>
    (await client.callTool({ name: 'search', arguments: { query: 'rivers', k: 20, ...args } })) as never;
  const ids = ({ structuredContent }: { structuredContent?: unknown }): number[] =>
    numbers((structuredContent as { results: { id: string }[] }).results);
  assert.deepEqual(ids(await tool({})), [0, 3, 6, 9]);
  assert.deepEqual(ids(await tool({ filter: 'date < 2014-01-01' })), [0, 3]);
  const failed = await tool({ filter: 'sauce' });
  assert.equal(failed.isError, true);
  assert.match(failed.content[0]!.text, /^INVALID_REQUEST: .*has source \(string\), date \(date\)/);
});
