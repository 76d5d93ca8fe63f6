import { Type } from 'typebox';
import { withContents } from '../../passages/contents.ts';
import { type DocumentFields, documentFields, withoutQuotes } from '../../passages/document-fields.ts';
import type { FoundPassage, Retriever } from '../../retrieval/retriever.ts';
import { addTimings, NO_TIMINGS, type StageTimings } from '../../retrieval/timings.ts';
import { Contents } from './common-fields.ts';
import { defineDialect } from './dialect.ts';
import { separated } from './search-plan.ts';

/**
 * ASearcher and RLinf: whole pages by their URL. A page here is what the corpus has of it: the passages of that URL, or
 * of that title, in the order of the corpus. The title is what is asked for, or what a wiki's URL says.
 */
export const asearcherAccess = defineDialect({
  name: 'asearcher-access',
  path: '/access',
  summary: 'Pages of the corpus by URL or title (ASearcher, RLinf)',
  request: Type.Object({ urls: Type.Array(Type.String(), { description: 'URLs, or titles.' }) }),
  reply: Type.Object({
    result: Type.Array(
      Type.Union([
        Type.Object(
          { url: Type.Optional(Type.String()), contents: Contents },
          { additionalProperties: true, description: 'The row where a page is one passage.' },
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
        return { timings, truncated: 0, pieces: reply(urls, pages) };
      },
    };
  },
});

type Passages = readonly FoundPassage[];

/** For each URL the passages found by the first of its keys that finds some. */
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
    const wanted = urls.flatMap((url, i) => (pages[i]!.length > 0 ? [] : keysOf(url).map((key) => ({ i, key }))));
    if (wanted.length === 0) continue;
    const result = await retriever.find({ by, keys: wanted.map(({ key }) => key), limit, signal });
    for (const [at, { i }] of wanted.entries()) if (pages[i]!.length === 0) pages[i] = result.found[at]!;
    timings = addTimings(timings, result.timings);
  }
  return { pages, timings };
}

/** As given, and by ASearcher's rule for wikis: `index.php/X` is `index.php?title=X`. */
export function urlKeys(url: string): string[] {
  const byRule = url.replace('index.php/', 'index.php?title=');
  return byRule === url ? [url] : [url, byRule];
}

/** The title that a wiki's URL names, or the text itself where it is no URL; plain and in the quotes corpora put. */
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

/** The passages' texts under one title; where they do not share it, each with its own. */
function joined(fields: readonly DocumentFields[]): string {
  const { title, contents } = fields[0]!;
  if (title === undefined || fields.some((each) => each.title !== title)) {
    return fields.map((each) => each.contents).join('\n');
  }
  const firstLine = contents.slice(0, Math.max(0, contents.indexOf('\n')));
  const head = withoutQuotes(firstLine) === title ? firstLine : `"${title}"`;
  return [head, ...fields.map(({ text }) => text)].join('\n');
}
