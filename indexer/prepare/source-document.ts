import { parseJson } from '../../corpus/parse-json.ts';
import { columnOf, type PassageRow } from '../../corpus/passage.ts';
import { columnsOfRow } from '../../corpus/row-columns.ts';
import { isObject } from '../../src/base/objects.ts';

type DocumentId = string | number | bigint | null;

export interface SourceDocument {
  /** From `wikipedia_id` (KILT), `id` or another usual name, in this order; null if absent. */
  readonly id: DocumentId;
  /** From `wikipedia_title` (KILT), `title`, or the first line of `contents`; null if absent. */
  readonly title: string | null;
  readonly url: string | null;
  /** KILT: the paragraphs, with line ends and markers. Otherwise a single string with the whole text. */
  readonly pieces: readonly string[];
  /** Whether the pieces may begin with KILT's markers. */
  readonly isKilt: boolean;
}

type ParsedDocument =
  | { readonly ok: true; readonly document: SourceDocument }
  | { readonly ok: false; readonly reason: string };

/**
 * Parses a line of a document file: a page of KILT's knowledge source, an article from `WikiExtractor --json`, or an object
 * with `text` (and `title`, `id`) or with `contents` (title, line end, text), as FlashRAG's documents.
 */
export function parseDocument(line: string): ParsedDocument {
  const parsed = parseJson(line);
  if (!parsed.ok) {
    return bad(line.startsWith('<doc ') ? `${parsed.reason}; run WikiExtractor with --json` : parsed.reason);
  }
  const { value } = parsed;
  if (!isObject(value)) return bad('expected a JSON object');
  const row = value as PassageRow;
  const columns = columnsOfRow(row, {});
  // The advice in the reason is for a command with options for columns.
  if ('reason' in columns) return bad(`${columns.reason.split(';')[0]}; remove one of them`);
  const id = firstColumn(row, ['wikipedia_id', columns.id]) ?? null;
  if (id !== null && typeof id !== 'string' && typeof id !== 'bigint' && !Number.isSafeInteger(id)) {
    return bad('the id is neither a string nor an integer');
  }
  const title = firstColumn(row, ['wikipedia_title', columns.title]) ?? null;
  if (title !== null && typeof title !== 'string') return bad('the title is not a string');
  const url = columnOf(row, 'url');
  const contents = firstColumn(row, [columns.text === 'contents' ? 'contents' : undefined]);
  const text = firstColumn(row, ['text', contents === undefined ? columns.text : undefined]);
  const found = titleAndPieces(text, contents, title);
  if (typeof found === 'string') return bad(found);
  // A lone surrogate has no UTF-8 encoding. The Python programs that the rules reproduce fail on it, too.
  if (
    line.includes('\\u') &&
    [found.title ?? '', typeof url === 'string' ? url : '', ...found.pieces].some((part) => /\p{Surrogate}/u.test(part))
  ) {
    return bad('the text contains half of a surrogate pair, which cannot be encoded as UTF-8');
  }
  const isKilt = Array.isArray(text);
  return { ok: true, document: { id: id as DocumentId, url: typeof url === 'string' ? url : null, ...found, isKilt } };
}

function titleAndPieces(
  text: unknown,
  contents: unknown,
  title: string | null,
): { title: string | null; pieces: readonly string[] } | string {
  if (typeof text === 'string') return { title, pieces: [text] };
  if (Array.isArray(text)) {
    return text.every((piece) => typeof piece === 'string')
      ? { title, pieces: text as string[] }
      : '"text" is a list with items that are not strings';
  }
  if (text !== undefined) return '"text" is neither a string nor a list of strings';
  if (typeof contents !== 'string') return 'expected "text" (a string or a list of paragraphs) or "contents"';
  const lineEnd = contents.indexOf('\n');
  return lineEnd === -1
    ? { title, pieces: [contents] }
    : { title: contents.slice(0, lineEnd), pieces: [contents.slice(lineEnd + 1)] };
}

/** Null counts as absent. */
function firstColumn(row: PassageRow, names: readonly (string | undefined)[]): unknown {
  for (const name of names) {
    const value = name === undefined ? undefined : columnOf(row, name);
    if (value !== undefined && value !== null) return value;
  }
  return undefined;
}

function bad(reason: string): ParsedDocument {
  return { ok: false, reason };
}
