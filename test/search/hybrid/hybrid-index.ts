import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { bm25Settings } from '../../../indexer/lexical/make-lexical.ts';
import { openLexicalFields } from '../../../src/engine/lexical/open-lexical.ts';
import { referenceLexicalFields } from '../../../src/engine/reference/lexical/composed-fields.ts';
import { openReferenceIndex } from '../../../src/engine/reference/reference-index.ts';
import { openEngine } from '../../../src/engine/vectors/open-engine.ts';
import { SqlitePassageStore } from '../../../src/index/passages/sqlite-passage-store.ts';
import { IndexRetriever, type ServingOptions } from '../../../src/search/index-retriever.ts';
import { openIndexDirectory } from '../../../src/search/opening/index-directory.ts';
import type { OpenRetriever } from '../../../src/search/retriever.ts';
import { seededRandom } from '../../helpers/seeded-random.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { build, writeCorpus } from '../../indexer/build.ts';
import { FakeTextEncoder } from '../../indexer/fake-text-encoder.ts';
import { kernel } from '../../indexer/updated-index.ts';

/** Passages with the skew of language. Every seventh repeats the text of another, so that their scores are equal. */
export function somePassages(count: number): { id: string; contents: string }[] {
  return Array.from({ length: count }, (_, i) => {
    const random = seededRandom(i % 7 === 6 ? i - 6 : i);
    const words = Array.from({ length: 1 + Math.floor(20 * random()) }, () => `w${Math.floor(40 ** random()) - 1}`);
    return { id: `p${i}`, contents: words.join(' ') };
  });
}

/** Builds an index with vectors and words. Returns its folder. */
export async function hybridIndex(t: TestContext, passages: readonly object[], more: object = {}): Promise<string> {
  const folder = await tempFolder(t);
  const out = join(folder, 'ix');
  const corpus = writeCorpus(folder, { 'c.jsonl': passages });
  await build({
    corpus,
    out,
    kernel,
    bm25: bm25Settings({ analyser: 'english', k1: 0.9, b: 0.4, fields: ['contents'] }),
    ...more,
  });
  return out;
}

interface OpenOptions extends ServingOptions {
  readonly encoder?: FakeTextEncoder;
  readonly threads?: number;
  /** Searches with the engines in TypeScript. */
  readonly reference?: boolean;
}

/** Opens an index whose vectors are those of FakeTextEncoder. */
export async function openHybrid(t: TestContext, folder: string, options: OpenOptions = {}): Promise<OpenRetriever> {
  const { encoder = new FakeTextEncoder(), threads = 1, reference = false, ...serving } = options;
  const { manifest, source, lexical, passages, liveRows } = openIndexDirectory(folder);
  const index = await (reference ? openReferenceIndex(source!, { threads }) : openEngine(source!, { threads }));
  const words = reference
    ? await referenceLexicalFields(lexical as Parameters<typeof referenceLexicalFields>[0])
    : await openLexicalFields(lexical, { threads });
  const info = {
    index: 'ix',
    rows: manifest.rows,
    deletedRows: manifest.tombstones?.rows ?? 0,
    dimension: manifest.dimension,
    metric: manifest.metric,
    generation: manifest.generation,
    model: manifest.model,
    modes: ['dense', 'bm25', 'hybrid'] as const,
    reranker: null,
    bm25: manifest.bm25!.made,
    columns: [],
    views: [],
    memory: { residentBytes: 0, touchedBytes: 0, mappedBytes: 0, lexicalBytes: 0 },
  };
  const parts = {
    dense: { encoder, index },
    lexical: words,
    passages: await SqlitePassageStore.open(passages),
    liveRows,
  };
  const retriever = new IndexRetriever(info, parts, serving);
  t.after(() => retriever.close());
  return retriever;
}
