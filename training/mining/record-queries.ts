import { TrawlError } from '../../src/base/errors.ts';
import { composedParts, withoutQuestion } from '../../src/server/recording/composed-query.ts';
import type { RecordLine } from '../records/read-records.ts';
import type { RecordedQuery } from '../records/recorded-query.ts';
import type { MiningQuery, SkipReason } from './mining-query.ts';

export interface RecordLimits {
  /** Only queries of this split; undefined: of all. */
  readonly split?: string;
  /** Only records of this index generation are allowed; undefined: any. Another one throws. */
  readonly generation?: string;
}

/**
 * The queries of records in their order, without positives: those come from judged questions or qrels. A failed query and one of another
 * split give the reason why they are left out. `onRead` is called with every record.
 *
 * @throws TrawlError CORPUS_BAD_LINE for a damaged line or another generation, CORPUS_NOT_FOUND.
 */
export async function* recordQueries(
  lines: AsyncIterable<RecordLine>,
  { split, generation }: RecordLimits,
  onRead: (line: RecordLine) => void = () => undefined,
): AsyncGenerator<MiningQuery | SkipReason, void> {
  for await (const line of lines) {
    onRead(line);
    const { query } = line;
    if (split !== undefined && query.split !== split) yield 'other_split';
    else if (query.error !== undefined) yield 'failed';
    else {
      if (generation !== undefined && query.generation !== generation) throw otherGeneration(line, generation);
      yield miningQuery(query);
    }
  }
}

function miningQuery(recorded: RecordedQuery): MiningQuery {
  const { questionId, dataset, turn, history } = recorded;
  const { question, query } = partsOf(recorded);
  return {
    id: questionId ?? '',
    question,
    query,
    history,
    round: turn,
    dataset,
    positiveIds: [],
    answers: [],
  };
}

/** The question and the sub-query. A text that the client composed of both is cut after the question, or at the first separator. */
function partsOf({ question, query }: RecordedQuery): { readonly question: string; readonly query?: string } {
  if (question !== undefined) return { question, query: withoutQuestion(query, question) };
  return composedParts(query) ?? { question: query };
}

function otherGeneration({ file, line, query }: RecordLine, generation: string): TrawlError {
  return new TrawlError(
    'CORPUS_BAD_LINE',
    `${file}:${line}: the query was asked in index generation ${query.generation || '(none)'}, and this index is ${generation}. ` +
      'Mine in the index that the agent used, or allow any with --any-generation.',
    { details: { file, line } },
  );
}
