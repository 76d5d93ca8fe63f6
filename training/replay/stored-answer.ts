import { isObject } from '../../src/base/objects.ts';
import type { ModelIdentity } from '../../src/encoder/identity/model-identity.ts';
import {
  applyTemplate,
  composeText,
  contextOf,
  type EncoderInput,
  type Truncation,
} from '../../src/encoder/text-encoder.ts';
import { canonicalFilter } from '../../src/engine/filter/filter.ts';
import type { Hit, QueryAnswer } from '../../src/search/calls/query-outcome.ts';
import { inputOf, isEmbedded, type RetrieveCall, type RetrieveQuery } from '../../src/search/calls/retrieve-call.ts';
import { hybridKey } from '../../src/search/hybrid/hybrid-settings.ts';
import type { SearchMode } from '../../src/search/search-mode.ts';
import type { AnswerFacts } from '../../src/server/recording/record-line.ts';

/** What a recorded answer is looked up by. Two searches with equal keys have the same answer in one generation of an index. */
export interface AnswerKey {
  /** The parts of the query that are searched for, as JSON: `[query]`, or `[question, history, query]`. */
  readonly text: string;
  /** The settings that decide the answer, as JSON with sorted members; defaults are left out. */
  readonly settings: string;
}

/** What of an index decides how a search without settings is answered. */
interface KeyDefaults {
  readonly mode: SearchMode;
  readonly model: Pick<ModelIdentity, 'queryTemplate'> | null;
}

export type KeyedCall = Omit<RetrieveCall, 'queries' | 'signal' | 'allowPartial'>;

export function answerKey(query: RetrieveQuery, call: KeyedCall, { mode: defaultMode, model }: KeyDefaults): AnswerKey {
  const { mode = defaultMode, bm25, bm25Order = 'row', filter, views = [], hybrid, rerank, template, k } = call;
  const input = applyTemplate(inputOf(query), template ?? model?.queryTemplate);
  const hasContext = contextOf(input).length > 0;
  const truncate = isEmbedded(query) ? query.truncate : call.truncate;
  const settings = {
    mode,
    // Without a question both sides cut the end, and BM25 cuts nothing.
    truncate: hasContext && mode !== 'bm25' && truncate === 'question' ? truncate : undefined,
    filter: filter && canonicalFilter(filter),
    views: views.length === 0 ? undefined : [...new Set(views)].sort(),
    bm25: mode === 'dense' ? undefined : bm25,
    bm25Order: mode === 'bm25' && bm25Order !== 'row' ? bm25Order : undefined,
    hybrid: mode === 'hybrid' && hybrid !== undefined ? hybridKey(hybrid) : undefined,
    rerank: rerank && {
      // At least k hits are scored, and a longer list changes which passages are best.
      depth: Math.max(rerank.depth, k),
      model: rerank.model,
      allowFailure: rerank.allowFailure === true ? true : undefined,
    },
  };
  return { text: JSON.stringify(searchedParts(input, hasContext)), settings: sortedJson(settings) };
}

function searchedParts(input: EncoderInput, hasContext: boolean): readonly unknown[] {
  if (typeof input === 'string') return [input];
  const { question, history = [], query } = input;
  return hasContext ? [question, history, query] : [query];
}

/** JSON whose members are in the order of their names, in each object. */
function sortedJson(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    isObject(part) ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1))) : part,
  );
}

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

/**
 * The answer with its first hits, as many as there are documents.
 *
 * @param prefix the prefix of the model's queries, empty for BM25.
 */
export function replayedAnswer(
  { rows, scores, cut, facts }: StoredAnswer,
  documents: readonly string[],
  input: EncoderInput,
  prefix: string,
): QueryAnswer {
  const hits = documents.map((document, i): Hit => {
    const [firstStage, places] = [facts?.firstStage?.[i], facts?.places?.[i]];
    return { row: rows[i]!, score: scores[i]!, document, firstStage, places };
  });
  return {
    ok: true,
    hits,
    tokens: facts === null ? 0 : facts.tokens,
    truncated: cut !== 'nothing',
    text: facts?.text ?? composeText(input, prefix, null),
    cut,
    vector: null,
    certificate: { exact: true, rescored: facts?.rescored ?? null, depth: facts?.depth },
    scales: facts?.scales,
    rerank: facts?.rerank ? { ok: true, ...facts.rerank } : undefined,
  };
}
