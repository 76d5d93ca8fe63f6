import { Type } from 'typebox';
import { defineDialect } from './dialect.ts';
import { linkedPagePlan } from './parts/document-plan.ts';

/**
 * Jina's reader, with which agents that search by Serper open the links of the hits: `GET /https://example.org/page`.
 * `takePathPrefix` writes such a path as `/reader?url=…`.
 */
export const jinaReader = defineDialect({
  name: 'jina-reader',
  method: 'GET',
  path: '/reader',
  summary: "A whole document by URL, as text: GET /{url} (Jina's reader)",
  projects: [
    {
      name: "WebSailor, WebDancer, DeepResearch, WideSeek-R1 (Jina's reader)",
      setting: "the URL of Jina's reader in their code: `http://HOST:8000/`",
      checkedAgainst: 'rlinf 0.3.0',
    },
  ],
  // The shortest limit of its clients is 10 s.
  holdMs: 9_000,
  request: Type.Object({ url: Type.String({ description: 'A link of a hit, or another URL of the corpus.' }) }),
  replyType: 'text/plain',
  reply: Type.String({ description: 'Title, URL and text.' }),
  example: { url: 'Brooklyn Bridge' },
  plan: ({ url }, limits) =>
    linkedPagePlan(
      url,
      limits,
      ({ title, url: source, text }) => `Title: ${title}\n\nURL Source: ${source}\n\nMarkdown Content:\n${text}\n`,
    ),
});
