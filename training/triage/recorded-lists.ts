import type { Question } from '../../evaluation/read-questions.ts';
import { RowBitmap } from '../../src/engine/row-bitmap.ts';
import type { RowScope } from '../../src/search/calls/retrieve-call.ts';
import type { Retriever } from '../../src/search/retriever.ts';
import { composedParts } from '../../src/server/recording/composed-query.ts';
import { KnownQuestions } from '../records/known-questions.ts';
import { readRecords } from '../records/read-records.ts';
import type { PoolSource } from './pool.ts';
import { isSameEncoder } from './same-encoder.ts';
import { IdRows } from './searched-lists.ts';

export interface RecordedLists {
  /** Lists of this generation, of other generations, and those that are known to be of another encoder or of BM25. */
  readonly sources: readonly PoolSource[];
  /** Records read, and records of other questions, which are left out. */
  readonly records: number;
  readonly ofOtherQuestions: number;
  /** Distinct ids that the index does not have, and hits without an id. */
  readonly unknownIds: number;
}

/**
 * The first `depth` hits of the recorded queries for the questions: by their rows where the index has the recorded generation, else by
 * their ids. A record belongs to a question as for `trawl replay --questions`. A record does not name its encoder: a record of another
 * generation counts for the present encoder, unless one of `others` has that generation and another encoder.
 *
 * @throws TrawlError CORPUS_NOT_FOUND, CORPUS_BAD_LINE.
 */
export async function recordedLists(
  paths: readonly string[],
  questions: readonly Question[],
  {
    retriever,
    others,
    depth,
    scope,
    signal,
  }: {
    retriever: Retriever;
    others: readonly Retriever[];
    depth: number;
    scope: RowScope;
    signal: AbortSignal | undefined;
  },
): Promise<RecordedLists> {
  const known = new KnownQuestions(questions);
  const { generation, rows: indexRows } = retriever.info;
  const otherEncoders = new Set(
    others.filter((other) => !isSameEncoder(other, retriever)).map(({ info }) => info.generation),
  );
  const [own, earlier, foreign] = [new RowBitmap(indexRows), new RowBitmap(indexRows), new RowBitmap(indexRows)];
  const earlierIds = new IdRows(retriever, earlier, { scope, signal });
  const foreignIds = new IdRows(retriever, foreign, { scope, signal });
  let records = 0;
  let ofOtherQuestions = 0;
  for await (const { query } of readRecords(paths, { signal })) {
    records += 1;
    const { questionId: id, dataset, question, query: asked } = query;
    const text = question ?? composedParts(asked)?.question;
    if (known.find({ id, dataset, text, query: asked }) === undefined) {
      ofOtherQuestions += 1;
      continue;
    }
    const isSame = query.generation === generation && query.indexes === undefined;
    const isForeign = query.mode === 'bm25' || otherEncoders.has(query.generation);
    const rows = isForeign ? foreign : own;
    const ids = isForeign ? foreignIds : earlierIds;
    for (let i = 0; i < Math.min(depth, query.rows.length); i++) {
      if (!isSame) ids.add(query.ids[i]);
      else if (query.rows[i]! < indexRows) rows.add(query.rows[i]!);
    }
    await ids.lookUpSome();
  }
  await earlierIds.lookUp();
  await foreignIds.lookUp();
  return {
    sources: [
      { name: 'records of this generation', ofPresentEncoder: true, rows: own },
      { name: 'records of other generations', ofPresentEncoder: true, rows: earlier },
      { name: 'records of other encoders and BM25', ofPresentEncoder: false, rows: foreign },
    ].filter(({ rows }) => rows.count() > 0),
    records,
    ofOtherQuestions,
    unknownIds: earlierIds.unknown + foreignIds.unknown,
  };
}
