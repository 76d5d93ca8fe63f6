import { bug } from '../src/errors.ts';
import { columnOf, type PassageRow } from './passage.ts';

/**
 * What a passage says, in the form of the wiki dumps: its `contents` if it has them, else `"title"\ntext` with the
 * quotes as they stand there, else the text alone. An empty title counts as none.
 */
export function contentsOf(row: PassageRow): string {
  const contents = columnOf(row, 'contents');
  if (typeof contents === 'string') return contents;
  const text = columnOf(row, 'text');
  if (typeof text !== 'string') throw bug('A row without contents and text got past the corpus reader');
  const title = columnOf(row, 'title');
  return typeof title === 'string' && title !== '' ? `"${title}"\n${text}` : text;
}
