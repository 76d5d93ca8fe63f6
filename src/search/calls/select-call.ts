import type { LexicalQuery } from '../../engine/lexical/lexical-query.ts';
import type { RowScope } from './row-scope.ts';

/** Asks for the set of the live rows with one of these ids, or of those that a query tree matches, or without both of all in the scope. */
export interface SelectCall extends RowScope {
  readonly ids?: readonly string[];
  /** Has no effect beside `ids`. */
  readonly query?: LexicalQuery;
  readonly signal?: AbortSignal;
}
