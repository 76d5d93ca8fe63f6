import { Type } from 'typebox';
import { withContents, withUrl } from '../../index/passages/contents.ts';
import { documentFields } from '../../index/passages/document-fields.ts';
import type { Hit } from '../../search/calls/query-outcome.ts';
import { defineDialect } from './dialect.ts';
import { Queries, ResultLists, ReturnScores, Topk } from './parts/common-fields.ts';
import { resultLists } from './parts/result-lists.ts';
import { searchPlan } from './parts/search-plan.ts';
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
    return searchPlan(search, ({ outcomes }) => resultLists(outcomes, return_scores ? scoredPage : page));
  },
});

function page({ document }: Hit): string {
  return withUrl(withContents(document), () => documentFields(document).title ?? '');
}

function scoredPage(hit: Hit): string {
  return `{"document":${page(hit)},"score":${JSON.stringify(hit.score)}}`;
}
