import { Type } from 'typebox';
import { TrawlError } from '../../base/errors.ts';
import { parseFilterExpression } from '../../engine/filter/filter-expression.ts';
import { documentFields } from '../../index/passages/document-fields.ts';
import type { FoundPassage, Retriever } from '../../search/retriever.ts';
import { SEARCH_MODES } from '../../search/search-mode.ts';
import { inputWith } from '../dialects/parts/common-fields.ts';
import { rankingFor } from '../dialects/parts/search-plan.ts';
import { findPassages, type Lookup, titleKeys, urlKeys } from '../documents/document-lookup.ts';
import { joinPassages, orderedPassages } from '../documents/join-passages.ts';
import { idInUrl, passageName } from '../documents/passage-name.ts';
import { openingOf } from '../documents/whole-document.ts';
import { excerpt, wordsOf } from '../excerpt.ts';
import { defineTool, MAX_PASSAGES, type Tool, type ToolReply } from './tool.ts';

const DEFAULT_HITS = 10;
const MAX_HITS = 100;
/** Length of a hit's excerpt; `fetch` returns the whole passage. */
const EXCERPT_CHARACTERS = 400;

const Result = Type.Object({
  id: Type.String({ description: 'Argument for fetch.' }),
  title: Type.String(),
  url: Type.String({ description: "The passage's own URL, or trawl://INDEX/ID." }),
  text: Type.String({ description: 'An excerpt: the part of the passage with the most words of the query.' }),
  score: Type.Number({ description: 'Similarity; larger is better.' }),
});

const Fetched = Type.Object({
  id: Type.String(),
  title: Type.String(),
  text: Type.String(),
  url: Type.String(),
  metadata: Type.Object(
    {},
    { additionalProperties: Type.String(), description: 'Index, rows and the text columns of the corpus.' },
  ),
});

/**
 * `search` and `fetch` with the names, arguments and results that OpenAI's connectors and deep research require of an MCP server
 * (platform.openai.com/docs/mcp). `question`, `k` and `mode` are additions of Trawl.
 */
export const TRAWL_TOOLS: readonly Tool[] = [
  defineTool({
    name: 'search',
    title: 'Search passages',
    description:
      'Finds passages by meaning, best first, each with its id and an excerpt. Use fetch to read a whole passage. A short ' +
      'query in natural language works better than a list of keywords.',
    input: Type.Object(
      {
        query: Type.String({ description: 'What to search for.' }),
        question: Type.Optional(Type.String({ description: 'The question that this query helps to answer, if any.' })),
        history: Type.Optional(
          Type.Array(Type.String(), { description: 'The earlier queries for this question, oldest first.' }),
        ),
        k: Type.Optional(
          Type.Integer({
            minimum: 1,
            maximum: MAX_HITS,
            default: DEFAULT_HITS,
            description: `Number of passages, at most ${MAX_HITS}.`,
          }),
        ),
        filter: Type.Optional(
          Type.String({
            description:
              "The passages that may be found, by columns of the corpus: source = 'wiki' and date >= 2020-01-01. Operators: =, !=, <, <=, >, >=, in ('a', 'b'), exists, and, or, not. The error for an unknown column lists the columns.",
          }),
        ),
        mode: Type.Optional(
          Type.Enum([...SEARCH_MODES], {
            description:
              'How passages are ranked: dense (by meaning), bm25 (by words; good for names and rare terms) or hybrid (both). An index may lack some.',
          }),
        ),
      },
      { additionalProperties: false },
    ),
    output: Type.Object({ results: Type.Array(Result) }),
    async run(retriever, args, { signal, limits, onSearch }) {
      const { query, question, history, k = DEFAULT_HITS, mode } = args;
      const call = {
        queries: [inputWith(query, question, history)],
        k,
        truncate: limits.truncate,
        ...rankingFor(limits, k, { mode }),
        filter: args.filter === undefined ? undefined : parseFilterExpression(args.filter),
      };
      const { outcomes } = await retriever.retrieve({ ...call, signal });
      onSearch({ ...call, outcomes });
      const outcome = outcomes[0]!;
      if (!outcome.ok) throw outcome.error;
      const words = wordsOf(query);
      const results = outcome.hits.map(({ row, score, document }) => {
        const fields = documentFields(document);
        const { id, title, url } = passageName(retriever.info.index, row, fields);
        const body = fields.text === '' ? fields.contents : fields.text;
        return { id, title, url, text: excerpt(body, words, EXCERPT_CHARACTERS).text, score };
      });
      return structured({ results });
    },
  }),
  defineTool({
    name: 'fetch',
    title: 'Read a passage',
    description:
      'Returns the whole text of a passage by its id from search. A URL or a title of the corpus returns all its passages.',
    input: Type.Object(
      { id: Type.String({ description: 'An id from search, or a URL or a title.' }) },
      { additionalProperties: false },
    ),
    output: Fetched,
    async run(retriever, { id }, { signal, onOpen }) {
      const passages = await findByName(retriever, id, signal);
      onOpen(openingOf(id, passages));
      const [first] = passages;
      if (first === undefined) {
        const shown = JSON.stringify(id.slice(0, 100));
        throw new TrawlError('NOT_FOUND', `No passage has the id, URL or title ${shown}. Use an id from search.`);
      }
      const all = orderedPassages(passages.map(({ document }) => ({ fields: documentFields(document) })));
      const { title, url } = passageName(retriever.info.index, first.row, all[0]!.fields);
      const metadata = {
        ...textColumns(first.document),
        index: retriever.info.index,
        generation: retriever.info.generation,
        view: retriever.info.within?.join(),
        rows: passages.map(({ row }) => row).join(','),
      };
      return structured({ id, title, text: joinPassages(all.map(({ fields }) => fields)), url, metadata });
    },
  }),
];

/** The same object as text and as structured content, as the protocol wants it. */
function structured(result: Record<string, unknown>): ToolReply {
  return { texts: [JSON.stringify(result)], structured: result };
}

async function findByName(retriever: Retriever, id: string, signal: AbortSignal): Promise<readonly FoundPassage[]> {
  // Assistants fetch by the URL of a result too.
  const handle = idInUrl(id, retriever.info.index);
  const lookups: readonly Lookup[] = [
    { by: 'id', keys: [handle] },
    { by: 'url', keys: urlKeys(handle) },
    { by: 'title', keys: titleKeys(handle) },
    { by: 'row', keys: /^row (\d+)$/.exec(handle)?.slice(1) ?? [] },
  ];
  const { found } = await findPassages(retriever, [lookups], MAX_PASSAGES, signal);
  return found[0]!;
}

/** Text columns of the corpus that are not fields of the result. */
function textColumns(documentJson: string): Record<string, string> {
  const row: unknown = JSON.parse(documentJson);
  if (typeof row !== 'object' || row === null) return {};
  const fields = new Set(['id', '_id', '_index', 'title', 'text', 'contents', 'url']);
  const columns = Object.entries(row).filter(([name, value]) => typeof value === 'string' && !fields.has(name));
  return Object.fromEntries(columns) as Record<string, string>;
}
