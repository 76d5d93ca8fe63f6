import { type BigIntStats, statSync } from 'node:fs';
import { reasonOf } from '../../corpus/read-errors.ts';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError, usageError } from '../../src/base/errors.ts';
import { sha256OfFile } from '../../src/base/system/file-checksum.ts';
import type { RetrieveQuery } from '../../src/search/calls/retrieve-call.ts';
import type { Question } from '../read-questions.ts';
import { type QueryFormat, queryFormatOf } from './query-format.ts';
import type { BulkQuery, QuerySource } from './query-source.ts';
import { readQueryRows } from './read-query-rows.ts';

export interface QueryFileOptions {
  /** Default: by the name of the file. */
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
  const before = regularFile(path);
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
    const now = regularFile(path);
    if (now.size === before.size && now.mtimeNs === before.mtimeNs && now.ino === before.ino) return;
    throw new TrawlError(
      'CORPUS_CHANGED',
      `${path} changed while it was searched. Run the command again with --restart.`,
      {
        details: { path },
      },
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
        if (wanted.length > 0) yield wanted.map((question): BulkQuery => toBulkQuery(question, queryOf));
      }
      checkUnchanged();
    },
    close: () => undefined,
  };
}

function toBulkQuery(question: Question, queryOf: QueryFileOptions['queryOf']): BulkQuery {
  const { id, roundIndex } = question;
  return { id, query: queryOf(question), round: roundIndex };
}

/** @throws TrawlError CORPUS_NOT_FOUND, or USAGE for a pipe, which could not be read again. */
export function regularFile(path: string): BigIntStats {
  const stats = statOf(path);
  if (stats.isFile()) return stats;
  throw usageError(`${path} is not a regular file. Queries are read more than once: write them to a file first.`);
}

function statOf(path: string): BigIntStats {
  try {
    return statSync(path, { bigint: true });
  } catch (error) {
    throw new TrawlError(
      'CORPUS_NOT_FOUND',
      `Cannot read ${path}: ${reasonOf(error)}. Check the path and its permissions.`,
      {
        details: { path },
        cause: error,
      },
    );
  }
}
