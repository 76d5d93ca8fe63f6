import { parseJson } from '../corpus/parse-json.ts';
import { columnOf, type PassageRow } from '../corpus/passage.ts';

export type DocumentId = string | number | bigint | null;

/** One document as it is split. */
export interface SourceDocument {
  /** KILT's `wikipedia_id`, else `id`, `_id` or `docid`; null where there is none. */
  readonly id: DocumentId;
  /** KILT's `wikipedia_title`, else `title`, else the first line of `contents`; null where there is none. */
  readonly title: string | null;
  /** KILT's list of paragraphs, each with its line end and markers; the whole text in one piece of other documents. */
  readonly pieces: readonly string[];
  /** Pieces may begin with KILT's markers. */
  readonly isKilt: boolean;
}

export type ParsedDocument =
  | { readonly ok: true; readonly document: SourceDocument }
  | { readonly ok: false; readonly reason: string };

/**
 * A line of a documents file: a page of KILT's knowledge source, an article that WikiExtractor wrote with `--json`, or
 * any object with `text` (and `title`, `id`) or `contents` (title, line end, text: FlashRAG's documents).
 */
export function parseDocument(line: string): ParsedDocument {
  const parsed = parseJson(line);
  if (!parsed.ok)
    return bad(line.startsWith('<doc ') ? `${parsed.reason}; run WikiExtractor with --json` : parsed.reason);
  const { value } = parsed;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return bad('expected a JSON object');
  const row = value as PassageRow;
  const id = firstOf(row, ['wikipedia_id', 'id', '_id', 'docid']) ?? null;
  if (id !== null && typeof id !== 'string' && typeof id !== 'bigint' && !Number.isSafeInteger(id)) {
    return bad('the id is neither a string nor an integer');
  }
  const title = firstOf(row, ['wikipedia_title', 'title']) ?? null;
  if (title !== null && typeof title !== 'string') return bad('the title is not a string');
  const text = firstOf(row, ['text']);
  const contents = firstOf(row, ['contents']);
  const found = piecesOf(text, contents, title);
  if (typeof found === 'string') return bad(found);
  // Python writes no lone surrogate either; its programs end at one.
  if (line.includes('\\u') && [found.title ?? '', ...found.pieces].some((part) => /\p{Surrogate}/u.test(part))) {
    return bad('the text holds half of a surrogate pair, which cannot be written as UTF-8');
  }
  const isKilt = Array.isArray(text);
  return { ok: true, document: { id: id as DocumentId, ...found, isKilt } };
}

function piecesOf(
  text: unknown,
  contents: unknown,
  title: string | null,
): { title: string | null; pieces: readonly string[] } | string {
  if (typeof text === 'string') return { title, pieces: [text] };
  if (Array.isArray(text)) {
    return text.every((piece) => typeof piece === 'string')
      ? { title, pieces: text as string[] }
      : '"text" is a list with something else than strings in it';
  }
  if (text !== undefined) return '"text" is neither a string nor a list of strings';
  if (typeof contents !== 'string') {
    return 'expected "text" (a string, or a list of paragraphs), or "contents"';
  }
  const lineEnd = contents.indexOf('\n');
  return lineEnd === -1
    ? { title, pieces: [contents] }
    : { title: contents.slice(0, lineEnd), pieces: [contents.slice(lineEnd + 1)] };
}

/** Null counts as absent. */
function firstOf(row: PassageRow, names: readonly string[]): unknown {
  for (const name of names) {
    const value = columnOf(row, name);
    if (value !== undefined && value !== null) return value;
  }
  return undefined;
}

function bad(reason: string): ParsedDocument {
  return { ok: false, reason };
}
