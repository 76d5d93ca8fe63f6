import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { TrawlError } from '../src/base/errors.ts';
import type { Judgements } from './judgements.ts';
import { readQrels } from './read-qrels.ts';
import { type Question, readQuestions } from './read-questions.ts';

/** The judgements of a BEIR folder, in the order in which they are looked for. */
export const BEIR_SPLITS = ['test', 'dev', 'train'] as const;

export type BeirSplit = (typeof BEIR_SPLITS)[number];

/** The questions of all splits. */
export function beirQueries(folder: string): string {
  const file = join(folder, 'queries.jsonl');
  if (existsSync(file)) return file;
  throw new TrawlError(
    'CORPUS_FORMAT_UNKNOWN',
    `${folder} is a folder without queries.jsonl, which a folder of BEIR has. Name the file of the questions.`,
  );
}

/** The judgements of a split, and their name in the folder. */
export function beirQrels(folder: string, wanted?: BeirSplit): { readonly file: string; readonly name: string } {
  const splits = BEIR_SPLITS.filter((split) => existsSync(join(folder, 'qrels', `${split}.tsv`)));
  const split = wanted === undefined ? splits[0] : splits.find((each) => each === wanted);
  const name = `qrels/${split}.tsv`;
  if (split !== undefined) return { file: join(folder, name), name };
  const others =
    splits.length === 0
      ? 'Pass --qrels FILE, or name the file of the questions.'
      : `It has those of ${splits.join(' and ')}: choose by --split, or pass --qrels FILE.`;
  throw new TrawlError(
    'CORPUS_FORMAT_UNKNOWN',
    `${folder} is a folder without the judgements qrels/${wanted ?? BEIR_SPLITS[0]}.tsv. ${others}`,
  );
}

/**
 * Reads the questions of a folder of BEIR that are judged: by the file `qrels`, else by those of the folder.
 *
 * @throws TrawlError CORPUS_FORMAT_UNKNOWN for another folder, and as `readQrels` and `readQuestions`.
 */
export async function readBeirFolder(
  folder: string,
  { qrels, split }: { readonly qrels?: string; readonly split?: BeirSplit },
): Promise<{ readonly questions: readonly Question[]; readonly judgements: Judgements; readonly source: string }> {
  const queries = beirQueries(folder);
  const chosen = qrels === undefined ? beirQrels(folder, split) : { file: qrels, name: qrels };
  const judgements = await readQrels(chosen.file);
  const questions = (await readQuestions(queries)).flatMap((question): Question[] => {
    const grades = judgements.get(question.id);
    if (grades === undefined) return [];
    return [
      { ...question, goldIds: Array.from(grades, ([id, grade]) => (grade > 0 ? id : '')).filter((id) => id !== '') },
    ];
  });
  return { questions, judgements, source: `BEIR, judgements of ${chosen.name}` };
}
