import { contentsOf, textOf } from './contents.ts';
import { parseNumbers } from './exact-numbers.ts';
import { idColumnOf } from './id-column.ts';

/** The fields of a passage that replies use. */
export interface DocumentFields {
  /** The id as JSON text, with all its digits; undefined if it is missing or null. */
  readonly idJson: string | undefined;
  /** The id as text, without quotes. */
  readonly id: string | undefined;
  /** The column `title`, else the first line of a `contents` with several lines, without its quotes. */
  readonly title: string | undefined;
  /** The passage without its title. */
  readonly text: string;
  /** See `contentsOf`; empty for a row without text. */
  readonly contents: string;
  readonly url: string | undefined;
  readonly date: string | undefined;
  /** The id of its document as text, from `doc_id`; undefined if it is missing or null. */
  readonly document: string | undefined;
  /** Where it stands in its document, if `trawl prepare` made the passage. */
  readonly place: DocumentPlace | undefined;
}

/** Columns that `trawl prepare` writes. A word is what stands between single spaces. */
interface DocumentPlace {
  /** The number of the passage, from 0. */
  readonly passage: number;
  /** Words at the beginning that the previous passage ends with. */
  readonly overlap: number;
  /** Words at the end that are the beginning of the document. */
  readonly filled: number;
}

/** Parses a stored document. Integer ids beyond 2^53 keep their digits. */
export function documentFields(documentJson: string): DocumentFields {
  const parsed: unknown = JSON.parse(documentJson);
  const row = typeof parsed === 'object' && parsed !== null ? (parsed as Record<string, unknown>) : {};
  const column = (name: string): unknown => (Object.hasOwn(row, name) ? row[name] : undefined);
  const contents = contentsOf(row) ?? '';
  const newline = contents.indexOf('\n');
  const textColumn = (name: string): string | undefined => {
    const value = column(name);
    return typeof value === 'string' ? value : undefined;
  };
  const idColumn = idColumnOf(row);
  const idJson = idAsJson(column(idColumn), idColumn, documentJson);
  const docId = idAsJson(column('doc_id'), 'doc_id', documentJson);
  const titleLine = newline === -1 ? undefined : withoutQuotes(contents.slice(0, newline));
  return {
    idJson,
    id: idJson === undefined ? undefined : plainId(idJson),
    title: textColumn('title') ?? titleLine,
    text: textOf(row, contents),
    contents,
    url: textColumn('url'),
    date: textColumn('date'),
    document: docId === undefined ? undefined : plainId(docId),
    place: placeOf(column),
  };
}

/** Removes the quotes that published corpora put around a title: `"Paul Walker"`. */
export function withoutQuotes(title: string): string {
  return title.length > 1 && title.startsWith('"') && title.endsWith('"') ? title.slice(1, -1) : title;
}

function idAsJson(id: unknown, name: string, documentJson: string): string | undefined {
  if (id === undefined || id === null) return undefined;
  if (typeof id !== 'number' || Number.isSafeInteger(id) || (Number.isFinite(id) && !Number.isInteger(id))) {
    return JSON.stringify(id);
  }
  const exact = parseNumbers(documentJson, (source) => source) as Record<string, unknown>;
  return exact[name] as string;
}

function placeOf(column: (name: string) => unknown): DocumentPlace | undefined {
  const count = (name: string): number | undefined => {
    const value = column(name);
    return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
  };
  const passage = count('passage');
  if (passage === undefined || column('doc_id') === undefined) return undefined;
  return { passage, overlap: count('overlap') ?? 0, filled: count('filled') ?? 0 };
}

function plainId(idJson: string): string {
  return idJson.startsWith('"') ? (JSON.parse(idJson) as string) : idJson;
}
