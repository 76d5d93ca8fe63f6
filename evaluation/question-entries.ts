import { isUtf8 } from 'node:buffer';
import { stat } from 'node:fs/promises';
import { parse } from 'csv-parse/sync';
import { parseJson } from '../corpus/parse-json.ts';
import { TrawlError } from '../src/base/errors.ts';
import { fileBytes, unreadable } from '../src/base/files/file-bytes.ts';
import { lineError, notUtf8, readTextLines } from '../src/base/files/read-text-lines.ts';
import { type Columns, columnsOf, type Fail } from './read-questions.ts';

export interface Entry {
  readonly columns: Columns;
  /** The number of the entry in its file, from 1. */
  readonly number: number;
  readonly fail: Fail;
}

/** The entries of a file, and what holds them, for people: "JSON lines". */
export interface Entries {
  readonly entries: readonly Entry[];
  readonly container: string;
}

/**
 * Reads the entries of a file, which may be compressed: a JSON array, JSON lines, TriviaQA's `{"Data": […]}`, or a table (`readTable`).
 *
 * @param first the first character of the file.
 */
export function readEntries(path: string, first: string): Promise<Entries> {
  return first === '[' ? readArray(path) : first === '{' ? readObjects(path) : readTable(path);
}

async function readArray(path: string): Promise<Entries> {
  return { entries: arrayEntries(path, await parsedFile(path), 'the file'), container: 'a JSON array' };
}

async function readObjects(path: string): Promise<Entries> {
  if (!(await firstLineIsJson(path))) return wrapped(path, await parsedFile(path));
  const entries: Entry[] = [];
  for await (const { number, text } of readTextLines(path)) {
    const fail = (reason: string): Error => lineError(path, number, reason);
    const json = parseJson(text);
    if (!json.ok) throw fail(`${json.reason}; expected one object per line`);
    entries.push(entryOf(json.value, entries.length + 1, fail));
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
    return entryOf(element, i + 1, fail);
  });
}

function entryOf(value: unknown, number: number, fail: Fail): Entry {
  const columns = columnsOf(value);
  if (columns === undefined) throw fail('expected a JSON object');
  return { columns, number, fail };
}

/**
 * Reads a table with a header that has the column `question`; lines of a question, a tab and a list of answers (DPR); or lines of an id, a
 * tab and a question (topics of Anserini and MS MARCO), in which quotes have no meaning; their header is left out.
 */
async function readTable(path: string): Promise<Entries> {
  const text = await fileText(path);
  if (text.trim() === '') return { entries: [], container: 'an empty file' };
  const firstLine = /^[^\r\n]*/.exec(text.trimStart())![0];
  const delimiter = firstLine.includes('\t') ? '\t' : ',';
  const container = delimiter === ',' ? 'comma-separated' : 'tab-separated';
  const cells = firstLine.split(delimiter);
  if (cells.some((name) => /^"?question"?$/i.test(name.trim()))) {
    const [header = [], ...rows] = rowsOf(path, text, delimiter);
    const names = header.map((name) => name.trim().toLowerCase());
    return { entries: rowEntries(path, rows, names), container };
  }
  if (delimiter === ',' || cells.length !== 2)
    throw new TrawlError(
      'CORPUS_FORMAT_UNKNOWN',
      `${path} starts with ${JSON.stringify(firstLine.slice(0, 80))}. Expected JSON, TREC topics, a table whose first row has the column "question", ` +
        'or lines of two columns with a tab between: question and list of answers, or id and question. docs/evaluation.md lists the formats.',
    );
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

/** Rows of a table of comma- or tab-separated values (RFC 4180: fields may be quoted and then have line ends). Blank lines are left out. */
function rowsOf(path: string, text: string, delimiter: ',' | '\t'): string[][] {
  try {
    return parse(text, {
      delimiter,
      record_delimiter: ['\r\n', '\n', '\r'],
      bom: true,
      relax_column_count: true,
      skip_empty_lines: true,
      // Some tables have a single quote character within a field, such as 5" in a question.
      relax_quotes: true,
    });
  } catch (error) {
    throw new TrawlError('CORPUS_BAD_LINE', `${path}: ${error instanceof Error ? error.message : String(error)}`, {
      details: { path },
      cause: error,
    });
  }
}

/** Strings of Node.js have at most 2^29 − 24 characters. Larger arrays must be JSON lines. */
const MAX_ARRAY_BYTES = 500 * 1024 * 1024;

/** @throws TrawlError CORPUS_NOT_FOUND if nothing has the path. */
export async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (error) {
    throw unreadable(path, error);
  }
}

/** The first character of a file that is not white space; empty if its first bytes have none. @throws TrawlError CORPUS_NOT_FOUND. */
export async function firstCharacter(path: string): Promise<string> {
  // `trimStart` also removes a byte order mark.
  for await (const chunk of fileBytes(path)) return chunk.toString('utf8').trimStart().charAt(0);
  return '';
}

/** Parses a file as one JSON value. @throws TrawlError CORPUS_BAD_LINE, CORPUS_NOT_FOUND, and CORPUS_FORMAT_UNKNOWN if it is too large. */
async function parsedFile(path: string): Promise<unknown> {
  const json = parseJson(await fileText(path));
  if (json.ok) return json.value;
  throw new TrawlError('CORPUS_BAD_LINE', `${path} is ${json.reason}.`, { details: { path } });
}

/** The text of a UTF-8 file, which may be compressed (`fileBytes`). Throws as `parsedFile` does. */
async function fileText(path: string): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of fileBytes(path)) {
    bytes += chunk.length;
    if (bytes > MAX_ARRAY_BYTES)
      throw new TrawlError(
        'CORPUS_FORMAT_UNKNOWN',
        `${path} has more than ${MAX_ARRAY_BYTES} bytes, the most of an array that can be read at once. ` +
          `Write it as JSON lines: jq -c '.[]' ${path}`,
      );
    chunks.push(chunk);
  }
  const all = Buffer.concat(chunks, bytes);
  if (isUtf8(all)) return new TextDecoder().decode(all);
  throw new TrawlError('CORPUS_BAD_LINE', `${path}: ${notUtf8(all)}.`, { details: { path } });
}
