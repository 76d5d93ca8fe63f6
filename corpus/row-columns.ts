import { idColumnOf } from '../src/index/passages/document-fields.ts';
import { columnOf, type PassageRow } from './passage.ts';

/** The columns of a corpus by what they are, where options name them. */
export interface ColumnNames {
  readonly id?: string;
  readonly text?: string;
  readonly title?: string;
}

/**
 * Names of the columns that corpora of this field have, best first: without case, `-`, `_`, `.` and spaces. An id of a passage comes before
 * one of a document.
 */
const NAMES = {
  id: ['id', 'passageid', 'psgid', 'pid', 'docid', 'docno', 'documentid', 'corpusid'],
  text: ['contents', 'text', 'content', 'passage', 'passagetext', 'body', 'segment', 'pagecontent'],
  title: ['title'],
} as const;

type Role = keyof typeof NAMES;
const ROLES = ['id', 'text', 'title'] as const satisfies readonly Role[];

/** What a column with this name is in the corpora of this field; undefined for another name. */
export function roleOf(name: string): Role | undefined {
  return ROLES.find((role) => rankOf(role, name) >= 0);
}

function rankOf(role: Role, name: string): number {
  const names: readonly string[] = NAMES[role];
  return names.indexOf(name.toLowerCase().replaceAll(/[-_. ]/g, ''));
}

/** The columns that are id, text and title of this row, or why that cannot be decided. */
export type RowColumns = ColumnNames | { readonly reason: string };

/** @param given takes precedence: the row must have these columns. */
export function columnsOfRow(row: PassageRow, given: ColumnNames): RowColumns {
  const columns: { id?: string; text?: string; title?: string } = {};
  for (const role of ROLES) {
    const wanted = given[role];
    if (wanted !== undefined && !Object.hasOwn(row, wanted)) {
      return { reason: `expected the column ${JSON.stringify(wanted)} of --${role}-column, found ${columnNames(row)}` };
    }
    const found = wanted ?? usualColumn(role, row) ?? otherColumn(role, row);
    if (typeof found === 'object') {
      const both = found.map((name) => JSON.stringify(name)).join(' and ');
      return { reason: `${both} may both be the ${role}; name the right one with --${role}-column` };
    }
    columns[role] = found;
  }
  return columns;
}

/** The column that replies read, if the row has it. */
function usualColumn(role: Role, row: PassageRow): string | undefined {
  const names = role === 'id' ? [idColumnOf(row)] : role === 'text' ? ['contents', 'text'] : ['title'];
  return names.find((name) => (columnOf(row, name) ?? undefined) !== undefined);
}

/** The column with the best other name; several if they are equally good, or different texts. */
function otherColumn(role: Role, row: PassageRow): string | readonly string[] | undefined {
  const named = Object.keys(row).filter((name) => {
    const type = typeof row[name];
    return (
      rankOf(role, name) >= 0 && (type === 'string' || (role === 'id' && (type === 'number' || type === 'bigint')))
    );
  });
  const least = Math.min(...named.map((name) => rankOf(role, name)));
  // `Text` beside `body` is like `text` beside `body`.
  const isUsual = role !== 'text' || least <= 1;
  const best = isUsual ? named.filter((name) => rankOf(role, name) === least) : named;
  return best.length > 1 ? best : best[0];
}

/**
 * The row with its columns under the names that replies read: `id`, `text` or `contents`, and `title`. Undefined if it has them. An id from
 * a column such as `doc_id` keeps that, too, because it also names the document. What had such a name before is called `original_…`.
 */
export function renamedRow(row: PassageRow, { id, text, title }: ColumnNames): PassageRow | undefined {
  const textName = text !== undefined && rankOf('text', text) === 0 ? 'contents' : 'text';
  const isUsual = (role: Role, column: string | undefined): boolean =>
    column === undefined || column === usualColumn(role, row);
  if (isUsual('id', id) && isUsual('text', text) && isUsual('title', title)) return undefined;
  const taken = new Set<string>();
  if (!isUsual('id', id)) for (const name of ['id', '_id']) taken.add(name);
  if (!isUsual('text', text)) for (const name of ['text', 'contents']) taken.add(name);
  if (!isUsual('title', title)) taken.add('title');
  const entries = Object.entries(row).flatMap(([name, value]): [string, unknown][] => {
    if (name === text) return [[isUsual('text', text) ? name : textName, value]];
    if (name === title) return [['title', value]];
    if (name === id && (taken.has(name) || rankOf('id', name) === 0)) return isUsual('id', id) ? [[name, value]] : [];
    if (!taken.has(name)) return [[name, value]];
    return value === null ? [] : [[`original_${name}`, value]];
  });
  return Object.fromEntries(isUsual('id', id) ? entries : [['id', row[id!]], ...entries]);
}

/** A column without a known name that looks like an id; undefined if there is none. */
export function likelyIdColumn(row: PassageRow): string | undefined {
  return Object.keys(row).find(
    (name) =>
      ['string', 'number', 'bigint'].includes(typeof row[name]) &&
      (/(?:^|[-_. ])(?:id|uid|uuid|guid|key|number|no|idx|index)$/i.test(name) ||
        /[a-z](?:Id|ID|Key)$|^__index_level_0__$/.test(name)),
  );
}

export function columnNames(row: PassageRow): string {
  const names = Object.keys(row);
  if (names.length === 0) return 'no columns';
  const shown = names.slice(0, 20).map((name) => JSON.stringify(name.slice(0, 40)));
  return `the columns ${shown.join(', ')}${names.length > shown.length ? `, and ${names.length - shown.length} more` : ''}`;
}
