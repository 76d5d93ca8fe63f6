import { Type } from 'typebox';
import type { WholeDocument } from '../documents/whole-document.ts';
import { defineDialect } from './dialect.ts';
import { Query } from './parts/common-fields.ts';
import { documentPlan } from './parts/document-plan.ts';
import { hasField } from './parts/read-request.ts';
import { idText, list, member, rowPassage } from './parts/reply-fields.ts';
import { pieces, separated } from './parts/search-plan.ts';
import { skyrl } from './skyrl.ts';

/**
 * BrowseComp-Plus's server in Search-R1's manner: one query without a count, one list of documents without scores. Their number is
 * `--topk` of the server.
 */
export const browseCompPlus = defineDialect({
  name: 'browsecomp-plus',
  path: '/retrieve',
  summary: 'A single query, answered with a flat list of documents (BrowseComp-Plus)',
  projects: [
    {
      name: 'BrowseComp-Plus',
      setting:
        'none: it uses port 8001. Serve with `--listen 8001=browsecomp-plus:topk=5`; its [MCP tools](#connect-an-assistant-mcp) with `--mcp --mcp-tools browsecomp-plus`',
    },
  ],
  onlyIfNamed: true,
  // The client has no time limit.
  holdMs: Number.POSITIVE_INFINITY,
  request: Type.Object({ query: Query }),
  reply: Type.Object({
    result: Type.Array(
      Type.Object({
        document: Type.Object({ title: Type.String(), text: Type.String() }),
        docid: Type.String({ description: 'The id of the document, or else of its first passage.' }),
      }),
      { description: 'Distinct documents, by their best passage, best first.' },
    ),
  }),
  example: { query: 'who designed the Brooklyn Bridge' },
  claims: (body) => skyrl.claims(body, false) && !hasField(body, 'topk', 'top_k', 'k', 'return_scores'),
  client: {
    batch: false,
    hit: ['id', 'title', 'text'],
    request: ([query]) => ({ query }),
    lists: (reply) => [
      list(reply, 'result').map((hit) => ({
        ...rowPassage(member(hit, 'document')),
        id: idText(member(hit, 'docid')),
      })),
    ],
  },
  plan({ query }, limits) {
    const search = { queries: [query], k: limits.topk, kField: 'topk', limits };
    return documentPlan(search, ({ found }) => {
      const hits = separated(found, ({ document }) =>
        JSON.stringify({ document: titleAndText(document), docid: document.id }),
      );
      return pieces`{"result":[${hits}]}`;
    });
  },
});

/** Title and text of a document. BrowseComp-Plus's documents begin with front matter, which has the title. */
function titleAndText({ title, text }: WholeDocument): { title: string; text: string } {
  const front = frontMatter(text);
  return front === undefined ? { title, text } : { title: front.title ?? title, text: front.rest };
}

/**
 * The title in the front matter of a text, without quotes around it, and the text after it; undefined for a text that does not begin with
 * a line `---` and have another such line.
 *
 * @internal Exported for tests.
 */
export function frontMatter(text: string): { readonly title: string | undefined; readonly rest: string } | undefined {
  if (!text.startsWith('---\n')) return undefined;
  // From the end of the first line, so that an empty front matter is found too.
  const end = text.indexOf('\n---\n', 3);
  if (end === -1) return undefined;
  const line = text
    .slice(4, end + 1)
    .split('\n')
    .find((each) => each.startsWith('title:'));
  const title = line?.slice('title:'.length).trim();
  return { title: title?.replace(/^(["'])(.*)\1$/s, '$2'), rest: text.slice(end + 5) };
}
