import { usageError } from '../src/base/errors.ts';
import type { Run } from './run.ts';

export interface TrecRunOptions {
  /** Name of the run, in the last column. Default `trawl`. */
  tag?: string;
}

/**
 * Formats a TREC run: lines `qid Q0 docid rank score tag`, with line ends; ranks count from 1. Of an id repeated for a query
 * only the first result is written, because trec_eval rejects duplicates. Throws USAGE for ids with white space.
 */
export function* formatTrecRun(run: Run, { tag = 'trawl' }: TrecRunOptions = {}): Generator<string, void> {
  checkTrecField('tag', tag);
  for (const [queryId, passages] of run) {
    checkTrecField('query id', queryId);
    const written = new Set<string>();
    for (const { id, score } of passages) {
      if (written.has(id)) continue;
      checkTrecField('passage id', id);
      if (!Number.isFinite(score)) {
        throw usageError(
          `The score of passage ${id} for query ${queryId} is ${score}; a TREC run needs a finite number.`,
        );
      }
      written.add(id);
      yield `${queryId} Q0 ${id} ${written.size} ${score} ${tag}\n`;
    }
  }
}

/** Throws USAGE for a text that cannot be a field of a TREC run because it is empty or has white space. */
export function checkTrecField(name: 'tag' | 'query id' | 'passage id', value: string): void {
  if (/^\S+$/.test(value)) return;
  throw usageError(
    `The ${name} ${JSON.stringify(value)} cannot be written to a TREC run: fields must not be empty or have white space. ` +
      `${name === 'tag' ? 'Choose another --tag' : `Give every ${name.replace(' id', '')} an id without white space`}, or omit the run.`,
  );
}
