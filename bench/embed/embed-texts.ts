import { join } from 'node:path';
import { openCorpus } from '../../corpus/open-corpus.ts';
import { parseTemplate } from '../../corpus/passage-template.ts';
import { readQuestionSet } from '../../evaluation/question-set.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import { Random } from '../../src/base/random.ts';

const SAMPLE_QUESTIONS = join(packageRoot, 'corpus', 'sample', 'questions.jsonl');

/**
 * Up to `count` random passages of a corpus in random order, without repetition. Reads the whole file, but holds only the
 * sample in memory (reservoir sampling).
 *
 * @throws TrawlError USAGE if the corpus is empty, and the errors of `openCorpus`.
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
  if (sample.length === 0) throw new TrawlError('USAGE', `${path} has no passages. Give a corpus with --texts.`);
  // Passages that stayed in the reservoir from the start are in file order, so shuffle.
  for (let i = sample.length - 1; i > 0; i--) {
    const other = random.below(i + 1);
    [sample[i], sample[other]] = [sample[other]!, sample[i]!];
  }
  return sample;
}

/** `count` queries of a file of questions (default: the sample corpus's), repeated if there are too few. */
export async function benchQueries(path: string | undefined, count: number): Promise<string[]> {
  const file = path ?? SAMPLE_QUESTIONS;
  const questions = (await readQuestionSet(file)).questions;
  if (questions.length === 0)
    throw new TrawlError('USAGE', `${file} has no questions. Give others with --query-texts.`);
  return Array.from({ length: count }, (_, i) => {
    const { question, query } = questions[i % questions.length]!;
    return query ?? question;
  });
}
