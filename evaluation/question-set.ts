import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { TrawlError } from '../src/errors.ts';
import type { QuestionFormat } from './formats/question-format.ts';
import { QUESTION_FORMATS } from './formats/question-formats.ts';
import type { Judgements } from './judgements.ts';
import { type Entries, type Entry, readArray, readObjects, readTable } from './question-entries.ts';
import { readQrels } from './read-qrels.ts';
import { judgementsOf, type Question, readQuestions } from './read-questions.ts';
import { lineError, readTextLines } from './read-text-lines.ts';
import { TopicReader } from './trec-topics.ts';
import { firstCharacter, isFolder } from './whole-file.ts';

export interface QuestionSet {
  readonly questions: readonly Question[];
  /** Relevant passages: the `goldIds` of the questions, or the judgements of a BEIR folder. */
  readonly judgements: Judgements;
  /** What was read, for people: "HotpotQA or 2WikiMultihopQA, a JSON array". */
  readonly source: string;
}

const BEIR_SPLITS = ['test', 'dev', 'train'] as const;

/**
 * Reads questions in the field's formats (`QUESTION_FORMATS`) and finds out which it is: a file of JSON lines, a JSON array, TriviaQA's
 * `{"Data": […]}`, a table (`readTable`); TREC topics; or a folder as BEIR's, with
 * `queries.jsonl` and `qrels/test.tsv`. All questions are held in memory.
 *
 * @throws TrawlError CORPUS_BAD_LINE for an invalid entry, a repeated id, and an entry of another format than the first;
 * CORPUS_FORMAT_UNKNOWN; CORPUS_NOT_FOUND if the file cannot be read.
 */
export async function readQuestionSet(path: string): Promise<QuestionSet> {
  if (await isFolder(path)) return await readBeirFolder(path);
  switch (await firstCharacter(path)) {
    case '<':
      return setOf(await readTopics(path), 'TREC topics');
    case '[':
      return setOfEntries(path, await readArray(path));
    case '{':
      return setOfEntries(path, await readObjects(path));
    default:
      return setOfEntries(path, await readTable(path));
  }
}

/** The files that `readQuestionSet` reads. */
export async function questionFiles(path: string): Promise<string[]> {
  if (!(await isFolder(path))) return [path];
  const { queries, qrels } = beirFiles(path);
  return [queries, qrels];
}

interface BeirFiles {
  readonly queries: string;
  readonly qrels: string;
  readonly split: string;
}

function beirFiles(folder: string): BeirFiles {
  const queries = join(folder, 'queries.jsonl');
  const split = BEIR_SPLITS.find((name) => existsSync(join(folder, 'qrels', `${name}.tsv`)));
  if (!existsSync(queries) || split === undefined)
    throw new TrawlError(
      'CORPUS_FORMAT_UNKNOWN',
      `${folder} is a folder without ${existsSync(queries) ? 'qrels/test.tsv' : 'queries.jsonl'}, which a folder of BEIR has. Name the file of the questions.`,
    );
  return { queries, qrels: join(folder, 'qrels', `${split}.tsv`), split };
}

async function readBeirFolder(folder: string): Promise<QuestionSet> {
  const { queries, qrels, split } = beirFiles(folder);
  const judgements = await readQrels(qrels);
  // queries.jsonl has the questions of all splits.
  const questions = (await readQuestions(queries)).flatMap((question): Question[] => {
    const grades = judgements.get(question.id);
    if (grades === undefined) return [];
    return [
      { ...question, goldIds: Array.from(grades, ([id, grade]) => (grade > 0 ? id : '')).filter((id) => id !== '') },
    ];
  });
  return { questions, judgements, source: `BEIR, judgements of qrels/${split}.tsv` };
}

async function readTopics(path: string): Promise<Question[]> {
  const reader = new TopicReader();
  const fail = (line: number, reason: string): Error => lineError(path, line, reason);
  const questions = new Map<string, Question>();
  for await (const { number, text } of readTextLines(path)) {
    for (const question of reader.add(number, text, fail)) {
      if (questions.has(question.id)) throw fail(number, `an earlier topic has the number ${question.id}, too`);
      questions.set(question.id, question);
    }
  }
  reader.end(fail);
  return [...questions.values()];
}

function setOfEntries(path: string, { entries, container }: Entries): QuestionSet {
  const [first] = entries;
  if (first === undefined) return setOf([], `no questions (${container})`);
  const format = QUESTION_FORMATS.find(({ matches }) => matches(first.columns));
  if (format === undefined)
    throw new TrawlError(
      'CORPUS_FORMAT_UNKNOWN',
      `The first entry of ${path} has the columns ${[...first.columns.keys()].slice(0, 12).join(', ')}. Expected those of ` +
        `${QUESTION_FORMATS.map(({ name }) => name).join(', ')}: docs/evaluation.md lists them.`,
    );
  const firstOfId = new Map<string, number>();
  const questions = entries.map((entry) => {
    const question = parsed(entry, format);
    const earlier = firstOfId.get(question.id);
    if (earlier !== undefined)
      throw entry.fail(`the id ${JSON.stringify(question.id)} is already used by entry ${earlier}`);
    firstOfId.set(question.id, entry.number);
    return question;
  });
  return setOf(questions, `${format.name}, ${container}`);
}

function parsed(entry: Entry, format: QuestionFormat): Question {
  const read = ({ parse }: QuestionFormat): Question =>
    parse(entry.columns, entry.number, (reason) => entry.fail(reason));
  const other = QUESTION_FORMATS.find(({ matches }) => matches(entry.columns));
  // The format's own message is better where the entry only lacks a column.
  if (other === undefined || other === format) return read(format);
  if (format.matches(entry.columns)) {
    const question = read(format);
    // As an entry of HotpotQA among questions with ids: its judgements would be lost without a word.
    if (hasJudgements(question) || !hasJudgements(read(other))) return question;
  }
  throw entry.fail(
    `the format is ${other.name}, and that of the first entry is ${format.name}; a file must have one format`,
  );
}

function hasJudgements({ goldIds, goldTitles, goldenAnswers }: Question): boolean {
  return [goldIds, goldTitles, goldenAnswers].some((list) => list !== undefined && list.length > 0);
}

function setOf(questions: readonly Question[], source: string): QuestionSet {
  return { questions, judgements: judgementsOf(questions), source };
}
