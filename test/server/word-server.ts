import type { TestContext } from 'node:test';
import { analyser } from '../../src/engine/lexical/analysis/analysers.ts';
import type { EngineSource } from '../../src/engine/lexical/lexical-index.ts';
import type { EngineAnalyser } from '../../src/engine/lexical/lexical-settings.ts';
import { openNativeLexicalIndex } from '../../src/engine/lexical/native-lexical.ts';
import { type Kernel, loadKernel } from '../../src/engine/native/kernel.ts';
import { ReferenceLexicalIndex } from '../../src/engine/reference/lexical/reference-lexical-index.ts';
import { IndexRetriever } from '../../src/search/index-retriever.ts';
import type { OpenRetriever } from '../../src/search/retriever.ts';
import { writeLexical } from '../engine/lexical/lexical-files.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { oneField } from '../helpers/one-field.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { FakeStore } from '../search/fakes.ts';

const loaded = loadKernel();
/** Why tests of an index of words are skipped: only the native engine can write one. */
export const withoutWords = loaded.ok ? false : `the native engine is not built: ${loaded.reason}`;

export interface WordPassage {
  readonly id: string | number;
  readonly text: string;
}

/** Retrievers over the same passages, one with the native engine and one with the reference. They are closed after the test. */
export async function wordRetrievers(
  t: TestContext,
  passages: readonly WordPassage[],
  analyserName: EngineAnalyser = 'english',
): Promise<{ native: OpenRetriever; reference: OpenRetriever }> {
  const { kernel } = loaded as { kernel: Kernel };
  const texts = passages.map(({ text }) => text);
  const half = Math.floor(texts.length / 2);
  const source: EngineSource = await writeLexical(await tempFolder(t), texts, kernel, {
    analyser: analyserName,
    shardRows: [half, texts.length - half],
  });
  const documents = passages.map(({ id, text }) => JSON.stringify({ id, contents: text }));
  const info = {
    ...new FakeRetriever().info,
    rows: texts.length,
    modes: ['bm25'] as const,
    bm25: { analyser: analyserName, unicode: '12.1', k1: 0.9, b: 0.4, fields: ['contents'] as const },
  };
  const [native, reference] = [await openNativeLexicalIndex(source, kernel), new ReferenceLexicalIndex(source)].map(
    (lexical) => {
      const store = new FakeStore([], { rows: texts.length, document: (row) => documents[row]! });
      const retriever = new IndexRetriever(info, { lexical: oneField(lexical), passages: store });
      t.after(() => retriever.close());
      return retriever;
    },
  );
  return { native: native!, reference: reference! };
}

/** The distinct terms of a text, and how often it has each. */
export function termCounts(text: string, name: EngineAnalyser = 'english'): Map<string, number> {
  const counts = new Map<string, number>();
  for (const term of analyser(name)(text)) counts.set(term, (counts.get(term) ?? 0) + 1);
  return counts;
}
