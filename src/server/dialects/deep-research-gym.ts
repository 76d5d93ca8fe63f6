import { createHash } from 'node:crypto';
import { Type } from 'typebox';
import { documentFields } from '../../index/passages/document-fields.ts';
import { defineDialect } from './dialect.ts';
import { count, Query } from './parts/common-fields.ts';
import { documentPlan } from './parts/document-plan.ts';
import { idText, list, member, text, textPassage } from './parts/reply-fields.ts';
import { pieces, separated } from './parts/search-plan.ts';

/**
 * DeepResearchGym's search over ClueWeb22, as its agents send it: a GET request, answered with pages as JSON in base64. A page is the
 * text of a document of the index.
 */
export const deepResearchGym = defineDialect({
  name: 'deep-research-gym',
  method: 'GET',
  path: '/search',
  summary: 'Whole documents for the query in the URL, as JSON in base64 (DeepResearchGym)',
  projects: [
    { name: 'verl-agent-deepresearch', setting: 'the URL of DeepResearchGym in its code: `http://HOST:8000/search`' },
    { name: 'DeepResearchGym' },
  ],
  request: Type.Object({ query: Query, k: count(10, 'Documents') }),
  reply: Type.Object({
    results: Type.Array(
      Type.String({
        description:
          'Base64 of a JSON object with URL, URL-hash, ClueWeb22-ID (the id of the document) and Clean-Text.',
      }),
      { description: 'Distinct documents, by their best passage, best first.' },
    ),
  }),
  example: { query: 'who designed the Brooklyn Bridge', k: 3 },
  client: {
    batch: false,
    hit: ['id', 'title', 'text'],
    request: ([query], k) => ({ query, k }),
    lists: (reply) => [
      list(reply, 'results').map((result) => {
        const page: unknown = JSON.parse(Buffer.from(text(result), 'base64').toString('utf8'));
        return { ...textPassage(text(member(page, 'Clean-Text'))), id: idText(member(page, 'ClueWeb22-ID')) };
      }),
    ],
  },
  plan({ query, k }, limits) {
    return documentPlan({ queries: [query], k, kField: 'k', limits }, ({ found }) => {
      const hits = separated(found, ({ document: { id, url, title, text }, hit }) => {
        const hasTitle = documentFields(hit.document).title !== undefined;
        const page = {
          URL: url,
          'URL-hash': createHash('sha256').update(url).digest('hex').slice(0, 32).toUpperCase(),
          'ClueWeb22-ID': id,
          'Clean-Text': hasTitle ? `${title}\n${text}` : text,
        };
        return JSON.stringify(Buffer.from(JSON.stringify(page)).toString('base64'));
      });
      return pieces`{"results":[${hits}]}`;
    });
  },
});
