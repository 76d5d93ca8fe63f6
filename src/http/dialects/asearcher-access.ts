import { Type } from 'typebox';
import { withContents } from '../../passages/contents.ts';
import { type DocumentFields, documentFields, withoutQuotes } from '../../passages/document-fields.ts';
import type { FoundPassage, Retriever } from '../../retrieval/retriever.ts';
import { addTimings, NO_TIMINGS, type StageTimings } from '../../retrieval/timings.ts';
import { Contents } from './common-fields.ts';
import { defineDialect } from './dialect.ts';
import { separated } from './search-plan.ts';

/**
 * ASearcher and RLinf: whole pages by URL. A page consists of the passages with that URL, or with the title in a wiki's URL, in the
 * order of the corpus. A text that is not a URL is looked up as a title.
 */
export const asearcherAccess = defineDialect({
  name: 'asearcher-access',
  path: '/access',
  summary: 'Pages of the corpus by URL or title (ASearcher, RLinf)',
  request: Type.Object({ urls: Type.Array(Type.String(), { description: 'URLs or titles.' }) }),
  reply: Type.Object({
    result: Type.Array(
      Type.Union([
        Type.Object(
          { url: Type.Optional(Type.String()), contents: Contents },
          { additionalProperties: true, description: 'The row of the corpus if the page is one passage.' },
        ),
        Type.Null({ description: 'No passage has that URL or title.' }),
      ]),
      { description: 'In the order of urls.' },
    ),
  }),
  example: { urls: ['Brooklyn Bridge'] },
  plan({ urls }, limits) {
    const limit = Math.max(1, Math.min(limits.maxK, Math.floor(limits.maxHits / Math.max(1, urls.length))));
    return {
      queries: urls.length,
      k: limit,
      async run(retriever, signal) {
        const { pages, timings } = await findPages(retriever, urls, limit, signal);
        return { timings, search: null, truncated: 0, pieces: reply(urls, pages) };
      },
    };
  },
});

type Passages = readonly FoundPassage[];

/** The passages of each URL, by the first of its keys that any passage has. */
async function findPages(
  retriever: Retriever,
  urls: readonly string[],
  limit: number,
  signal: AbortSignal,
): Promise<{ pages: Passages[]; timings: StageTimings }> {
  const pages = urls.map((): Passages => []);
  let timings = NO_TIMINGS;
  for (const [by, keysOf] of [
    ['url', urlKeys],
    ['title', titleKeys],
  ] as const) {
    const missing = urls.flatMap((url, i) => (pages[i]!.length > 0 ? [] : keysOf(url).map((key) => ({ i, key }))));
    if (missing.length === 0) continue;
    const result = await retriever.find({ by, keys: missing.map(({ key }) => key), limit, signal });
    for (const [at, { i }] of missing.entries()) if (pages[i]!.length === 0) pages[i] = result.found[at]!;
    timings = addTimings(timings, result.timings);
  }
  return { pages, timings };
}

/** The URL itself and, by ASearcher's rule for wikis, with `index.php/X` as `index.php?title=X`. */
export function urlKeys(url: string): string[] {
  const byRule = url.replace('index.php/', 'index.php?title=');
  return byRule === url ? [url] : [url, byRule];
}

/** The title in a wiki's URL, or the text itself if it is not a URL; without and with the quotes of the published corpora. */
export function titleKeys(url: string): string[] {
  const [, inUrl] = /^https?:\/\/[^?#]*?(?:\/wiki\/|\/index\.php(?:\/|\?(?:[^#]*&)?title=))([^?#&]+)/.exec(url) ?? [];
  if (inUrl === undefined && /^https?:\/\//.test(url)) return [];
  const title = inUrl === undefined ? url : decoded(inUrl).replaceAll('_', ' ');
  return [title, `"${title}"`];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function* reply(urls: readonly string[], pages: readonly Passages[]): Generator<string> {
  yield '{"result":[';
  yield* separated(urls, (url, i) => pageText(url, pages[i]!));
  yield ']}';
}

function pageText(url: string, passages: Passages): string {
  const [first] = passages;
  if (first === undefined) return 'null';
  if (passages.length === 1) return withContents(first.document);
  const fields = passages.map(({ document }) => documentFields(document));
  const page = { url: fields[0]!.url ?? url, title: fields[0]!.title, contents: joined(fields) };
  const ids = fields.map(({ idJson }) => idJson ?? 'null').join(',');
  return `${JSON.stringify(page).slice(0, -1)},"passages":[${ids}]}`;
}

/** The texts of the passages under their common title, or each with its own title if the titles differ. */
function joined(fields: readonly DocumentFields[]): string {
  const { title, contents } = fields[0]!;
  if (title === undefined || fields.some((each) => each.title !== title)) {
    return fields.map((each) => each.contents).join('\n');
  }
  const firstLine = contents.slice(0, Math.max(0, contents.indexOf('\n')));
  const head = withoutQuotes(firstLine) === title ? firstLine : `"${title}"`;
  return [head, ...fields.map(({ text }) => text)].join('\n');
}
