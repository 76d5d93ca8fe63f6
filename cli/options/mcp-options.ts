import { DEFAULT_SNIPPET_TOKENS, MCP_TOOL_SETS } from '../../src/server/mcp/mcp-config.ts';
import * as option from './option.ts';

/** Options of the servers that offer tools to assistants. */
export const MCP_OPTIONS = {
  'mcp-tools': option.choice(
    { choices: MCP_TOOL_SETS, default: 'trawl' },
    "The tools for assistants. trawl: search and fetch, as OpenAI's connectors want them; browsecomp-plus: BrowseComp-Plus's search and get_document, with --topk documents; dr-tulu: DR Tulu's search, page and rerank tools.",
  ),
  'mcp-snippet-tokens': option.integer(
    { min: 0, default: DEFAULT_SNIPPET_TOKENS },
    "With --mcp-tools browsecomp-plus: tokens of a document's text in a search; 0: the whole text.",
  ),
  'cut-tokenizer': option.text(
    'NAME|DIR|FILE',
    "The tokenizer by which texts are cut to a number of tokens: a model's, or a tokenizer.json. Default: the tokenizer of the index's model.",
  ),
} as const;
