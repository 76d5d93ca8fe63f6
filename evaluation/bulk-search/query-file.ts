import { type Stats, statSync } from 'node:fs';
import { reasonOf } from '../../corpus/read-errors.ts';
import { readLines } from '../../corpus/read-lines.ts';
import { readParquetRows } from '../../corpus/read-parquet.ts';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError, usageError } from '../../src/base/errors.ts';
import type { Compression } from '../../src/base/files/compression.ts';
import { lineError } from '../../src/base/files/read-text-lines.ts';
import { fileState, sha256OfFile } from '../../src/base/system/file-checksum.ts';
import type { RetrieveQuery } from '../../src/search/calls/retrieve-call.ts';
import { parseQuestion, type Question } from '../read-questions.ts';
import { TopicReader } from '../trec-topics.ts';

export interface BulkQuery {
  /** Ids may repeat. */
  readonly id: string;
  /** Which search for the question it is, if the file says so. */
  readonly round?: number;
  readonly query: RetrieveQuery;
}

/** The queries of a bulk search, in the order of their file. */
export interface QuerySource {
  readonly count: number;
  readonly hasRounds: boolean;
  /** SHA-256 of each file, by what the file has. Equal hashes mean equal queries. */
  readonly hashes: Readonly<Record<string, string>>;
  /**
   * Reads the queries [first, end), in pieces of any length.
   *
   * @throws TrawlError CORPUS_CHANGED if a file changed since it was opened.
   */
  read(first: number, end: number): AsyncGenerator<readonly BulkQuery[], void>;
  close(): void;
}

export const QUERY_FORMATS = ['jsonl', 'tsv', 'trec', 'parquet'] as const;
export type QueryFormat = (typeof QUERY_FORMATS)[number];

const ENDINGS: Readonly<Record<string, QueryFormat>> = {
  '.tsv': 'tsv',
  '.trec': 'trec',
  '.topics': 'trec',
  '.xml': 'trec',
  '.parquet': 'parquet',
};

interface NamedFormat {
  readonly format: QueryFormat;
  readonly compression: Compression;
}

/** The requested format, else the format by the name of the file, else JSON lines. @internal Exported for tests. */
export function queryFormatOf(path: string, requested: QueryFormat | undefined): NamedFormat {
  const name = path.toLowerCase();
  const compression = name.endsWith('.gz') ? 'gzip' : name.endsWith('.zst') ? 'zstd' : 'none';
  const plain = name.replace(/\.(gz|zst)$/, '');
  const named = Object.entries(ENDINGS).find(([ending]) => plain.endsWith(ending))?.[1];
  return { format: requested ?? named ?? 'jsonl', compression };
}

interface QueryFileOptions {
  readonly format?: QueryFormat;
  /** What is searched for a question. Throws for a question that cannot be searched. */
  readonly queryOf: (question: Question) => RetrieveQuery;
  readonly signal: AbortSignal;
}

/**
 * Opens a file of queries. Reads it once, so that a bad line is found before the first search and the number of queries is known.
 *
 * @throws TrawlError as `readQueryRows`, CORPUS_EMPTY for a file without queries, USAGE for a pipe, and what `queryOf` throws.
 */
export async function openQueryFile(path: string, { format, queryOf, signal }: QueryFileOptions): Promise<QuerySource> {
  regularFile(path);
  const before = fileState(path);
  const named = queryFormatOf(path, format);
  let count = 0;
  let hasRounds = false;
  for await (const questions of readQueryRows(path, named)) {
    throwIfCancelled(signal);
    count += questions.length;
    for (const question of questions) {
      queryOf(question);
      hasRounds ||= question.roundIndex !== undefined;
    }
  }
  if (count === 0) {
    const expected =
      named.format === 'trec' ? 'no topic: no <top> or <topic> element' : `no queries in the format ${named.format}`;
    throw new TrawlError('CORPUS_EMPTY', `${path} has ${expected}. Check the file and --queries-format.`, {
      details: { path },
    });
  }
  const hashes = { 'query file': await sha256OfFile(path, signal) };
  const checkUnchanged = (): void => {
    if (fileState(path) === before) return;
    throw new TrawlError(
      'CORPUS_CHANGED',
      `${path} changed while it was searched. Run the command again with --restart.`,
      { details: { path } },
    );
  };
  checkUnchanged();
  return {
    count,
    hasRounds,
    hashes,
    async *read(first, end) {
      let at = 0;
      for await (const questions of readQueryRows(path, named)) {
        if (at >= end) break;
        const wanted = questions.slice(Math.max(0, first - at), Math.max(0, end - at));
        at += questions.length;
        if (wanted.length > 0)
          yield wanted.map((question) => ({ id: question.id, query: queryOf(question), round: question.roundIndex }));
      }
      checkUnchanged();
    },
    close: () => undefined,
  };
}

/** @throws TrawlError CORPUS_NOT_FOUND, or USAGE for a pipe, which could not be read again. */
export function regularFile(path: string): void {
  let stats: Stats;
  try {
    stats = statSync(path);
  } catch (cause) {
    throw new TrawlError(
      'CORPUS_NOT_FOUND',
      `Cannot read ${path}: ${reasonOf(cause)}. Check the path and its permissions.`,
      { details: { path }, cause },
    );
  }
  if (stats.isFile()) return;
  throw usageError(`${path} is not a regular file. Queries are read more than once: write them to a file first.`);
}

/** A line of queries has a few hundred bytes. Limits memory if the file has no line ends. */
const MAX_LINE_BYTES = 8 * 1024 * 1024;

/**
 * Reads the queries of a file of any size, a batch per block of the file:
 * - `jsonl` and `parquet`: the columns of `parseQuestion`;
 * - `tsv`: id, tab, query; the query may have further tabs;
 * - `trec`: topics (`TopicReader`).
 *
 * Ids may repeat; blank lines do not count.
 *
 * @throws TrawlError CORPUS_BAD_LINE with file:line, CORPUS_NOT_FOUND, CORPUS_FORMAT_UNKNOWN. @internal Exported for tests.
 */
export async function* readQueryRows(path: string, named: NamedFormat): AsyncGenerator<readonly Question[], void> {
  const fail = (line: number, reason: string): Error => lineError(path, line, reason);
  if (named.format === 'parquet') {
    for await (const rows of readParquetRows(path)) {
      yield rows.map(({ line, row }) => {
        if (typeof row !== 'string') throw fail(line, row.reason);
        return parseQuestion(row, (reason) => fail(line, reason));
      });
    }
    return;
  }
  const topics = new TopicReader();
  for await (const lines of linesOf(path, named)) {
    const found: Question[] = [];
    for (const { number, text } of lines) {
      if (named.format === 'trec') found.push(...topics.add(number, text, fail));
      else if (text.trim() !== '') {
        const failHere = (reason: string): Error => fail(number, reason);
        found.push(named.format === 'tsv' ? parseTsv(text, failHere) : parseQuestion(text, failHere));
      }
    }
    if (found.length > 0) yield found;
  }
  topics.end(fail);
}

async function* linesOf(
  path: string,
  { compression }: NamedFormat,
): AsyncGenerator<readonly { readonly number: number; readonly text: string }[], void> {
  const options = { compression, newline: 'lf', maxLineBytes: MAX_LINE_BYTES, onRead: () => undefined } as const;
  for await (const lines of readLines(path, options)) {
    yield lines.map((line) => {
      if (!line.ok) throw lineError(path, line.number, line.reason);
      return { number: line.number, text: line.text.endsWith('\r') ? line.text.slice(0, -1) : line.text };
    });
  }
}

function parseTsv(text: string, fail: (reason: string) => Error): Question {
  const tab = text.indexOf('\t');
  if (tab <= 0) throw fail('expected an id, a tab and a query');
  return { id: text.slice(0, tab), question: text.slice(tab + 1) };
}
