import { idColumnOf, isWritten } from '../src/index/passages/document-fields.ts';
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

/** The names that replies read. */
const USUAL = { id: ['id', '_id'], text: ['contents', 'text'], title: ['title'] } as const;

type Role = keyof typeof NAMES;
const ROLES = ['text', 'title', 'id'] as const satisfies readonly Role[];

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
    // Elasticsearch's clients get their documents back as they wrote them.
    const found = wanted ?? usualColumn(role, row) ?? (isWritten(row) ? undefined : otherColumn(role, row));
    if (typeof found === 'object') {
      const both = found.map((name) => JSON.stringify(name)).join(' and ');
      return { reason: `${both} may both be the ${role}; name the right one with --${role}-column` };
    }
    columns[role] = found;
  }
  // A column that an option names as the text is not the title, too.
  return columns.title === columns.text && given.title === undefined ? { ...columns, title: undefined } : columns;
}

/** The column that replies read, if the row has a value there. */
function usualColumn(role: Role, row: PassageRow): string | undefined {
  const names = role === 'id' ? [idColumnOf(row)] : USUAL[role];
  return names.find((name) => (columnOf(row, name) ?? undefined) !== undefined);
}

/** The column with the best other name; several if they are equally good, or different texts. */
function otherColumn(role: Role, row: PassageRow): string | readonly string[] | undefined {
  const named = Object.entries(row).flatMap(([name, value]) => {
    // Bytes that are not UTF-8 count, so that they are refused.
    const isText = typeof value === 'string' || value instanceof Uint8Array;
    const fits = isText || (role === 'id' && (typeof value === 'number' || typeof value === 'bigint'));
    return fits && rankOf(role, name) >= 0 ? [name] : [];
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
export function renamedRow(row: PassageRow, columns: ColumnNames): PassageRow | undefined {
  const moved = ROLES.filter((role) => columns[role] !== undefined && columns[role] !== usualColumn(role, row));
  if (moved.length === 0) return undefined;
  const freed = new Set<string>(moved.flatMap((role) => USUAL[role]));
  const entries = Object.entries(row).flatMap(([name, value]): [string, unknown][] => {
    const roles = ROLES.filter((role) => columns[role] === name);
    const renamed = roles
      .filter((role) => role !== 'id' && moved.includes(role))
      .map((role): [string, unknown] => [role === 'text' && rankOf(role, name) === 0 ? 'contents' : role, value]);
    if (freed.has(name)) {
      return roles.length > 0 || value === null ? renamed : [[spareName(row, name), value]];
    }
    const isUsual = roles.some((role) => !moved.includes(role));
    const stays = roles.length === 0 || isUsual || (columns.id === name && rankOf('id', name) !== 0);
    return stays ? [...renamed, [name, value]] : renamed;
  });
  return Object.fromEntries(moved.includes('id') ? [['id', row[columns.id!]], ...entries] : entries);
}

function spareName(row: PassageRow, name: string): string {
  return Object.hasOwn(row, name) ? spareName(row, `original_${name}`) : name;
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
