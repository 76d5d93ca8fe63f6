import { TrawlError, usageError } from '../src/base/errors.ts';
import { lineError, readTextLines } from '../src/base/files/read-text-lines.ts';
import { type BeirSplit, beirQrels, beirQueries, readBeirFolder } from './beir-folder.ts';
import type { QuestionFormat } from './formats/question-format.ts';
import { QUESTION_FORMATS } from './formats/question-formats.ts';
import type { Judgements } from './judgements.ts';
import { type Entries, type Entry, readArray, readObjects, readTable } from './question-entries.ts';
import { readQrels } from './read-qrels.ts';
import { judgementsOf, type Question } from './read-questions.ts';
import { TopicReader } from './trec-topics.ts';
import { firstCharacter, isFolder } from './whole-file.ts';

export interface QuestionSet {
  readonly questions: readonly Question[];
  /** Relevant passages: the `goldIds` of the questions, or the judgements of a BEIR folder. */
  readonly judgements: Judgements;
  /** What was read, for people: "HotpotQA or 2WikiMultihopQA, a JSON array". */
  readonly source: string;
  /** Remarks on entries that were left out. */
  readonly notes: readonly string[];
}

export interface QuestionSetOptions {
  /** A file of judgements in place of those that the questions or the folder have. */
  readonly qrels?: string;
  /** Which judgements of a BEIR folder. Default: the first of `BEIR_SPLITS` that it has. */
  readonly split?: BeirSplit;
}

/**
 * Reads questions in the field's formats (`QUESTION_FORMATS`) and finds out which it is: a file of JSON lines, a JSON array, TriviaQA's
 * `{"Data": […]}`, a table (`readTable`); TREC topics; or a folder as BEIR's, with
 * `queries.jsonl` and `qrels/test.tsv`, of which the judged questions are read. All questions are held in memory.
 *
 * @throws TrawlError CORPUS_BAD_LINE for an invalid entry, a repeated id, and an entry of another format than the first;
 * CORPUS_FORMAT_UNKNOWN; CORPUS_NOT_FOUND if the file cannot be read; USAGE for a split of anything but a BEIR folder.
 */
export async function readQuestionSet(path: string, options: QuestionSetOptions = {}): Promise<QuestionSet> {
  const { qrels, split } = options;
  if (split !== undefined && qrels !== undefined)
    throw usageError(`The judgements are those of ${qrels}, so --split ${split} has no effect. Omit one of the two.`);
  if (await isFolder(path)) return { ...(await readBeirFolder(path, options)), notes: [] };
  if (split !== undefined)
    throw usageError(
      `--split ${split} chooses judgements of a BEIR folder, and ${path} is a file. Omit it, or name the folder.`,
    );
  const set = await readQuestionFile(path);
  return qrels === undefined ? set : { ...set, judgements: await readQrels(qrels) };
}

async function readQuestionFile(path: string): Promise<QuestionSet> {
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

/** The files that `readQuestionSet` reads, without `qrels`. */
export async function questionFiles(path: string, { qrels }: QuestionSetOptions = {}): Promise<string[]> {
  if (!(await isFolder(path))) return [path];
  return qrels === undefined ? [beirQueries(path), beirQrels(path).file] : [beirQueries(path)];
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
  const kept = withoutCounterparts(entries, format);
  const firstOfId = new Map<string, number>();
  const questions = kept.map((entry) => {
    const question = parsed(entry, format);
    const earlier = firstOfId.get(question.id);
    if (earlier !== undefined)
      throw entry.fail(`the id ${JSON.stringify(question.id)} is already used by entry ${earlier}`);
    firstOfId.set(question.id, entry.number);
    return question;
  });
  const left = entries.length - kept.length;
  const notes = [
    `${left} of ${entries.length} questions cannot be answered and are left out, because answerable ones have the same ids (${format.name}).`,
  ];
  return setOf(questions, `${format.name}, ${container}`, left === 0 ? [] : notes);
}

function withoutCounterparts(entries: readonly Entry[], { isCounterpart }: QuestionFormat): readonly Entry[] {
  if (isCounterpart === undefined) return entries;
  const ids = new Set(entries.filter(({ columns }) => !isCounterpart(columns)).map(({ columns }) => columns.get('id')));
  return entries.filter(({ columns }) => !isCounterpart(columns) || !ids.has(columns.get('id')));
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

function setOf(questions: readonly Question[], source: string, notes: readonly string[] = []): QuestionSet {
  return { questions, judgements: judgementsOf(questions), source, notes };
}
