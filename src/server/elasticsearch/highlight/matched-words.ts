import { type LexicalQuery, type MatchQuery, minimumOf } from '../../../engine/lexical/lexical-query.ts';
import type { LexicalField } from '../../../engine/lexical/lexical-settings.ts';
import type { QueryTexts } from './query-texts.ts';

/** The passage that a query is compared with. */
export interface QueriedPassage {
  readonly row: number;
  /** Whether a field of the passage has a term. */
  has(field: LexicalField, term: string): boolean;
}

/** A term of a query for a field. */
export interface QueriedWord {
  readonly field: LexicalField;
  readonly term: string;
}

/**
 * The words by which a query matches a passage, as Lucene's Matches have them: those of the clauses that match, without those of
 * `mustNot`. Null if the query does not match.
 */
export function matchedWords(
  query: LexicalQuery,
  texts: QueryTexts,
  passage: QueriedPassage,
): readonly QueriedWord[] | null {
  return new Matching(texts, passage).words(query, true);
}

class Matching {
  readonly #texts: QueryTexts;
  readonly #passage: QueriedPassage;

  constructor(texts: QueryTexts, passage: QueriedPassage) {
    this.#texts = texts;
    this.#passage = passage;
  }

  /** @param scores false where Lucene drops should clauses that are not needed for a match. */
  words(query: LexicalQuery, scores: boolean): readonly QueriedWord[] | null {
    switch (query.type) {
      case 'term':
        return this.#passage.has(query.field, query.term) ? [query] : null;
      case 'match':
        return this.#match(query);
      case 'bool':
        return this.#bool(query, scores && query.boost !== 0);
      case 'dis-max': {
        // Lucene rewrites these to the only query, and to a bool of should clauses.
        const isRewritten = query.queries.length === 1 || query.tieBreaker === 1;
        const isScored = isRewritten ? scores && query.boost !== 0 : true;
        const found = query.queries.map((each) => this.words(each, isScored)).filter((words) => words !== null);
        return found.length === 0 ? null : found.flat();
      }
      case 'constant-score':
        return this.words(query.query, false);
      case 'rows':
        return query.rows.has(this.#passage.row) ? [] : null;
      case 'match-all':
        return [];
      case 'match-none':
        return null;
      default:
        throw new TypeError(`unknown query: ${query satisfies never}`);
    }
  }

  #match({ field, text, operator, minimumShouldMatch = 0, withoutTerms }: MatchQuery): readonly QueriedWord[] | null {
    const { count, times } = this.#texts.termsOf(text);
    if (count === 0) return withoutTerms === 'all' ? [] : null;
    const words: QueriedWord[] = [];
    // Repeated terms count each.
    let found = 0;
    for (const [term, repeated] of times) {
      if (!this.#passage.has(field, term)) continue;
      words.push({ field, term });
      found += repeated;
    }
    const isAnd = operator === 'and' && count > 1;
    // There are no should clauses, of which some would have to match.
    if (isAnd && minimumOf(minimumShouldMatch, 0) > 0) return null;
    const some = count === 1 ? 1 : Math.max(1, minimumOf(minimumShouldMatch, count));
    const minimum = isAnd ? count : some;
    return found < minimum ? null : words;
  }

  #bool(query: Extract<LexicalQuery, { type: 'bool' }>, scores: boolean): readonly QueriedWord[] | null {
    const { must = [], should = [], filter = [], mustNot = [], minimumShouldMatch = 0 } = query;
    if (mustNot.some((clause) => this.words(clause, false) !== null)) return null;
    const words: QueriedWord[] = [];
    for (const [clauses, isScored] of [
      [must, scores],
      [filter, false],
    ] as const) {
      for (const clause of clauses) {
        const found = this.words(clause, isScored);
        if (found === null) return null;
        for (const word of found) words.push(word);
      }
    }
    const isRequired = must.length + filter.length > 0;
    const minimum = isRequired ? minimumShouldMatch : Math.max(1, minimumShouldMatch);
    if (!scores && minimum === 0) return words;
    const found = should.map((clause) => this.words(clause, scores)).filter((each) => each !== null);
    return found.length < minimum ? null : [...words, ...found.flat()];
  }
}
