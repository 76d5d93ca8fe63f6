import { join } from 'node:path';
import { openCorpus } from '../corpus/open-corpus.ts';
import { parseTemplate } from '../corpus/passage-template.ts';
import { readQuestions } from '../evaluation/read-questions.ts';
import { TrawlError } from '../src/errors.ts';
import { packageRoot } from '../src/package-root.ts';
import { Random } from './random.ts';

const SAMPLE_QUESTIONS = join(packageRoot, 'corpus', 'sample', 'questions.jsonl');

/**
 * Texts of a corpus, drawn without repetition in an order of their own, as many as there are up to `count`. The whole file
 * is read, in memory bounded by the sample (reservoir sampling).
 *
 * @throws TrawlError USAGE where the corpus is empty, and what `openCorpus` throws.
 */
export async function samplePassages(
  path: string,
  { count, seed, signal }: { count: number; seed: number; signal: AbortSignal },
): Promise<string[]> {
  const random = new Random(seed, count, 0);
  const render = parseTemplate();
  const sample: string[] = [];
  let seen = 0;
  for await (const passage of openCorpus([path], { checksums: false, signal })) {
    const place = seen < count ? seen : random.below(seen + 1);
    if (place < count) sample[place] = render(passage.row, passage.location);
    seen++;
  }
  if (sample.length === 0) throw new TrawlError('USAGE', `${path} holds no passages. Name a corpus with --texts.`);
  // Those that the reservoir kept from its beginning stand in the order of the file.
  for (let i = sample.length - 1; i > 0; i--) {
    const other = random.below(i + 1);
    [sample[i], sample[other]] = [sample[other]!, sample[i]!];
  }
  return sample;
}

/** Queries of a file of questions, the sample corpus's by default, repeated from the start where they are too few. */
export async function benchQueries(path: string | undefined, count: number): Promise<string[]> {
  const file = path ?? SAMPLE_QUESTIONS;
  const questions = await readQuestions(file);
  if (questions.length === 0) throw new TrawlError('USAGE', `${file} holds no questions. Name others: --query-texts.`);
  return Array.from({ length: count }, (_, i) => {
    const { question, query } = questions[i % questions.length]!;
    return query ?? question;
  });
}
