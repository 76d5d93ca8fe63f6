import { bug } from '../src/base/errors.ts';
import { idColumnOf, rowId } from '../src/index/passages/id-column.ts';
import { contentsOf } from './contents-of.ts';
import { parseJson } from './parse-json.ts';
import { columnOf, type PassageRow } from './passage.ts';

export interface HitFields {
  /** The passage's id; `row:` and the row number for a passage without one. */
  readonly id: string;
  readonly title: string | undefined;
  /** The text without the title. */
  readonly text: string;
  /** Title and text, as they are embedded by default. */
  readonly contents: string;
}

/** Reads a stored document (JSON). Large integer ids stay exact. */
export function hitFields(document: string, row: number): HitFields {
  const parsed = parseJson(document);
  if (!parsed.ok) throw bug(`a stored document does not parse: ${parsed.reason}`);
  const columns = parsed.value as PassageRow;
  const contents = contentsOf(columns);
  const [firstLine = '', ...rest] = contents.split('\n');
  const ownTitle = columnOf(columns, 'title');
  const title =
    typeof ownTitle === 'string' ? ownTitle : rest.length > 0 ? firstLine.replace(/^"(.*)"$/, '$1') : undefined;
  const ownText = columnOf(columns, 'text');
  const text = typeof ownText === 'string' ? ownText : rest.length > 0 ? rest.join('\n') : contents;
  const id = columnOf(columns, idColumnOf(columns));
  return { id: id === undefined || id === null ? rowId(row) : String(id), title, text, contents };
}
