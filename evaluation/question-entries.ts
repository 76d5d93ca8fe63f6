import { parseJson } from '../corpus/parse-json.ts';
import { TrawlError } from '../src/base/errors.ts';
import { lineError, readTextLines } from '../src/base/files/read-text-lines.ts';
import { delimitedRows } from './formats/delimited.ts';
import { type Columns, columnsOf } from './question-columns.ts';
import { fileText, parsedFile } from './whole-file.ts';

/** An entry of a file, with a function that makes the error for a fault in it. */
export interface Entry {
  readonly columns: Columns;
  /** Of the entry in its file, from 1. */
  readonly number: number;
  fail(reason: string): Error;
}

/** The entries of a file, and what holds them, for people: "JSON lines". */
export interface Entries {
  readonly entries: readonly Entry[];
  readonly container: string;
}

/** Reads an array of objects. */
export async function readArray(path: string): Promise<Entries> {
  return { entries: arrayEntries(path, await parsedFile(path), 'the file'), container: 'a JSON array' };
}

/** Reads JSON lines, or one object with the list `Data`, as TriviaQA's. */
export async function readObjects(path: string): Promise<Entries> {
  if (!(await firstLineIsJson(path))) return wrapped(path, await parsedFile(path));
  const entries: Entry[] = [];
  for await (const { number, text } of readTextLines(path)) {
    const fail = (reason: string): Error => lineError(path, number, reason);
    const json = parseJson(text);
    if (!json.ok) throw fail('not valid JSON; expected one object per line');
    const columns = columnsOf(json.value);
    if (columns === undefined) throw fail('expected a JSON object');
    entries.push({ columns, number: entries.length + 1, fail });
  }
  const [only] = entries;
  if (entries.length === 1 && Array.isArray(only!.columns.get('Data')))
    return wrapped(path, Object.fromEntries(only!.columns));
  return { entries, container: 'JSON lines' };
}

/** Whether a line is a value of its own, or only the start of one. */
async function firstLineIsJson(path: string): Promise<boolean> {
  for await (const { text } of readTextLines(path)) return parseJson(text).ok;
  return false;
}

function wrapped(path: string, value: unknown): Entries {
  const data = columnsOf(value)?.get('Data');
  if (!Array.isArray(data))
    throw new TrawlError(
      'CORPUS_FORMAT_UNKNOWN',
      `${path} is one JSON object without "Data", the list of TriviaQA. Write the questions as a JSON array or as JSON lines.`,
    );
  return { entries: arrayEntries(path, data, '"Data"'), container: 'the list "Data" of a JSON object' };
}

function arrayEntries(path: string, value: unknown, name: string): Entry[] {
  if (!Array.isArray(value)) throw new TrawlError('CORPUS_FORMAT_UNKNOWN', `${path}: ${name} is not a JSON array.`);
  return value.map((element: unknown, i): Entry => {
    const fail = (reason: string): Error =>
      new TrawlError('CORPUS_BAD_LINE', `${path}: entry ${i + 1} of ${name}: ${reason}.`, {
        details: { file: path, entry: i + 1 },
      });
    const columns = columnsOf(element);
    if (columns === undefined) throw fail('expected a JSON object');
    return { columns, number: i + 1, fail };
  });
}

/**
 * Reads a table with a header that has the column `question`; lines of a question, a tab and a list of answers (DPR); or lines of an id, a
 * tab and a question (topics of Anserini and MS MARCO), in which quotes have no meaning; their header is left out.
 */
export async function readTable(path: string): Promise<Entries> {
  const text = await fileText(path);
  if (text.trim() === '') return { entries: [], container: 'an empty file' };
  const firstLine = /^[^\r\n]*/.exec(text.trimStart())![0];
  const delimiter = firstLine.includes('\t') ? '\t' : ',';
  const container = delimiter === ',' ? 'comma-separated' : 'tab-separated';
  const cells = firstLine.split(delimiter);
  const hasHeader = cells.some((name) => /^"?question"?$/i.test(name.trim()));
  if (hasHeader) {
    const [first = [], ...rows] = rowsOf(path, text, delimiter);
    return {
      entries: rowEntries(
        path,
        rows,
        first.map((name) => name.trim().toLowerCase()),
      ),
      container,
    };
  }
  if (delimiter === '\t' && cells.length === 2) {
    if (/^\s*"?\[/.test(cells[1]!))
      return { entries: rowEntries(path, rowsOf(path, text, delimiter), ['question', 'answers']), container };
    const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '');
    const rows = lines.map((line) => line.split('\t').map((cell) => cell.trim()));
    const entries = rowEntries(path, isTopicHeader(rows[0]!) ? rows.slice(1) : rows, ['id', 'question']);
    const [first] = entries;
    if (/\s/.test(String(first?.columns.get('id') ?? '')))
      throw first!.fail(
        'the first of two columns is the id of a question, and it has spaces. Write answers as a list, such as ["Ed Wood"], or name the ' +
          'columns in a first row: question, answer',
      );
    return { entries, container };
  }
  throw new TrawlError(
    'CORPUS_FORMAT_UNKNOWN',
    `${path} starts with ${JSON.stringify(firstLine.slice(0, 80))}. Expected JSON, TREC topics, a table whose first row has the column "question", ` +
      'or lines of two columns with a tab between: question and list of answers, or id and question. docs/evaluation.md lists the formats.',
  );
}

/** Whether a row names the columns of topics, as pandas writes them: `qid` and `query`. */
function isTopicHeader([id = '', query = '']: readonly string[]): boolean {
  return /^(_?id|(q|query|topic)[-_ ]?id)$/i.test(id) && /^(query|text|title)$/i.test(query);
}

function rowEntries(path: string, rows: readonly (readonly string[])[], names: readonly string[]): Entry[] {
  return rows.map((row, i): Entry => {
    const fail = (reason: string): Error =>
      new TrawlError('CORPUS_BAD_LINE', `${path}: row ${i + 1}: ${reason}.`, { details: { file: path, row: i + 1 } });
    if (row.length !== names.length)
      throw fail(`it has ${row.length} columns; expected ${names.length}: ${names.join(', ')}`);
    return { columns: new Map(names.map((name, column) => [name, row[column]!])), number: i + 1, fail };
  });
}

function rowsOf(path: string, text: string, delimiter: ',' | '\t'): string[][] {
  try {
    return delimitedRows(text, delimiter);
  } catch (error) {
    throw new TrawlError('CORPUS_BAD_LINE', `${path}: ${error instanceof Error ? error.message : String(error)}`, {
      details: { path },
      cause: error,
    });
  }
}
