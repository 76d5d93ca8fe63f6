/**
 * A query of Elasticsearch's query DSL as it was written, before it is related to an index: fields may be unknown there, and ids
 * are not rows yet.
 */
export type DslQuery = Boosted &
  (
    | ({ readonly type: 'match'; readonly field: string } & TextSearch)
    | ({
        readonly type: 'multi-match';
        readonly fields: readonly FieldPattern[];
        readonly tieBreaker: number;
      } & TextSearch)
    | { readonly type: 'term'; readonly field: string; readonly term: string }
    | { readonly type: 'terms'; readonly field: string; readonly terms: readonly string[] }
    | { readonly type: 'ids'; readonly ids: readonly string[] }
    | { readonly type: 'exists'; readonly field: string }
    | DslBool
    | { readonly type: 'dis-max'; readonly queries: readonly DslQuery[]; readonly tieBreaker: number }
    | { readonly type: 'constant-score'; readonly filter: DslQuery }
    | { readonly type: 'match-all' }
    | { readonly type: 'match-none' }
  );

interface Boosted {
  readonly boost: number;
}

/** The parts of `match`, and of `multi_match` in each of its fields. */
export interface TextSearch {
  readonly text: string;
  readonly operator: 'or' | 'and';
  /** As written, such as `2`, `-25%` or `3<90%`. */
  readonly minimumShouldMatch: string | undefined;
  readonly zeroTerms: 'none' | 'all';
}

/** A field's name, or a pattern with `*` for several. */
export interface FieldPattern {
  readonly pattern: string;
  readonly boost: number;
}

export interface DslBool {
  readonly type: 'bool';
  readonly must: readonly DslQuery[];
  readonly should: readonly DslQuery[];
  readonly filter: readonly DslQuery[];
  readonly mustNot: readonly DslQuery[];
  readonly minimumShouldMatch: string | undefined;
  /** Whether a bool of only `must_not` matches the other passages. */
  readonly adjustPureNegative: boolean;
}

/** Whether a name fits a pattern, in which `*` stands for any characters. */
export function fitsPattern(pattern: string, name: string): boolean {
  const parts = pattern.split('*');
  if (parts.length === 1) return pattern === name;
  const [first, last] = [parts[0]!, parts.at(-1)!];
  if (!name.startsWith(first) || !name.endsWith(last) || name.length < first.length + last.length) return false;
  // Takes the first place of each part, which leaves the most for the parts after it.
  let at = first.length;
  const end = name.length - last.length;
  return parts.slice(1, -1).every((part) => {
    const found = name.indexOf(part, at);
    at = found + part.length;
    return found !== -1 && at <= end;
  });
}
