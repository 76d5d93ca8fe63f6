import { bug } from '../../base/errors.ts';
import { isObject } from '../../base/objects.ts';
import { valuesAt } from '../../engine/columns/column-values.ts';
import type { LexicalField } from '../../engine/lexical/lexical-settings.ts';
import { contentsOf, textOf } from './contents.ts';
import { parseNumbers } from './exact-numbers.ts';

/** The fields of a passage that replies use. */
export interface DocumentFields {
  /** The id as JSON text, with all its digits; undefined if it is missing or null. */
  readonly idJson: string | undefined;
  /** The id as text, without quotes. */
  readonly id: string | undefined;
  /** The column `title`, else (unless Elasticsearch's clients wrote `text`) the first line of a `contents` with several lines, without its quotes. */
  readonly title: string | undefined;
  /** The passage without its title: the column `text`, else the contents after their first line. */
  readonly text: string;
  /** See `contentsOf`; empty for a row without text. */
  readonly contents: string;
  readonly url: string | undefined;
  readonly date: string | undefined;
  /** The id of its document as text, from `doc_id`; undefined if it is missing or null. */
  readonly document: string | undefined;
  /** The passage's place in its document, if `trawl prepare` made the passage. */
  readonly place: DocumentPlace | undefined;
}

/** Columns that `trawl prepare` writes. Single spaces separate words. */
interface DocumentPlace {
  /** The number of the passage, from 0. */
  readonly passage: number;
  /** Words at the beginning that repeat the end of the previous passage. */
  readonly overlap: number;
  /** Words at the end that repeat the beginning of the document. */
  readonly filled: number;
}

/** Parses a stored document. Integer ids beyond 2^53 keep their digits. @throws TrawlError INTERNAL if it is not JSON. */
export function documentFields(documentJson: string): DocumentFields {
  let parsed: unknown;
  try {
    parsed = JSON.parse(documentJson);
  } catch (error) {
    throw bug(`a stored document does not parse: ${(error as Error).message}`, error);
  }
  const row = isObject(parsed) ? parsed : {};
  const column = (name: string): unknown => (Object.hasOwn(row, name) ? row[name] : undefined);
  const textColumn = (name: string): string | undefined => {
    const value = column(name);
    return typeof value === 'string' ? value : undefined;
  };
  const contents = contentsOf(row) ?? '';
  const newline = contents.indexOf('\n');
  const idColumn = idColumnOf(row);
  const idJson = idAsJson(column(idColumn), idColumn, documentJson);
  const docId = idAsJson(column('doc_id'), 'doc_id', documentJson);
  const titleLine = newline === -1 ? undefined : withoutQuotes(contents.slice(0, newline));
  return {
    idJson,
    id: idJson === undefined ? undefined : plainId(idJson),
    title: textColumn('title') ?? (isWritten(row) && typeof column('contents') !== 'string' ? undefined : titleLine),
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

/**
 * The column with the id of a row: `id`, else `_id`, as BEIR calls it. A row that was written over Elasticsearch's interface begins with
 * `_index` and `_id`; its `id` is a column like others.
 */
export function idColumnOf(row: Readonly<Record<string, unknown>>): 'id' | '_id' {
  if (isWritten(row)) return '_id';
  return !Object.hasOwn(row, 'id') || (row['id'] ?? null) === null ? '_id' : 'id';
}

/** Whether a row was written over Elasticsearch's interface. */
export function isWritten(row: Readonly<Record<string, unknown>>): boolean {
  return ['_index', '_id'].every((name) => Object.hasOwn(row, name) && typeof row[name] === 'string');
}

/** The id of a passage that has none. Prefixed, because the number alone may be the id of another passage. */
export function rowId(row: number): string {
  return `row:${row}`;
}

/** The fields of a stored document by which hits are judged and compared; a passage without an id gets `row:` and its row. */
export function hitFields(document: string, row: number) {
  const { id = rowId(row), title, text, contents } = documentFields(document);
  return { id, title, text, contents };
}

/** The text of a field of a stored document; empty if the document does not have the field. */
export function fieldText(document: string, field: LexicalField): string {
  if (field !== 'contents' && field !== 'title' && field !== 'text') return memberText(JSON.parse(document), field);
  const { contents, title, text } = documentFields(document);
  return field === 'contents' ? contents : field === 'title' ? (title ?? '') : text;
}

/** The text of the member at a path of a row, such as `meta.abstract`; several strings stand each on a line. */
export function memberText(row: unknown, path: string): string {
  return valuesAt(row, path)
    .filter((value) => typeof value === 'string')
    .join('\n');
}

/** The title as a reader knows it: in NFC, with spaces for underscores and characters for HTML's entities, and without quotes around it. */
export function plainTitle(title: string): string {
  const spelled = title
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&')
    .normalize('NFC')
    .replace(/[\s_]+/gu, ' ')
    .trim();
  return withoutQuotes(spelled).trim();
}

/**
 * The spellings under which corpora have the page with this title, the given one first: `plainTitle`, decomposed (NFD), with underscores, or
 * with `&amp;`; each without and with the quotes of the published corpora.
 */
export function titleForms(title: string): readonly string[] {
  const plain = plainTitle(title);
  const spelled = [title, plain, plain.normalize('NFD'), plain.replaceAll(' ', '_'), plain.replaceAll('&', '&amp;')];
  return [...new Set(spelled.filter((form) => form !== '').flatMap((form) => [form, `"${form}"`]))];
}
