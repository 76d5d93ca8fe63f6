import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { importModel } from '../../indexer/model-import/import-model.ts';
import { EncoderPools } from '../../src/encoder/pool/encoder-pools.ts';
import { ModelReranker } from '../../src/encoder/rerank/model-reranker.ts';
import { AnswerCache } from '../../src/search/layers/answer-cache.ts';
import { openRetriever } from '../../src/search/opening/open-retriever.ts';
import { buildApp } from '../../src/server/app.ts';
import { listen } from '../../src/server/connections/listen.ts';
import { IndexRegistry } from '../../src/server/indexes/index-registry.ts';
import { IndexSlot } from '../../src/server/indexes/index-slot.ts';
import { runTrawl } from '../cli/run-trawl.ts';
import { writeCrossEncoder } from '../encoder/rerank/tiny-cross-encoder.ts';
import { arbitraryRow, COLUMNS } from '../engine/filter/arbitrary-filters.ts';
import { seededRandom } from '../helpers/seeded-random.ts';
import { combinedViews } from './combined-views.ts';
import { type CorpusRow, NaiveIndex } from './naive-index.ts';
import type { NaiveModels, SearchBody } from './naive-search.ts';

/** Frequent words first. */
const WORDS = (
  'river city bridge king war music film house road church island mountain ship engine garden winter school poet market law ' +
  'bishop violin harvest copper lantern orchard glacier parliament telescope saffron'
).split(' ');
const SIZES: Readonly<Record<string, number>> = { wiki: 90, news: 60 };
export const INDEX_NAMES: readonly string[] = Object.keys(SIZES);
/** The group of both indexes. */
export const GROUP = 'both';

export const QUERIES: SearchBody['queries'] = [
  'river bridge',
  'the king of the island',
  'winter music in a small church',
  'copper lantern',
  'law and parliament',
  'saffron',
  'of the',
  'ship ship ship engine',
  { question: 'Which poet wrote about the glacier?', query: 'poet glacier' },
  { question: 'Who built the bridge?', query: 'garden road' },
];

/** Passages with the skew of language, titles that repeat, documents of several passages, and columns. */
function corpusOf(name: string, size: number): readonly CorpusRow[] {
  const columns = fc.sample(arbitraryRow(true), { numRuns: size, seed: size });
  return columns.map((row, i) => {
    // Every ninth repeats the words of another, so that scores are equal.
    const random = seededRandom(size + (i % 9 === 8 ? i - 8 : i));
    const below = (limit: number): number => Math.floor(limit * random());
    const text = Array.from(
      { length: 1 + below(14) },
      () => WORDS[Math.floor(WORDS.length ** random()) - 1 + below(2)]!,
    );
    const title = i % 10 === 3 ? '' : `"${WORDS[below(6)]!}"\n`;
    return {
      id: i % 4 === 0 ? i : `${name}-${i % 31}`,
      contents: `${title}${text.join(' ')}`,
      ...(i % 3 === 0 ? { doc_id: `d${i % 12}` } : {}),
      ...row,
    };
  });
}

export interface CombinedWorld {
  readonly indexes: readonly NaiveIndex[];
  readonly models: NaiveModels;
  /** A server whose retrievers have an answer cache, and one without. */
  readonly cached: string;
  readonly uncached: string;
  close(): Promise<void>;
}

export interface Reply {
  readonly status: number;
  readonly body: unknown;
}

export async function ask(url: string, path: string, body: unknown): Promise<Reply> {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  return { status: response.status, body: await response.json() };
}

/**
 * Two indexes in shards, with vectors, words, columns, views and deleted passages, and a group of both, behind real servers with a
 * cross-encoder of random weights.
 */
export async function combinedWorld(folder: string): Promise<CombinedWorld> {
  const indexes: NaiveIndex[] = [];
  for (const [name, size] of Object.entries(SIZES)) {
    const corpus = corpusOf(name, size);
    const [file, out] = [join(folder, `${name}.jsonl`), join(folder, name)];
    writeFileSync(file, corpus.map((row) => `${JSON.stringify(row)}\n`).join(''));
    const columns = COLUMNS.flatMap(({ name: column, type }) => ['--column', `${column}:${type}`]);
    const shards = ['--shard-rows', String(Math.ceil(size / 3))];
    await run([
      'index',
      file,
      '--out',
      out,
      '--bm25',
      '--model',
      'token-average-256',
      ...columns,
      ...shards,
      '--quiet',
    ]);
    const deleted = corpus.flatMap(({ id }, row) => (row % 13 === 5 ? [String(id)] : []));
    await run(['remove', out, ...new Set(deleted), '--quiet']);
    indexes.push(new NaiveIndex(name, out, corpus, deleted));
  }
  const checkpoint = join(folder, 'checkpoint');
  writeCrossEncoder(checkpoint);
  const model = join(folder, 'reranker');
  await importModel(checkpoint, { out: model, name: 'tiny-reranker', precisions: ['float32'] });
  const reranker = await ModelReranker.open(model);
  const servers = await Promise.all([true, false].map((caches) => serverOf(folder, reranker, caches)));
  return {
    indexes,
    models: modelsOf(servers[1]!.url, reranker),
    cached: servers[0]!.url,
    uncached: servers[1]!.url,
    async close() {
      await Promise.all(servers.map((server) => server.close()));
      await reranker.close();
    },
  };
}

async function serverOf(
  folder: string,
  reranker: ModelReranker,
  caches: boolean,
): Promise<{ readonly url: string; close(): Promise<void> }> {
  const encoderPools = new EncoderPools();
  const views = combinedViews(folder);
  const slots = INDEX_NAMES.map(
    (name) =>
      new IndexSlot(name, { folder: join(folder, name) }, (_, target) => {
        const cache = caches ? { answerCache: new AnswerCache(50_000_000) } : {};
        return openRetriever(target.folder, { name, reranker, views, encoderPools, ...cache });
      }),
  );
  const holder = new IndexRegistry(slots, new Map([[GROUP, INDEX_NAMES]]));
  await holder.open();
  const app = buildApp(holder);
  const url = await listen(app, { host: '127.0.0.1', port: 0 });
  return {
    url,
    async close() {
      app.server.closeAllConnections();
      await app.close();
      await holder.close();
    },
  };
}

/** The models one text and one pair at a time, each computed once. */
function modelsOf(url: string, reranker: ModelReranker): NaiveModels {
  const once = <T>(known: Map<string, Promise<T>>, key: string, compute: () => Promise<T>): Promise<T> => {
    const value = known.get(key) ?? compute();
    known.set(key, value);
    return value;
  };
  const vectors = new Map<string, Promise<Float32Array>>();
  const scores = new Map<string, Promise<number>>();
  return {
    embed: (text) =>
      once(vectors, text, async () => {
        const request = { model: 'token-average-256', input: [text], encoding_format: 'base64' };
        const { body } = await ask(url, '/v1/embeddings', request);
        const bytes = Buffer.from((body as { data: { embedding: string }[] }).data[0]!.embedding, 'base64');
        return Float32Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readFloatLE(4 * i));
      }),
    pair: (query, passage) =>
      once(scores, `${query}\0${passage}`, async () => {
        const [outcome] = (await reranker.score([{ query, passages: [passage] }])).outcomes;
        if (outcome?.ok !== true) throw new Error('the cross-encoder failed');
        return outcome.scores[0]!;
      }),
  };
}

async function run(args: readonly string[]): Promise<void> {
  const { code, stderr } = await runTrawl([...args]);
  if (code !== 0) throw new Error(stderr);
}
