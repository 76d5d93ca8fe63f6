import { TrawlError } from '../../base/errors.ts';
import { type DocumentFields, titleForms } from '../../index/passages/document-fields.ts';
import type { FindCall, FoundPassage, PassageLookup } from '../../search/retriever.ts';
import { addTimings, NO_TIMINGS } from '../../search/timings.ts';

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
  const lookups: Lookup[] = [];
  if (document !== undefined) lookups.push({ by: 'document', keys: [document] });
  if (url !== undefined) lookups.push({ by: 'url', keys: [url] });
  if (title !== undefined && title !== '') lookups.push({ by: 'title', keys: titleForms(title) });
  return [...lookups, { by: 'row', keys: [`${row}`] }];
}

/** Equal for the passages of one document. */
export function documentKey(fields: DocumentFields, row: number): string {
  const [{ by, keys }] = lookupsOfDocument(fields, row) as [Lookup];
  return `${by} ${keys[0]}`;
}

/**
 * The URL itself; without its fragment, which names a place in the page; by ASearcher's rule for wikis, with `index.php/X` as
 * `index.php?title=X`; and with the characters that an HTTP client has encoded.
 */
export function urlKeys(url: string): string[] {
  const page = url.replace(/#.*$/s, '');
  const keys = [url, page, page.replace('index.php/', 'index.php?title='), decoded(page, decodeURI)];
  return [...new Set(keys)];
}

/** The title in a wiki's URL, or the text itself if it is not a URL; without and with the quotes of the published corpora. */
export function titleKeys(url: string): readonly string[] {
  const [, inUrl] = /^https?:\/\/[^?#]*?(?:\/wiki\/|\/index\.php(?:\/|\?(?:[^#]*&)?title=))([^?#&]+)/.exec(url) ?? [];
  if (inUrl === undefined && /^https?:\/\//.test(url)) return [];
  const title = inUrl === undefined ? url : decoded(inUrl).replaceAll('_', ' ');
  return titleForms(title);
}

function decoded(text: string, decode: (text: string) => string = decodeURIComponent): string {
  try {
    return decode(text);
  } catch {
    return text;
  }
}

/**
 * Tries look-ups in their order. One that the index was built without counts as empty if another finds passages.
 *
 * @param limit passages per look-up.
 * @returns for each list of look-ups the passages of the first that finds any, in row order; empty if none does.
 * @throws TrawlError NOT_SUPPORTED if nothing is found and a look-up by URL or title is missing.
 */
export async function findPassages(
  retriever: PassageLookup,
  wanted: readonly (readonly Lookup[])[],
  limit: number,
  signal: AbortSignal,
) {
  const found = wanted.map((): readonly FoundPassage[] => []);
  let timings = NO_TIMINGS;
  let missing: TrawlError | undefined;
  for (let step = 0; wanted.some(({ length }) => step < length); step++) {
    const open = wanted.flatMap((lookups, i) => {
      const lookup = lookups[step];
      return lookup === undefined || found[i]!.length > 0 ? [] : [{ i, ...lookup }];
    });
    for (const by of new Set(open.map((each) => each.by))) {
      const asked = open.filter((each) => each.by === by).flatMap(({ i, keys }) => keys.map((key) => ({ i, key })));
      if (asked.length === 0) continue;
      const keys = asked.map(({ key }) => key);
      const result = await retriever.find({ by, keys, limit, signal }).catch(unsupported);
      if (result instanceof TrawlError) {
        // Only `trawl prepare` writes ids of documents, so an index without that look-up seldom needs it.
        if (by !== 'document') missing = result;
        continue;
      }
      for (const [at, { i }] of asked.entries()) if (found[i]!.length === 0) found[i] = result.found[at]!;
      timings = addTimings(timings, result.timings);
    }
  }
  if (missing !== undefined && found.some(({ length }) => length === 0)) throw missing;
  return { found, timings };
}

function unsupported(error: unknown): TrawlError {
  if (error instanceof TrawlError && error.code === 'NOT_SUPPORTED') return error;
  throw error;
}
