import { composeText, type EncoderInput, type Truncation } from '../../src/encoder/text-encoder.ts';
import type { Hit, QueryAnswer } from '../../src/search/calls/query-outcome.ts';
import type { AnswerFacts } from '../../src/server/recording/answer-facts.ts';
import type { AnswerKey } from './answer-key.ts';

/**
 * An answer as `answers.sqlite` has it. The file has the tables of a passage file: the key is the id of a row, and the JSON text of this
 * object its document, so that the text of a query is looked up as `doc_id`.
 */
export interface StoredAnswer {
  /** `AnswerKey.text` and `AnswerKey.settings`. */
  readonly doc_id: string;
  readonly settings: string;
  /** Hits that were asked for. Fewer rows are all that the search can find. */
  readonly k: number;
  /** Row numbers in the index, best first. */
  readonly rows: readonly number[];
  readonly scores: readonly number[];
  readonly cut: Truncation;
  /** Null for a record of a server that did not write them. */
  readonly facts: AnswerFacts | null;
}

/** The id of an answer in `answers.sqlite`. Never a number, which look-ups would compare in another way. */
export function answerId({ text, settings }: AnswerKey): string {
  return `${settings} ${text}`;
}

/** The answer with its first k hits. `prefix`: of the model's queries, empty for BM25. */
export function replayedAnswer(
  { rows, scores, cut, facts }: StoredAnswer,
  documents: readonly string[],
  input: EncoderInput,
  prefix: string,
): QueryAnswer {
  const hits = documents.map((document, i): Hit => {
    const firstStage = facts?.firstStage?.[i];
    const places = facts?.places?.[i];
    return {
      row: rows[i]!,
      score: scores[i]!,
      document,
      firstStage,
      places,
    };
  });
  return {
    ok: true,
    hits,
    tokens: facts === null ? 0 : facts.tokens,
    truncated: cut !== 'nothing',
    text: facts?.text ?? composeText(input, prefix, null),
    cut,
    vector: null,
    certificate: {
      exact: true,
      rescored: facts?.rescored ?? null,
      depth: facts?.depth === undefined ? undefined : facts.depth,
    },
    ranges: facts?.ranges === undefined ? undefined : facts.ranges,
    ...(facts?.rerank == null ? {} : { rerank: { ok: true, ...facts.rerank } }),
  };
}
