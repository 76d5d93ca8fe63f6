import type { DocumentFields } from '../../index/passages/document-fields.ts';
import { titleForms } from '../../index/passages/title-forms.ts';
import type { FindCall } from '../../search/calls/lookup-calls.ts';

/** A look-up of passages by one of several keys; the first key that any passage has counts. */
export interface Lookup {
  readonly by: FindCall['by'];
  readonly keys: readonly string[];
}

/**
 * The look-ups of the passages that form a document with this passage, best first: those with its `doc_id`; else with its URL; else
 * with its title; else the passage alone.
 */
export function lookupsOfDocument({ document, url, title }: DocumentFields, row: number): readonly Lookup[] {
  return [
    ...(document === undefined ? [] : [{ by: 'document', keys: [document] } as const]),
    ...(url === undefined ? [] : [{ by: 'url', keys: [url] } as const]),
    ...(title === undefined || title === '' ? [] : [{ by: 'title', keys: titleForms(title) } as const]),
    { by: 'row', keys: [`${row}`] },
  ];
}

/** Equal for the passages of one document. */
export function documentKey(fields: DocumentFields, row: number): string {
  const [{ by, keys }] = lookupsOfDocument(fields, row) as [Lookup];
  return `${by} ${keys[0]}`;
}

/** The URL itself and, by ASearcher's rule for wikis, with `index.php/X` as `index.php?title=X`. */
export function urlKeys(url: string): string[] {
  const byRule = url.replace('index.php/', 'index.php?title=');
  return byRule === url ? [url] : [url, byRule];
}

/** The title in a wiki's URL, or the text itself if it is not a URL; without and with the quotes of the published corpora. */
export function titleKeys(url: string): readonly string[] {
  const [, inUrl] = /^https?:\/\/[^?#]*?(?:\/wiki\/|\/index\.php(?:\/|\?(?:[^#]*&)?title=))([^?#&]+)/.exec(url) ?? [];
  if (inUrl === undefined && /^https?:\/\//.test(url)) return [];
  const title = inUrl === undefined ? url : decoded(inUrl).replaceAll('_', ' ');
  return titleForms(title);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
