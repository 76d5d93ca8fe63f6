import { parse } from 'lossless-json';
import { contentsOf } from './contents.ts';

/** What clients are told of a passage, apart from the row as it stands. */
export interface DocumentFields {
  /** The id as JSON text, digit for digit; undefined where the row has none (or null). */
  readonly idJson: string | undefined;
  /** The id as plain text. */
  readonly id: string | undefined;
  /** The column of that name, else the first line of `contents` where it has more than one, without its quotes. */
  readonly title: string | undefined;
  /** The passage without its title. */
  readonly text: string;
  /** Title and text together (`contentsOf`); empty where the row has neither. */
  readonly contents: string;
  readonly url: string | undefined;
}

/** Reads a stored document. Integers beyond 2^53 keep their digits. */
export function documentFields(documentJson: string): DocumentFields {
  const parsed: unknown = JSON.parse(documentJson);
  const row = typeof parsed === 'object' && parsed !== null ? (parsed as Record<string, unknown>) : {};
  const column = (name: string): unknown => (Object.hasOwn(row, name) ? row[name] : undefined);
  const contents = contentsOf(row) ?? '';
  const newline = contents.indexOf('\n');
  const ownTitle = column('title');
  const ownText = column('text');
  const url = column('url');
  // `_id` is BEIR's name for it.
  const idColumn = (column('id') ?? null) === null ? '_id' : 'id';
  const idJson = idAsJson(column(idColumn), idColumn, documentJson);
  const titleLine = newline === -1 ? undefined : withoutQuotes(contents.slice(0, newline));
  return {
    idJson,
    id: idJson === undefined ? undefined : plainId(idJson),
    title: typeof ownTitle === 'string' ? ownTitle : titleLine,
    text: typeof ownText === 'string' ? ownText : contents.slice(newline + 1),
    contents,
    url: typeof url === 'string' ? url : undefined,
  };
}

/** A title as the published corpora write it, `"Paul Walker"`, without that pair of quotes. */
export function withoutQuotes(title: string): string {
  return title.length > 1 && title.startsWith('"') && title.endsWith('"') ? title.slice(1, -1) : title;
}

function idAsJson(id: unknown, name: string, documentJson: string): string | undefined {
  if (id === undefined || id === null) return undefined;
  if (typeof id !== 'number' || Number.isSafeInteger(id) || (Number.isFinite(id) && !Number.isInteger(id))) {
    return JSON.stringify(id);
  }
  const exact = parse(documentJson, null, { onDuplicateKey: ({ newValue }) => newValue }) as Record<string, unknown>;
  return String(exact[name]);
}

function plainId(idJson: string): string {
  return idJson.startsWith('"') ? (JSON.parse(idJson) as string) : idJson;
}
