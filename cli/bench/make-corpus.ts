import { existsSync } from 'node:fs';
import { corpusPaths } from '../../bench/lexical/lexical-corpora.ts';
import { readSentences, writeCorpusFile } from '../../bench/lexical/make-corpus.ts';
import { usageError } from '../../src/base/errors.ts';

/**
 * Writes generated passages (bench/bm25.md, "Generated passages") to a new file.
 *
 * @throws TrawlError USAGE if the file is missing or exists, or the corpus has no sentences.
 */
export async function makeCorpus(
  path: string | undefined,
  options: {
    readonly corpus: readonly string[];
    readonly rows: number;
    readonly seed: number;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  if (path === undefined) throw usageError('`trawl bench make-corpus` needs the file to write as second word.');
  if (existsSync(path)) throw usageError(`${path} exists already. Remove it or name another file.`);
  const source = await readSentences(corpusPaths(options), options.signal);
  await writeCorpusFile(path, source, options);
}
