import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { FastifyInstance, InjectOptions } from 'fastify';
import { bm25Settings } from '../../../indexer/lexical/make-lexical.ts';
import { FilterCache } from '../../../src/engine/columns/filter-cache.ts';
import { openRowFilters } from '../../../src/engine/columns/open-row-filters.ts';
import type { Column } from '../../../src/engine/filter/column.ts';
import type { LexicalField } from '../../../src/engine/lexical/lexical-settings.ts';
import { openLexicalFields } from '../../../src/engine/lexical/open-lexical.ts';
import type { Metric } from '../../../src/engine/metric.ts';
import { type Kernel, loadKernel } from '../../../src/engine/native/kernel.ts';
import { openEngine } from '../../../src/engine/vectors/open-engine.ts';
import { SqlitePassageStore } from '../../../src/index/passages/sqlite-passage-store.ts';
import { IndexRetriever } from '../../../src/search/index-retriever.ts';
import { openIndexDirectory } from '../../../src/search/opening/index-directory.ts';
import { openRetriever } from '../../../src/search/opening/open-retriever.ts';
import type { OpenRetriever } from '../../../src/search/retriever.ts';
import type { IndexRegistry } from '../../../src/server/indexes/index-registry.ts';
import type { ServerConfig } from '../../../src/server/server-config.ts';
import { FakeRetriever } from '../../helpers/fake-retriever.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { build as buildIndex, readIndex, writeCorpus } from '../../indexer/build.ts';
import { FakeTextEncoder } from '../../indexer/fake-text-encoder.ts';
import { build } from '../build.ts';

const loaded = loadKernel();
/** Why tests of an index of words are skipped: only the native engine can write one. */
export const withoutWords = loaded.ok ? false : `the native engine is not built: ${loaded.reason}`;

export interface Article {
  readonly id?: string | number;
  readonly title?: string;
  readonly text: string;
  readonly [column: string]: unknown;
}

/** An index without vectors, with title and text as two fields, as ArtSearch's articles need it. A text is a row's JSON. */
export async function articleIndex(
  t: TestContext,
  articles: readonly (Article | string)[],
  {
    name = 'wiki_en',
    fields = ['title', 'text'] as const,
    columns = [],
  }: { name?: string; fields?: readonly LexicalField[]; columns?: readonly Column[] } = {},
): Promise<OpenRetriever> {
  const { kernel } = loaded as { kernel: Kernel };
  const folder = await tempFolder(t);
  const out = join(folder, 'ix');
  const lines = articles.map((row) => `${typeof row === 'string' ? row : JSON.stringify(row)}\n`).join('');
  const bm25 = bm25Settings({ analyser: 'standard', k1: 0.9, b: 0.4, fields });
  await buildIndex({
    corpus: writeCorpus(folder, { 'c.jsonl': lines }),
    out,
    kernel,
    bm25,
    columns,
    encoder: undefined,
  });
  const retriever = await openRetriever(out, { modes: ['bm25'], name });
  t.after(() => retriever.close());
  return retriever;
}

/** An index with vectors, too, and its vectors. */
export async function vectorIndex(
  t: TestContext,
  articles: readonly Article[],
  {
    name = 'wiki_en',
    metric,
    columns = [],
    encoder = new FakeTextEncoder(),
  }: { name?: string; metric: Metric; columns?: readonly Column[]; encoder?: FakeTextEncoder },
): Promise<{ retriever: OpenRetriever; vectors: readonly Float32Array[] }> {
  const { kernel } = loaded as { kernel: Kernel };
  const folder = await tempFolder(t);
  const out = join(folder, 'ix');
  const bm25 = bm25Settings({ analyser: 'standard', k1: 0.9, b: 0.4, fields: ['title', 'text'] });
  const corpus = writeCorpus(folder, { 'c.jsonl': articles });
  await buildIndex({ corpus, out, kernel, bm25, columns, encoder, metric });
  const { source, lexical, columns: stored, passages, liveRows, manifest } = openIndexDirectory(out);
  const { rows, dimension } = manifest;
  const info = {
    ...new FakeRetriever().info,
    index: name,
    rows,
    bm25,
    columns,
    dimension,
    metric,
    model: encoder.identity,
  };
  const retriever = new IndexRetriever(
    { ...info, modes: ['dense', 'bm25'] },
    {
      dense: { encoder, index: await openEngine(source!) },
      lexical: await openLexicalFields(lexical),
      filters: new FilterCache(await openRowFilters(stored, rows)),
      passages: await SqlitePassageStore.open(passages),
      liveRows,
    },
  );
  t.after(() => retriever.close());
  return { retriever, vectors: readIndex(out).vectors };
}

/** A server with the interface of Elasticsearch. */
export function elasticsearch(
  t: TestContext,
  source: OpenRetriever | IndexRegistry,
  config: Partial<ServerConfig> = {},
): FastifyInstance {
  return build(t, source, { dialects: ['elasticsearch'], ...config });
}

export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
  /** Parsed JSON, if the reply is JSON. */
  // The replies of each route differ, and tests read members of them.
  readonly json: Json;
}

/** A JSON value whose members a test reads without declaring them. */
export interface Json {
  readonly [member: string]: Json;
  readonly [item: number]: Json;
}

export async function ask(
  app: FastifyInstance,
  method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE',
  url: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Reply> {
  const payload =
    body === undefined ? undefined : typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  const options: InjectOptions = {
    method,
    url,
    headers: { 'content-type': payload === undefined ? undefined : 'application/json', ...headers },
    payload,
  };
  const response = await app.inject(options);
  const isJson = /json/.test(String(response.headers['content-type']));
  return {
    status: response.statusCode,
    headers: response.headers,
    text: response.payload,
    json: (isJson && response.payload !== '' ? JSON.parse(response.payload) : undefined) as Json,
  };
}
