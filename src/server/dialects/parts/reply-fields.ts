import { isObject, jsonExcerpt } from '../../../base/objects.ts';
import type { ServerList, ServerPassage } from '../dialect.ts';

/** The member of an object in a reply; undefined if it is absent or null. Throws an Error if `value` is not an object. */
export function member(value: unknown, name: string): unknown {
  if (!isObject(value))
    throw new Error(`its reply has ${jsonExcerpt(value)} in place of an object with ${JSON.stringify(name)}`);
  return Object.hasOwn(value, name) ? (value[name] ?? undefined) : undefined;
}

/** A list in a reply, which is the member of an object, or the value itself. Throws an Error for anything else. */
export function list(value: unknown, name?: string): readonly unknown[] {
  const found = name === undefined ? value : member(value, name);
  if (Array.isArray(found)) return found;
  throw new Error(
    `its reply has ${jsonExcerpt(found)} in place of a list${name === undefined ? '' : ` ${JSON.stringify(name)}`}`,
  );
}

/** A text in a reply. Throws an Error for anything else. */
export function text(value: unknown): string {
  if (typeof value === 'string') return value;
  throw new Error(`its reply has ${jsonExcerpt(value)} in place of a text`);
}

export function textOrNone(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** An id as text; undefined if there is none. */
export function idText(value: unknown): string | undefined {
  if (typeof value === 'string' && value !== '') return value;
  return typeof value === 'number' || typeof value === 'bigint' ? String(value) : undefined;
}

export function scoreOf(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined;
}

/** A passage that is only a text. A title stands in the first line, often in quotes. */
export function textPassage(contents: string, score?: unknown): ServerPassage {
  const newline = contents.indexOf('\n');
  const title = newline === -1 ? undefined : contents.slice(0, newline).replace(/^"(.*)"$/, '$1');
  return { id: undefined, title, contents, text: contents.slice(newline + 1), score: scoreOf(score) };
}

/**
 * A passage that is a row of a corpus: `id`, `_id` or `docid`, and `contents`, or `title` and `text`; or a text. As in an index, a
 * column `text` is the text as it is, and only of `contents` the first line is the title.
 */
export function rowPassage(row: unknown, score?: unknown): ServerPassage {
  if (typeof row === 'string') return textPassage(row, score);
  const title = textOrNone(member(row, 'title'));
  const body = textOrNone(member(row, 'text'));
  const contents =
    textOrNone(member(row, 'contents')) ??
    (title === undefined || title === '' ? body : `"${title}"\n${body ?? ''}`) ??
    '';
  const id = [member(row, 'id'), member(row, '_id'), member(row, 'docid')]
    .map(idText)
    .find((each) => each !== undefined);
  const passage = textPassage(contents, score);
  return { ...passage, id, title: title ?? passage.title, text: body ?? passage.text };
}

/** Search-R1's reply: the lists of its member `result`. */
export function resultOf(reply: unknown): readonly ServerList[] {
  return list(reply, 'result').map((hits) => list(hits).map(documentHit));
}

/** A hit of Search-R1: `{"document", "score"}`, or the document alone. */
function documentHit(hit: unknown): ServerPassage {
  if (typeof hit === 'string') return textPassage(hit);
  const document = member(hit, 'document');
  return document === undefined ? rowPassage(hit) : rowPassage(document, member(hit, 'score'));
}

/** A hit with a title and an excerpt, without an id. */
export function excerptPassage(hit: unknown, excerpt: string): ServerPassage {
  const text = textOrNone(member(hit, excerpt)) ?? '';
  return { id: undefined, title: textOrNone(member(hit, 'title')), contents: text, text, score: undefined };
}
