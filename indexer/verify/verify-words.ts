import { throwIfCancelled } from '../../src/base/abort.ts';
import { DEFAULT_BM25, inverseNorms, lengthCode, termScore, termWeight } from '../../src/engine/lexical/bm25.ts';
import type { LexicalIndex } from '../../src/engine/lexical/lexical-index.ts';
import { type Bm25Settings, engineAnalyser, type LexicalField } from '../../src/engine/lexical/lexical-settings.ts';
import { openNativeLexicalIndex } from '../../src/engine/lexical/native-lexical.ts';
import { checkStemmer, engineTexts } from '../../src/engine/lexical/stemmed.ts';
import type { Kernel } from '../../src/engine/native/kernel.ts';
import type { IndexManifest } from '../../src/index/manifest/index-manifest.ts';
import { shardLexical } from '../../src/index/manifest/shard-manifest.ts';
import { fieldText } from '../../src/index/passages/document-fields.ts';
import { PassageFile } from '../../src/index/passages/passage-file.ts';
import { type OpenedShard, within } from '../../src/search/opening/index-directory.ts';
import { spreadRows } from './spread-rows.ts';
import { problem, problemOf, type VerifyProblem } from './verify-problem.ts';

const MAX_LISTED = 5;
const REMEDY = 'Passages and inverted index do not belong together: make it again with trawl optimize --bm25.';

/**
 * Analyses passages of the index again and compares the score of each of their terms with the one that the inverted index
 * gives. The score depends on the term's frequency and on the length of the passage, so both are compared. The rows are spread
 * evenly over the index and are the same in every run. Of two inverted indexes of a shard, the one that is searched is checked.
 *
 * @throws TrawlError CANCELLED.
 */
export async function verifyWords(
  manifest: IndexManifest,
  shards: readonly OpenedShard[],
  kernel: Kernel,
  { sample, signal }: { sample: number; signal?: AbortSignal },
): Promise<{ problems: VerifyProblem[]; passages: number }> {
  const problems: VerifyProblem[] = [];
  let passages = 0;
  for (const { shard, rows } of spreadRows(shards, sample)) {
    const bm25 = shardLexical(shard.manifest, manifest);
    if (bm25 === undefined || rows.length === 0) continue;
    let checked = 0;
    for (const { field, path } of bm25.indexes) {
      const file = within(shard.folder, path);
      try {
        problems.push(...(await fileProblems(file, { shard, rows, made: bm25.made, field }, kernel, signal)));
        checked = rows.length;
      } catch (error) {
        if (signal?.aborted === true) throw error;
        problems.push(problemOf(error, file));
      }
    }
    passages += checked;
  }
  return { problems, passages };
}

interface SampledRows {
  readonly shard: OpenedShard;
  readonly rows: readonly number[];
  readonly made: Bm25Settings;
  readonly field: LexicalField;
}

async function fileProblems(
  path: string,
  { shard, rows, made, field }: SampledRows,
  kernel: Kernel,
  signal: AbortSignal | undefined,
): Promise<VerifyProblem[]> {
  checkStemmer(path, made);
  const analyser = engineAnalyser(made.analyser);
  const source = { analyser, shards: [{ path, firstRow: 0, rows: shard.manifest.rows }] };
  const problems: VerifyProblem[] = [];
  const stored = new PassageFile(within(shard.folder, shard.manifest.passages.path));
  let index: LexicalIndex | undefined;
  try {
    index = await openNativeLexicalIndex(source, kernel);
    const { documents } = index.counts;
    const norms = inverseNorms(DEFAULT_BM25, index.counts);
    for (const row of rows) {
      throwIfCancelled(signal);
      // One passage at a time: long passages must not fill the memory, and each search lets the event loop run.
      const document = stored.document(row) ?? '{"contents": ""}';
      const [text] = await engineTexts(made.analyser, [fieldText(document, field)], signal);
      const terms = kernel.analyse(analyser, text!);
      const norm = norms[lengthCode(terms.length)]!;
      const [explained] = await index.explain({ query: text!, rows: [row], signal });
      const indexed = new Set(explained!.map(({ term }) => term));
      const missing = terms.find((term) => !indexed.has(term));
      const wrong = explained!.find(({ boost, documentFrequency, score }) => {
        // The text is the query, so the boost of a term is its frequency in the passage.
        const weight = termWeight(DEFAULT_BM25, boost, { documentFrequency, documents });
        return score !== termScore(weight, boost, norm);
      });
      if (missing === undefined && wrong === undefined) continue;
      const found =
        missing === undefined
          ? `row ${row} has another frequency of "${wrong!.term}" than ${wrong!.boost}, or another length than ${terms.length} terms, which its passage has`
          : `row ${row} lacks the term "${missing}", which its passage has`;
      problems.push(problem(path, found, REMEDY));
      if (problems.length === MAX_LISTED) break;
    }
  } finally {
    stored.close();
    await index?.close();
  }
  return problems;
}
