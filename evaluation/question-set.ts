import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { TrawlError, usageError } from '../src/base/errors.ts';
import { lineError, readTextLines } from '../src/base/files/read-text-lines.ts';
import { type Judgements, readQrels, relevantIds } from './judgements.ts';
import { type Entries, type Entry, firstCharacter, isFolder, readEntries } from './question-entries.ts';
import { QUESTION_FORMATS, type QuestionFormat, readEntry } from './question-formats.ts';
import { answersOf, judgementsOf, type Question, readQuestions } from './read-questions.ts';
import { TopicReader } from './trec-topics.ts';

/** The judgements of a BEIR folder, in the order in which they are looked for. */
export const BEIR_SPLITS = ['test', 'dev', 'train'] as const;
type BeirSplit = (typeof BEIR_SPLITS)[number];

export interface QuestionSet {
  readonly questions: readonly Question[];
  /** Relevant passages: the `goldIds` of the questions, or the judgements of a BEIR folder. */
  readonly judgements: Judgements;
  /** What was read, for people: "HotpotQA or 2WikiMultihopQA, a JSON array". */
  readonly source: string;
  /** Remarks on entries that were left out, and on questions and judgements that do not fit together. */
  readonly notes: readonly string[];
}

export interface QuestionSetOptions {
  /** A file of judgements in place of those that the questions or the folder have. */
  readonly qrels?: string;
  /** Which judgements of a BEIR folder. Default: the first of `BEIR_SPLITS` that it has. */
  readonly split?: BeirSplit;
}

/**
 * Reads questions into memory, in a format that it finds out: a file of entries (`readEntries`) in one of `QUESTION_FORMATS`, TREC topics,
 * or a folder as BEIR's, with `queries.jsonl` and `qrels/test.tsv`, whose judged questions are read.
 *
 * @throws TrawlError CORPUS_BAD_LINE for an invalid entry, a repeated id, and an entry of another format than the first;
 * CORPUS_FORMAT_UNKNOWN; CORPUS_NOT_FOUND if the file cannot be read; USAGE for a split of anything but a BEIR folder.
 */
export async function readQuestionSet(path: string, options: QuestionSetOptions = {}): Promise<QuestionSet> {
  const { qrels, split } = options;
  if (split !== undefined && qrels !== undefined)
    throw usageError(`The judgements come from ${qrels}, so --split ${split} has no effect. Omit one of the two.`);
  if (await isFolder(path)) return { ...(await readBeirFolder(path, options)), notes: [] };
  if (split !== undefined)
    throw usageError(
      `--split ${split} chooses judgements of a BEIR folder, and ${path} is a file. Omit it, or name the folder.`,
    );
  const set = await readQuestionFile(path);
  return qrels === undefined ? set : { ...set, judgements: await readQrels(qrels) };
}

/**
 * Reads questions with their judgements, or with a file of judgements.
 *
 * @throws TrawlError CORPUS_BAD_LINE for a file without questions or judgements, and as `readQuestionSet`.
 */
export async function readJudgedQuestions(file: string, options: QuestionSetOptions): Promise<QuestionSet> {
  const set = await readQuestionSet(file, options);
  const { questions, judgements, notes } = set;
  if (options.qrels !== undefined && judgements.size === 0) throw empty(options.qrels, 'judgements');
  if (questions.length === 0) throw empty(file, judgements.size === 0 ? 'questions' : 'judged questions');
  return { ...set, notes: [...notes, ...notesOn(questions, judgements, file)] };
}

function empty(path: string, what: string): TrawlError {
  const message = `${path} has no ${what}, so there is nothing to measure.`;
  return new TrawlError('CORPUS_BAD_LINE', message, { details: { path } });
}

function* notesOn(questions: readonly Question[], judgements: Judgements, file: string): Generator<string, void> {
  const asked = new Set(questions.map(({ id }) => id));
  const unasked = [...judgements.keys()].filter((id) => !asked.has(id));
  if (unasked.length > 0)
    yield `${unasked.length} of ${judgements.size} judged queries are not in ${file}, such as ${JSON.stringify(unasked[0])}; ` +
      'their judgements are not used.';
  const answers = answersOf(questions);
  const labels = questions.filter(({ id, goldenAnswers = [] }) => goldenAnswers.length > 0 && !answers.has(id));
  if (labels.length > 0)
    yield `${labels.length} of ${questions.length} questions have only yes, no or another label as answers, such as ${JSON.stringify(labels[0]!.id)}: ` +
      'any passage may have such a word, so they count in no answer metric.';
  const nothing = questions.filter(
    ({ id, goldTitles = [] }) => !judgements.has(id) && goldTitles.length === 0 && !answers.has(id),
  );
  if (nothing.length > 0 && nothing.length < questions.length)
    yield `${nothing.length} of ${questions.length} questions have neither judgements nor answers, such as ${JSON.stringify(nothing[0]!.id)}: they count in no metric.`;
  const irrelevant = [...judgements].filter(([id, grades]) => asked.has(id) && relevantIds(grades).size === 0);
  if (irrelevant.length > 0)
    yield `${irrelevant.length} judged questions have no relevant passage, such as ${JSON.stringify(irrelevant[0]![0])}: they count as 0.`;
}

export function goldIds({ questions, judgements }: QuestionSet): ReadonlySet<string> {
  return new Set(questions.flatMap(({ id }) => [...relevantIds(judgements.get(id) ?? new Map())]));
}

async function readQuestionFile(path: string): Promise<QuestionSet> {
  const first = await firstCharacter(path);
  if (first === '<') return setOf(await readTopics(path), 'TREC topics');
  return setOfEntries(path, await readEntries(path, first));
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
      `The first entry of ${path} has the columns ${[...first.columns.keys()].slice(0, 12).join(', ')}. Expected the columns of ` +
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
  const note = `${left} of ${entries.length} questions cannot be answered and are left out, because answerable ones have the same ids (${format.name}).`;
  return setOf(questions, `${format.name}, ${container}`, left === 0 ? [] : [note]);
}

function withoutCounterparts(entries: readonly Entry[], { isCounterpart }: QuestionFormat): readonly Entry[] {
  if (isCounterpart === undefined) return entries;
  const ids = new Set(entries.filter(({ columns }) => !isCounterpart(columns)).map(({ columns }) => columns.get('id')));
  return entries.filter(({ columns }) => !isCounterpart(columns) || !ids.has(columns.get('id')));
}

/** The question of an entry in the format of the first entry. */
function parsed({ columns, number, fail }: Entry, format: QuestionFormat): Question {
  const other = QUESTION_FORMATS.find(({ matches }) => matches(columns));
  // If no format matches, the entry lacks a column, and the error of the first entry's format says which.
  if (other === undefined || other === format) return readEntry(format, columns, number, fail);
  if (format.matches(columns)) {
    const question = readEntry(format, columns, number, fail);
    // If only the other format reads judgements, as for HotpotQA among questions with ids, they would be lost without a word.
    if (hasJudgements(question) || !hasJudgements(readEntry(other, columns, number, fail))) return question;
  }
  throw fail(`its format is ${other.name}, and the first entry is ${format.name}; a file must have one format`);
}

function hasJudgements({ goldIds, goldTitles, goldenAnswers }: Question): boolean {
  return [goldIds, goldTitles, goldenAnswers].some((list) => list !== undefined && list.length > 0);
}

function setOf(questions: readonly Question[], source: string, notes: readonly string[] = []): QuestionSet {
  return { questions, judgements: judgementsOf(questions), source, notes };
}

function beirQueries(folder: string): string {
  const file = join(folder, 'queries.jsonl');
  if (existsSync(file)) return file;
  throw new TrawlError(
    'CORPUS_FORMAT_UNKNOWN',
    `${folder} is a folder without queries.jsonl, which a folder of BEIR has. Name the file of the questions.`,
  );
}

/** The judgements of a split, and their name in the folder. */
function beirQrels(folder: string, wanted?: BeirSplit): { readonly file: string; readonly name: string } {
  const splits = BEIR_SPLITS.filter((split) => existsSync(join(folder, 'qrels', `${split}.tsv`)));
  const split = wanted === undefined ? splits[0] : splits.find((each) => each === wanted);
  const name = `qrels/${split}.tsv`;
  if (split !== undefined) return { file: join(folder, name), name };
  const others =
    splits.length === 0
      ? 'Pass --qrels FILE, or name the file of the questions.'
      : `It has judgements of ${splits.join(' and ')}: choose by --split, or pass --qrels FILE.`;
  throw new TrawlError(
    'CORPUS_FORMAT_UNKNOWN',
    `${folder} is a folder without the judgements qrels/${wanted ?? BEIR_SPLITS[0]}.tsv. ${others}`,
  );
}

/**
 * Reads the questions of a BEIR folder that are judged by the file `qrels`, or else by the folder's own judgements.
 *
 * @throws TrawlError CORPUS_FORMAT_UNKNOWN for another folder, and as `readQrels` and `readQuestions`.
 */
async function readBeirFolder(folder: string, { qrels, split }: QuestionSetOptions) {
  const queries = beirQueries(folder);
  const chosen = qrels === undefined ? beirQrels(folder, split) : { file: qrels, name: qrels };
  const judgements = await readQrels(chosen.file);
  const questions = (await readQuestions(queries)).flatMap((question): Question[] => {
    const grades = judgements.get(question.id);
    return grades === undefined ? [] : [{ ...question, goldIds: [...relevantIds(grades)] }];
  });
  return { questions, judgements, source: `BEIR, judgements of ${chosen.name}` };
}
