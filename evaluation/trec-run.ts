import { TrawlError } from '../src/errors.ts';
import { lineError, readTextLines } from './read-text-lines.ts';
import type { RankedPassage, Run } from './run.ts';

export interface TrecRunOptions {
  /** The last column: what made the run. Default `trawl`. */
  tag?: string;
}

/**
 * The lines of a TREC run, `qid Q0 docid rank score tag`, each with its line end. Ranks count from 1. An id that comes
 * twice for a query is written at its first place only, because trec_eval takes no duplicates. Ids with white space
 * cannot be written: USAGE.
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
        throw new TrawlError('USAGE', `The score of passage ${id} for query ${queryId} is ${score}, not a number.`);
      }
      written.add(id);
      yield `${queryId} Q0 ${id} ${written.size} ${score} ${tag}\n`;
    }
  }
}

/** Reads a TREC run. Results are put in the order of their scores, as trec_eval does; equal scores by the rank column. */
export async function readTrecRun(file: string): Promise<Run> {
  const results = new Map<string, Map<string, { score: number; rank: number }>>();
  for await (const { number, text } of readTextLines(file)) {
    const fields = text.trim().split(/\s+/);
    if (fields.length !== 6) {
      throw lineError(file, number, `found ${fields.length} fields, expected six: qid Q0 docid rank score tag`);
    }
    const [queryId, , id, rankText, scoreText] = fields as [string, string, string, string, string, string];
    const score = Number(scoreText);
    const rank = Number(rankText);
    if (!Number.isFinite(score))
      throw lineError(file, number, `the score is ${JSON.stringify(scoreText)}, not a number`);
    if (!Number.isSafeInteger(rank)) {
      throw lineError(file, number, `the rank is ${JSON.stringify(rankText)}, not a whole number`);
    }
    const ofQuery = results.get(queryId) ?? new Map<string, { score: number; rank: number }>();
    if (ofQuery.has(id)) throw lineError(file, number, `passage ${id} is a result of query ${queryId} already`);
    ofQuery.set(id, { score, rank });
    results.set(queryId, ofQuery);
  }
  return new Map(Array.from(results, ([queryId, ofQuery]) => [queryId, ranked(ofQuery)]));
}

function ranked(results: ReadonlyMap<string, { score: number; rank: number }>): RankedPassage[] {
  return Array.from(results, ([id, { score, rank }]) => ({ id, score, rank }))
    .sort((a, b) => b.score - a.score || a.rank - b.rank)
    .map(({ id, score }) => ({ id, score }));
}

/** @throws TrawlError USAGE where a text cannot be a field of a TREC run: empty, or with white space. */
export function checkTrecField(name: 'tag' | 'query id' | 'passage id', value: string): void {
  if (/^\S+$/.test(value)) return;
  throw new TrawlError(
    'USAGE',
    `The ${name} ${JSON.stringify(value)} cannot stand in a TREC run: fields must not be empty or have white space. ` +
      `${name === 'tag' ? 'Give another --tag' : `Give every ${name.replace(' id', '')} an id without white space`}, or leave the run out.`,
  );
}
