import { Type } from 'typebox';
import { withContents, withUrl } from '../../index/passages/contents.ts';
import { type DocumentFields, documentFields, withoutQuotes } from '../../index/passages/document-fields.ts';
import type { Hit } from '../../search/calls/query-outcome.ts';
import type { FoundPassage } from '../../search/retriever.ts';
import { findPassages, type Lookup, titleKeys, urlKeys } from '../documents/document-lookup.ts';
import { joinPassages, orderedPassages } from '../documents/join-passages.ts';
import { openingOf } from '../documents/whole-document.ts';
import type { RecordedSearch } from '../recording/recorded-search.ts';
import { defineDialect } from './dialect.ts';
import { Contents, Queries, ResultLists, ReturnScores, Topk } from './parts/common-fields.ts';
import { pieces, resultLists, searchPlan, separated } from './parts/search-plan.ts';
import { searchR1 } from './search-r1.ts';

/**
 * ASearcher and RLinf: Search-R1's batch, in which every document has a `url`, because their clients require one. In a corpus
 * without URLs, such as wiki-18, `url` is the title, by which `/access` finds the page.
 */
export const asearcher = defineDialect({
  name: 'asearcher',
  path: '/retrieve',
  summary: 'A batch of queries, every document with a url (ASearcher, RLinf)',
  projects: [{ name: 'ASearcher and RLinf, if the corpus has no URLs' }],
  onlyIfNamed: true,
  request: Type.Object({ queries: Queries, topk: Topk, return_scores: ReturnScores }),
  reply: ResultLists,
  example: { queries: ['who designed the Brooklyn Bridge'], topk: 3 },
  claims: (body) => searchR1.claims(body, true),
  client: searchR1.client,
  plan({ queries, topk, return_scores }, limits) {
    const search = { queries, k: topk || limits.topk, kField: 'topk', limits };
    const hitText = ({ document, score }: Hit): string => {
      const page = withUrl(withContents(document), () => documentFields(document).title ?? '');
      return return_scores ? `{"document":${page},"score":${JSON.stringify(score)}}` : page;
    };
    return searchPlan(search, ({ outcomes }) => resultLists(outcomes, hitText));
  },
});

/**
 * ASearcher and RLinf: whole pages by URL. A page consists of the passages with that URL, or with the title in a wiki's URL, in the
 * order of the corpus. A text that is not a URL is looked up as a title.
 */
export const asearcherAccess = defineDialect({
  name: 'asearcher-access',
  path: '/access',
  summary: 'Pages of the corpus by URL or title (ASearcher, RLinf)',
  projects: [{ name: 'ASearcher and RLinf, for whole pages' }],
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
        const lookups = urls.map((url): readonly Lookup[] => [
          { by: 'url', keys: urlKeys(url) },
          { by: 'title', keys: titleKeys(url) },
        ]);
        const { found, timings } = await findPassages(retriever, lookups, limit, signal);
        const openings = urls.map((url, i) => openingOf(url, found[i]!));
        const pages = separated(urls, (url, i) => pageJson(url, found[i]!));
        return { timings, openings, pieces: pieces`{"result":[${pages}]}` };
      },
    };
  },
});

function pageJson(url: string, passages: readonly FoundPassage[]): string {
  if (passages.length === 0) return 'null';
  if (passages.length === 1) return withContents(passages[0]!.document);
  const ordered = orderedPassages(passages.map(({ document }) => ({ fields: documentFields(document) })));
  const fields = ordered.map((each) => each.fields);
  const page = { url: fields[0]!.url ?? url, title: fields[0]!.title, contents: pageContents(fields) };
  const ids = fields.map(({ idJson }) => idJson ?? 'null').join(',');
  return `${JSON.stringify(page).slice(0, -1)},"passages":[${ids}]}`;
}

/** The joined texts under their common title; `joinPassages` writes different titles itself. */
function pageContents(fields: readonly DocumentFields[]): string {
  const { title, contents } = fields[0]!;
  const text = joinPassages(fields);
  if (title === undefined || fields.some((each) => each.title !== title)) return text;
  const firstLine = contents.slice(0, Math.max(0, contents.indexOf('\n')));
  return `${withoutQuotes(firstLine) === title ? firstLine : `"${title}"`}\n${text}`;
}

export const URLS_MISSED =
  'a client repeats a search every ten seconds, as clients of ASearcher and RLinf do if a passage has no url: ' +
  'serve with --dialect asearcher, or index a corpus with a column url';

/** How long ASearcher's and RLinf's clients wait before they repeat a request, with some time for the answer. */
const REPEATED_AFTER_MS = [9_000, 12_000] as const;
/** Repetitions in a row that are not a coincidence. The clients give up after nine. */
const REPETITIONS = 3;
/** Queries that are remembered; the oldest is forgotten. */
const MAX_QUERIES = 10_000;

/**
 * Notices clients of ASearcher and RLinf that got answers in Search-R1's form without a `url`: every ten seconds they repeat the request, and
 * say nothing to the server.
 */
export class UrlsMissed {
  /** By query: when it was last asked, and how often in a row ten seconds after the last time. Undefined once clients were noticed. */
  #queries: Map<string, { readonly at: number; readonly repeated: number }> | undefined = new Map();

  /** Whether this search is the first one that shows such a client. The clients send one query a request. */
  shownBy({ queries, outcomes }: RecordedSearch, now: number): boolean {
    const [query] = queries;
    const [outcome] = outcomes;
    if (this.#queries === undefined || queries.length !== 1 || typeof query !== 'string' || outcome?.ok !== true)
      return false;
    // Quotes within a text are escaped, so this finds the name of a column.
    if (outcome.hits.every(({ document }) => document.includes('"url"'))) return false;
    const last = this.#queries.get(query);
    const waited = last === undefined ? Number.POSITIVE_INFINITY : now - last.at;
    // Other rollouts of the question ask the same at the same time.
    if (waited < REPEATED_AFTER_MS[0]) return false;
    const repeated = last !== undefined && waited <= REPEATED_AFTER_MS[1] ? last.repeated + 1 : 0;
    // Deleted first, so that it becomes the last of the map.
    this.#queries.delete(query);
    this.#queries.set(query, { at: now, repeated });
    if (this.#queries.size > MAX_QUERIES) this.#queries.delete(this.#queries.keys().next().value!);
    if (repeated < REPETITIONS) return false;
    this.#queries = undefined;
    return true;
  }
}
