import { bug } from '../../errors.ts';
import type { Dialect } from './dialect.ts';
import { searchR1 } from './search-r1.ts';
import { skyrl } from './skyrl.ts';

/** On a shared path the first that claims a body gets it; the last one of a path claims everything. */
export const DIALECTS: readonly Dialect[] = [skyrl, searchR1];

export const DIALECT_PATHS: readonly string[] = [...new Set(DIALECTS.map((dialect) => dialect.path))];

export function chooseDialect(path: string, body: unknown): Dialect {
  const dialect = DIALECTS.find((candidate) => candidate.path === path && candidate.claims(body));
  if (dialect === undefined) throw bug(`No dialect claims a body sent to ${path}`);
  return dialect;
}
