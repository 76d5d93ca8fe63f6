import { bug } from '../src/errors.ts';
import { contentsOf as contentsIfAny } from '../src/passages/contents.ts';
import type { PassageRow } from './passage.ts';

/** What a passage says, by the definition the server uses too; a row that the readers let through always has it. */
export function contentsOf(row: PassageRow): string {
  const contents = contentsIfAny(row);
  if (contents === undefined) throw bug('A row without contents and text got past the corpus reader');
  return contents;
}
