/** The sets of tools that a server can offer to assistants (`server.ts`). */
export const MCP_TOOL_SETS = ['trawl', 'browsecomp-plus', 'dr-tulu'] as const;
export type McpToolSet = (typeof MCP_TOOL_SETS)[number];

/** Tokens of BrowseComp-Plus's snippets by default, as in its server. */
export const DEFAULT_SNIPPET_TOKENS = 512;

/** Which tools assistants get. */
export interface McpToolConfig {
  /** Default: `trawl`. */
  readonly tools?: McpToolSet;
  /** Tokens of a snippet of BrowseComp-Plus's `search`; 0: the whole document. Default: 512. */
  readonly snippetTokens?: number;
}
