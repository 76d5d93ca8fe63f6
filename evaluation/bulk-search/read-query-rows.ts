import { readLines } from '../../corpus/read-lines.ts';
import { readParquetRows } from '../../corpus/read-parquet.ts';
import { lineError } from '../../src/base/files/read-text-lines.ts';
import { parseQuestion, type Question } from '../read-questions.ts';
import { TopicReader } from '../trec-topics.ts';
import type { NamedFormat } from './query-format.ts';

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
 * @throws TrawlError CORPUS_BAD_LINE with file:line, CORPUS_NOT_FOUND, CORPUS_FORMAT_UNKNOWN.
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
