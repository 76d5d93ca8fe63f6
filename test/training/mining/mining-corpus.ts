import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SAMPLE, SAMPLE_PASSAGES } from '../../cli/run-trawl.ts';

interface SamplePassage {
  readonly id: string;
  readonly title: string;
  readonly text: string;
}

/** Ids of passages that must never be negatives of q-001, whose positive is s-0001 and whose answer is John A. Roebling. */
export const PLANTED = {
  copy: 'planted-copy',
  nearDuplicate: 'planted-near',
  answer: 'planted-answer',
  query: 'planted-query',
};

/** The sample corpus with false negatives. Returns its path. */
export function writePlantedCorpus(folder: string): string {
  const sample = readFileSync(SAMPLE_PASSAGES, 'utf8');
  const passages = sample
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as SamplePassage);
  const { text } = passages.find(({ id }) => id === 's-0001')!;
  const planted = [
    { id: PLANTED.copy, title: 'A bridge in New York', text: `  ${text.toUpperCase()}` },
    { id: PLANTED.nearDuplicate, title: 'Another bridge', text: text.replace('hybrid', 'large') },
    {
      id: PLANTED.answer,
      title: 'Span',
      text: 'The nineteenth-century span linking Manhattan with Brooklyn was engineered by John A. Roebling.',
    },
    { id: PLANTED.query, title: 'Quiz', text: questions()[0]!.question },
  ];
  const path = join(folder, 'planted.jsonl');
  writeFileSync(path, sample + planted.map((row) => `${JSON.stringify(row)}\n`).join(''));
  return path;
}

export interface SampleQuestion {
  readonly id: string;
  readonly question: string;
  readonly gold_ids: readonly string[];
}

export const QUESTIONS = join(SAMPLE, 'questions.jsonl');
export const SUB_QUERIES = join(SAMPLE, 'sub-queries.jsonl');

export function questions(): SampleQuestion[] {
  return linesOf<SampleQuestion>(QUESTIONS);
}

/** The JSON lines of a file. */
export function linesOf<T>(path: string): T[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as T);
}
