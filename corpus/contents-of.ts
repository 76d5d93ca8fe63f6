import { bug } from '../src/base/errors.ts';
import { contentsOf as contentsIfAny } from '../src/index/passages/contents.ts';
import type { PassageRow } from './passage.ts';

/** The contents of a passage, defined as on the server. Every row that the readers accept has contents. */
export function contentsOf(row: PassageRow): string {
  const contents = contentsIfAny(row);
  if (contents === undefined) throw bug('A row without contents and text got past the corpus reader');
  return contents;
}
