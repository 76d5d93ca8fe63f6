import { wellFormed } from '../../engine/filter/column.ts';
import type { DocumentFields } from '../../index/passages/document-fields.ts';

/** How replies name a passage to an agent. */
interface PassageName {
  /** The passage's own id, or its URL, title or row. */
  readonly id: string;
  readonly title: string;
  /** The passage's own URL, or `trawl://INDEX/ID`. */
  readonly url: string;
}

export function passageName(index: string, row: number, { id, url, title }: DocumentFields): PassageName {
  const handle = id ?? url ?? title ?? `row ${row}`;
  return {
    id: handle,
    title: title ?? handle,
    url: url ?? `${urlOfIndex(index)}${encodeURIComponent(wellFormed(handle))}`,
  };
}

/** The id in a URL that `passageName` made for this index, also with a fragment behind it; any other text unchanged. */
export function idInUrl(text: string, index: string): string {
  const start = urlOfIndex(index);
  if (!text.startsWith(start)) return text;
  try {
    return decodeURIComponent(text.slice(start.length).replace(/#.*$/s, ''));
  } catch {
    return text;
  }
}

function urlOfIndex(index: string): string {
  return `trawl://${encodeURIComponent(index)}/`;
}
