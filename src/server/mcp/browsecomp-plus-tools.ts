import { Type } from 'typebox';
import type { Retriever } from '../../search/retriever.ts';
import { documentPlan, type FoundDocument, openDocument } from '../dialects/parts/document-plan.ts';
import { defineTool, type Tool, type ToolCallOptions } from './tool.ts';

/**
 * The tools of BrowseComp-Plus's server. As there, a reply is one text block of JSON with two spaces of indentation: a list, or the
 * bare object of a single hit, and no block at all if nothing was found. The benchmark takes the docids out of these texts.
 */
export const BROWSECOMP_PLUS_TOOLS: readonly Tool[] = [
  defineTool({
    name: 'search',
    title: 'Search documents',
    description:
      'Searches the collection and returns the best documents, each with docid, score and snippet: the beginning of its text. The ' +
      'number of documents is fixed.',
    input: Type.Object({ query: Type.String({ description: 'What to search for.' }) }, { additionalProperties: false }),
    async run(retriever, { query }, options) {
      const { signal, limits, onSearch } = options;
      let found: readonly FoundDocument[] = [];
      const plan = documentPlan({ queries: [query], k: limits.topk, kField: '--topk', limits }, (result) => {
        found = result.found;
        return [];
      });
      const { search } = await plan.run(retriever, signal);
      if (search !== undefined) onSearch(search);
      const snippets = await snippetsOf(retriever, found, options);
      return blocks(
        found.map(({ document, hit }, i) => ({ docid: document.id, score: hit.score, snippet: snippets[i]! })),
      );
    },
  }),
  defineTool({
    name: 'get_document',
    title: 'Read a document',
    description: 'Returns the whole text of a document by its docid from search.',
    input: Type.Object(
      { docid: Type.String({ description: 'A docid from search.' }) },
      { additionalProperties: false },
    ),
    async run(retriever, { docid }, { signal, limits, onOpen }) {
      const { document, opening } = await openDocument(retriever, { id: docid }, limits, signal);
      onOpen(opening);
      return blocks(document === undefined ? [] : [{ docid: document.id, text: document.text }]);
    },
  }),
];

async function snippetsOf(
  retriever: Retriever,
  found: readonly FoundDocument[],
  { snippetTokens: tokens, signal }: ToolCallOptions,
): Promise<readonly string[]> {
  const texts = found.map(({ document }) => document.text);
  if (tokens === 0 || texts.length === 0) return texts;
  const cut = await retriever.cut({ texts, tokens, signal });
  return cut.texts.map(({ text }) => text);
}

function blocks(objects: readonly object[]): { texts: readonly string[] } {
  if (objects.length === 0) return { texts: [] };
  return { texts: [JSON.stringify(objects.length === 1 ? objects[0] : objects, null, 2)] };
}
