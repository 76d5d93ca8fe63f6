import { TimeSlice } from '../../../base/time-slice.ts';
import { analyser } from '../../../engine/lexical/analysis/analysers.ts';
import { type LexicalQuery, type MatchQuery, minimumOf, textsOf } from '../../../engine/lexical/lexical-query.ts';
import type { AnalyserName, LexicalField } from '../../../engine/lexical/lexical-settings.ts';

/** How often each text of a query has each of its terms. */
export type QueryTexts = ReadonlyMap<string, ReadonlyMap<string, number>>;

/**
 * Analyses the texts of a query, once for all passages that the query is compared with. Between two texts it lets the event loop serve
 * other requests.
 */
export async function analysedQuery(query: LexicalQuery, name: AnalyserName, signal: AbortSignal): Promise<QueryTexts> {
  const analyse = analyser(name);
  const slice = new TimeSlice(signal);
  const texts = new Map<string, Map<string, number>>();
  for (const text of textsOf(query)) {
    if (texts.has(text)) continue;
    if (slice.isOver) await slice.yield();
    const times = new Map<string, number>();
    for (const term of analyse(text)) times.set(term, (times.get(term) ?? 0) + 1);
    texts.set(text, times);
  }
  return texts;
}

type BoolQuery = Extract<LexicalQuery, { type: 'bool' }>;

/** The passage that a query is compared with. */
interface QueriedPassage {
  readonly row: number;
  /** Whether a field of the passage has a term. */
  has(field: LexicalField, term: string): boolean;
}

/** A term of a query for a field. */
interface QueriedWord {
  readonly field: LexicalField;
  readonly term: string;
}

/**
 * The words by which a query matches a passage, as Lucene's Matches have them: the words of all clauses that match except `mustNot`.
 * Undefined if the query does not match.
 *
 * @param scores false where Lucene drops should clauses that are not needed for a match.
 */
export function matchedWords(
  query: LexicalQuery,
  texts: QueryTexts,
  passage: QueriedPassage,
  scores = true,
): readonly QueriedWord[] | undefined {
  switch (query.type) {
    case 'term':
      return passage.has(query.field, query.term) ? [query] : undefined;
    case 'match':
      return wordsOfMatch(query, texts, passage);
    case 'bool':
      return wordsOfBool(query, texts, passage, scores && query.boost !== 0);
    case 'dis-max': {
      // Lucene rewrites these to the only query, and to a bool of should clauses.
      const isRewritten = query.queries.length === 1 || query.tieBreaker === 1;
      const isScored = isRewritten ? scores && query.boost !== 0 : true;
      const found = query.queries
        .map((each) => matchedWords(each, texts, passage, isScored))
        .filter((words) => words !== undefined);
      return found.length === 0 ? undefined : found.flat();
    }
    case 'constant-score':
      return matchedWords(query.query, texts, passage, false);
    case 'rows':
      return query.rows.has(passage.row) ? [] : undefined;
    case 'match-all':
      return [];
    case 'match-none':
      return undefined;
    default:
      throw new TypeError(`unknown query: ${query satisfies never}`);
  }
}

function wordsOfMatch(
  { field, text, operator, minimumShouldMatch = 0, withoutTerms }: MatchQuery,
  texts: QueryTexts,
  passage: QueriedPassage,
): readonly QueriedWord[] | undefined {
  const words: QueriedWord[] = [];
  // Repeated terms count each.
  let [count, found] = [0, 0];
  for (const [term, times] of texts.get(text)!) {
    count += times;
    if (!passage.has(field, term)) continue;
    words.push({ field, term });
    found += times;
  }
  if (count === 0) return withoutTerms === 'all' ? [] : undefined;
  const isAnd = operator === 'and' && count > 1;
  // There are no should clauses, of which some would have to match.
  if (isAnd && minimumOf(minimumShouldMatch, 0) > 0) return undefined;
  const some = count === 1 ? 1 : Math.max(1, minimumOf(minimumShouldMatch, count));
  return found < (isAnd ? count : some) ? undefined : words;
}

function wordsOfBool(
  { must = [], should = [], filter = [], mustNot = [], minimumShouldMatch = 0 }: BoolQuery,
  texts: QueryTexts,
  passage: QueriedPassage,
  scores: boolean,
): readonly QueriedWord[] | undefined {
  if (mustNot.some((clause) => matchedWords(clause, texts, passage, false) !== undefined)) return undefined;
  const words: QueriedWord[] = [];
  for (const [clauses, isScored] of [
    [must, scores],
    [filter, false],
  ] as const) {
    for (const clause of clauses) {
      const found = matchedWords(clause, texts, passage, isScored);
      if (found === undefined) return undefined;
      for (const word of found) words.push(word);
    }
  }
  const isRequired = must.length + filter.length > 0;
  const minimum = isRequired ? minimumShouldMatch : Math.max(1, minimumShouldMatch);
  if (!scores && minimum === 0) return words;
  const found = should
    .map((clause) => matchedWords(clause, texts, passage, scores))
    .filter((each) => each !== undefined);
  return found.length < minimum ? undefined : [...words, ...found.flat()];
}
