import { join } from 'node:path';
import type { TestContext } from 'node:test';
import fc from 'fast-check';
import { bm25Settings } from '../../indexer/lexical/make-lexical.ts';
import { removePassages } from '../../indexer/update/remove-passages.ts';
import { FilterCache } from '../../src/engine/columns/filter-cache.ts';
import { openNativeRowFilters } from '../../src/engine/columns/open-row-filters.ts';
import { openLexicalFields } from '../../src/engine/lexical/open-lexical.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { referenceLexicalFields } from '../../src/engine/reference/lexical/composed-fields.ts';
import { openReferenceIndex } from '../../src/engine/reference/reference-index.ts';
import { referenceRowFilters } from '../../src/engine/reference/reference-row-filters.ts';
import { openEngine } from '../../src/engine/vectors/open-engine.ts';
import { SqlitePassageStore } from '../../src/index/passages/sqlite-passage-store.ts';
import { openViews } from '../../src/index/views/open-views.ts';
import type { ViewDefinition } from '../../src/index/views/view-definition.ts';
import type { Hit } from '../../src/search/calls/query-outcome.ts';
import type { RetrieveCall } from '../../src/search/calls/retrieve-call.ts';
import { IndexRetriever } from '../../src/search/index-retriever.ts';
import { AnswerCache } from '../../src/search/layers/answer-cache.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import type { OpenRetriever, Retriever } from '../../src/search/retriever.ts';
import { fileFolder } from '../cli/run-trawl.ts';
import { arbitraryRow, COLUMNS } from '../engine/filter/arbitrary-filters.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { seededRandom } from '../helpers/seeded-random.ts';
import { build, writeCorpus } from '../indexer/build.ts';
import { FakeTextEncoder } from '../indexer/fake-text-encoder.ts';

const loaded = loadKernel();
export const kernel = loaded.ok ? loaded.kernel : undefined;
export const BM25 = bm25Settings({ analyser: 'english', k1: 0.9, b: 0.4, fields: ['contents'] });
/** Rows enough for several blocks of codes and lists of several blocks. */
export const ROWS = 3_000;
export const QUERIES = ['w0 w1', 'w3', 'w0', 'w9 w40 w2', 'none'];

export interface FilteredRow {
  readonly id: string;
  readonly title: string;
}

interface FilteredIndex {
  readonly out: string;
  readonly rows: readonly FilteredRow[];
}

const folder = await fileFolder();
let made: Promise<FilteredIndex> | undefined;

/** An index in shards with deleted rows (every seventh of the first 2,800), and its rows: one for all tests of a file. */
export function filteredIndex(): Promise<FilteredIndex> {
  made ??= makeIndex();
  return made;
}

async function makeIndex(): Promise<FilteredIndex> {
  const columns = fc.sample(arbitraryRow(true), { numRuns: ROWS, seed: 7 });
  const rows = columns.map((row, i) => {
    const random = seededRandom(i);
    const words = Array.from({ length: 1 + Math.floor(12 * random()) }, () => `w${Math.floor(50 ** random()) - 1}`);
    return { id: `p${i}`, title: `t${i % 500}`, contents: words.join(' '), ...row };
  });
  const out = join(folder, 'ix');
  const corpus = writeCorpus(folder, { 'c.jsonl': rows });
  await build({ corpus, out, kernel, bm25: BM25, columns: COLUMNS, shardRows: 1_100 });
  await removePassages(
    out,
    Array.from({ length: 400 }, (_, i) => `p${7 * i}`),
  );
  return { out, rows };
}

interface OpenedOptions {
  /** Whether it has an answer cache. */
  readonly cache?: boolean;
  readonly views?: readonly ViewDefinition[];
  readonly onWarning?: (warning: string) => void;
}

/** The index with the native engines, or with those in TypeScript. */
export async function opened(
  t: TestContext,
  out: string,
  engine: 'native' | 'reference',
  { cache = false, views = [], onWarning = () => undefined }: OpenedOptions = {},
): Promise<OpenRetriever> {
  const { source, lexical, columns, passages, liveRows, manifest } = openIndexDirectory(out);
  const isNative = engine === 'native';
  const filters = isNative
    ? await openNativeRowFilters(columns, manifest.rows, kernel!)
    : referenceRowFilters(columns, manifest.rows);
  const words = new Map([...lexical].map(([field, each]) => [field, { ...each, analyser: 'english' as const }]));
  const cached = new FilterCache(filters);
  const store = await SqlitePassageStore.open(passages);
  const { rows, generation } = manifest;
  const openedViews = await openViews(
    views,
    { index: 'ix', rows, generation, columns, filters: cached, passages: store, liveRows },
    onWarning,
  );
  const retriever = new IndexRetriever(
    {
      ...new FakeRetriever().info,
      index: 'ix',
      rows,
      views: openedViews.infos,
      modes: ['dense', 'bm25', 'hybrid'],
      bm25: BM25,
      columns: columns.map(({ name, type }) => ({ name, type })),
      dimension: manifest.dimension,
    },
    {
      dense: {
        encoder: new FakeTextEncoder(),
        index: isNative ? await openEngine(source!) : await openReferenceIndex(source!, { threads: 1 }),
      },
      lexical: isNative ? await openLexicalFields(lexical) : await referenceLexicalFields(words),
      filters: cached,
      views: openedViews.rows,
      passages: store,
      liveRows,
    },
    cache ? { answerCache: new AnswerCache(1e8) } : {},
  );
  t.after(() => retriever.close());
  return retriever;
}

export const engines = kernel === undefined ? (['reference'] as const) : (['native', 'reference'] as const);

/** The hits of each of QUERIES. */
export async function hitsOf(retriever: Retriever, call: Omit<RetrieveCall, 'queries'>): Promise<(readonly Hit[])[]> {
  const { outcomes } = await retriever.retrieve({ queries: QUERIES, ...call });
  return outcomes.map((outcome) => {
    if (!outcome.ok) throw outcome.error;
    return outcome.hits;
  });
}
