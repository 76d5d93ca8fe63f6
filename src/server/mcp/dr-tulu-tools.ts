import { Type } from 'typebox';
import { TrawlError } from '../../base/errors.ts';
import { documentFields } from '../../index/passages/document-fields.ts';
import type { Retriever } from '../../search/retriever.ts';
import type { Plan } from '../dialects/dialect.ts';
import { massiveServe } from '../dialects/massive-serve.ts';
import { openDocument } from '../dialects/parts/document-plan.ts';
import { hitsOf, searchPlan, separated } from '../dialects/parts/search-plan.ts';
import { rerank } from '../dialects/rerank/rerank-documents.ts';
import { serper } from '../dialects/serper.ts';
import { passageName } from '../documents/passage-name.ts';
import type { WholeDocument } from '../documents/whole-document.ts';
import { defineTool, type Tool, type ToolCallOptions, type ToolReply } from './tool.ts';

const Query = Type.String({ description: 'What to search for.' });
const count = (what: string) =>
  Type.Integer({ minimum: 1, default: 10, description: `Number of ${what}. Default: 10.` });
const Ignored = Type.Unknown({ description: 'Ignored: the collection is that of the server.' });

/**
 * The tools of DR Tulu's server by their names, arguments and replies, over the passages of the index. Its client reads the only text
 * block as one JSON object. Arguments that choose another service are ignored.
 */
export const DR_TULU_TOOLS: readonly Tool[] = [
  defineTool({
    name: 'massive_serve_search',
    title: 'Search passages',
    description: 'Searches a collection of passages. Returns data: passage and score of each, best first.',
    input: Type.Object({
      query: Query,
      n_docs: count('passages'),
      domains: Type.Optional(Ignored),
      base_url: Type.Optional(Ignored),
      nprobe: Type.Optional(Ignored),
    }),
    async run(retriever, { query, n_docs }, options) {
      const reply = await answer(massiveServe.parse({ query, n_docs }, options.limits), retriever, options);
      const { passages, scores, IDs } = reply.results as {
        passages: string[][];
        scores: number[][];
        IDs: number[][][];
      };
      const data = passages[0]!.map((passage, i) => ({ passage, score: scores[0]![i], doc_id: IDs[0]![i] }));
      return block({ ...reply, data });
    },
  }),
  defineTool({
    name: 'serper_google_webpage_search',
    title: 'Search pages',
    description:
      'Searches the collection like the web. Returns organic: title, link and snippet of each page, best first.',
    input: Type.Object({
      query: Query,
      num_results: count('pages'),
      gl: Type.Optional(Ignored),
      hl: Type.Optional(Ignored),
    }),
    async run(retriever, { query, num_results }, options) {
      return block(await answer(serper.parse({ q: query, num: num_results }, options.limits), retriever, options));
    },
  }),
  defineTool({
    name: 'semantic_scholar_snippet_search',
    title: 'Search snippets of papers',
    description:
      'Searches the collection for snippets. Returns data: snippet.text and paper.title of each, best first.',
    input: Type.Object({
      query: Query,
      limit: count('snippets'),
      year: Type.Optional(Type.Unknown()),
      paper_ids: Type.Optional(Type.Unknown()),
      venue: Type.Optional(Type.Unknown()),
    }),
    async run(retriever, { query, limit, ...filters }, options) {
      refuseFilters(filters);
      const search = { queries: [query], k: limit, kField: 'limit', limits: options.limits };
      const plan = searchPlan(search, function* ({ outcomes }, { index }) {
        yield '{"data":[';
        yield* separated(hitsOf(outcomes[0]!, 0), ({ row, document, score }) => {
          const fields = documentFields(document);
          const { id, title } = passageName(index, row, fields);
          const text = fields.text === '' ? fields.contents : fields.text;
          return JSON.stringify({ snippet: { text, snippetKind: 'body' }, paper: { title, corpusId: id }, score });
        });
        yield ']}';
      });
      return block(await answer(plan, retriever, options));
    },
  }),
  defineTool({
    name: 'vllm_hosted_reranker',
    title: 'Rerank documents',
    description:
      'Orders documents by their relevance to a query. Returns results: index, relevance_score and document.',
    input: Type.Object({
      query: Type.String(),
      documents: Type.Array(Type.String(), { description: 'The texts to order.' }),
      top_n: Type.Integer({ default: -1, description: 'Number of results; -1: all.' }),
      model_name: Type.Optional(Ignored),
      api_url: Type.Optional(Ignored),
    }),
    async run(retriever, { query, documents, top_n }, options) {
      const plan = rerank.parse({ query, documents, top_n: Math.max(0, top_n) }, options.limits);
      const { model, results } = await answer(plan, retriever, options);
      return block({ method: 'vllm_hosted', model_name: model, results });
    },
  }),
  pageTool('serper_fetch_webpage_content', 'webpage_url', ({ title, text }) => ({
    text,
    markdown: text,
    metadata: { title },
  })),
  pageTool('jina_fetch_webpage_content', 'webpage_url', ({ title, text }) => ({ title, content: text })),
  pageTool('crawl4ai_fetch_webpage_content', 'url', ({ text }) => ({ markdown: text })),
];

/** A tool that reads a page of the collection. An unknown URL is a reply with `error`, which the client gives to its model. */
function pageTool(name: string, argument: 'url' | 'webpage_url', fields: (page: WholeDocument) => object): Tool {
  return defineTool({
    name,
    title: 'Read a page',
    description: 'Returns the whole text of a page of the collection by its link from a search.',
    input: Type.Object({ [argument]: Type.String({ description: 'A link from a search.' }) }),
    async run(retriever, args, { signal, limits, onOpen }) {
      const url = args[argument] as string;
      const { document: page, opening } = await openDocument(retriever, { url }, limits, signal);
      onOpen(opening);
      if (page !== undefined) return block({ url, success: true, ...fields(page) });
      const shown = JSON.stringify(url.slice(0, 200));
      return block({
        url,
        success: false,
        error: `No page of the collection has the URL ${shown}. Use a link from a search.`,
      });
    },
  });
}

async function answer(
  plan: Plan,
  retriever: Retriever,
  { signal, onSearch }: ToolCallOptions,
): Promise<Record<string, unknown>> {
  const { search, pieces } = await plan.run(retriever, signal);
  if (search !== undefined) onSearch(search);
  return JSON.parse([...pieces].join('')) as Record<string, unknown>;
}

function block(reply: object): ToolReply {
  return { texts: [JSON.stringify(reply)] };
}

/** @throws TrawlError NOT_SUPPORTED. Ignoring them would return papers that were ruled out. */
function refuseFilters(filters: Readonly<Record<string, unknown>>): void {
  const given = Object.keys(filters).filter((name) => (filters[name] ?? null) !== null);
  if (given.length === 0) return;
  throw new TrawlError('NOT_SUPPORTED', `This server cannot search by ${given.join(' and ')}. Leave it out.`);
}
