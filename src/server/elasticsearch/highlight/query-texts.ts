import { TimeSlice } from '../../../base/time-slice.ts';
import { type Analyse, analyser } from '../../../engine/lexical/analysis/analysers.ts';
import { childrenOf, type LexicalQuery } from '../../../engine/lexical/lexical-query.ts';
import type { AnalyserName } from '../../../engine/lexical/lexical-settings.ts';

/** The terms of a text of a query. */
export interface QueryTerms {
  /** Repeated terms count each. */
  readonly count: number;
  /** How often the text has each term. */
  readonly times: ReadonlyMap<string, number>;
}

/** The texts of a query, each analysed once for all passages that the query is compared with. */
export class QueryTexts {
  readonly #terms: ReadonlyMap<string, QueryTerms>;

  private constructor(terms: ReadonlyMap<string, QueryTerms>) {
    this.#terms = terms;
  }

  /** Analyses the texts, and lets the event loop serve other requests between two of them. */
  static async of(query: LexicalQuery, name: AnalyserName, signal: AbortSignal): Promise<QueryTexts> {
    const analyse = analyser(name);
    const slice = new TimeSlice(signal);
    const terms = new Map<string, QueryTerms>();
    for (const text of textsOf(query)) {
      if (terms.has(text)) continue;
      if (slice.isOver) await slice.yield();
      terms.set(text, termsOf(analyse(text)));
    }
    return new QueryTexts(terms);
  }

  termsOf(text: string): QueryTerms {
    return this.#terms.get(text)!;
  }
}

function* textsOf(query: LexicalQuery): Generator<string> {
  if (query.type === 'match') yield query.text;
  for (const child of childrenOf(query)) yield* textsOf(child);
}

function termsOf(terms: ReturnType<Analyse>): QueryTerms {
  const times = new Map<string, number>();
  for (const term of terms) times.set(term, (times.get(term) ?? 0) + 1);
  return { count: terms.length, times };
}
