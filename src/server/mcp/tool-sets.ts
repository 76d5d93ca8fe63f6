import { BROWSECOMP_PLUS_TOOLS } from './browsecomp-plus-tools.ts';
import { DR_TULU_TOOLS } from './dr-tulu-tools.ts';
import type { McpToolSet } from './mcp-config.ts';
import type { Tool } from './tool.ts';
import { TRAWL_TOOLS } from './trawl-tools.ts';

interface ToolSet {
  readonly tools: readonly Tool[];
  /** How to use the tools, for the assistant; absent where the project's own prompts say it. */
  readonly instructions?: string;
}

/** The tools of a server, by the name of `--mcp-tools`. */
export const TOOL_SETS: Readonly<Record<McpToolSet, ToolSet>> = {
  trawl: {
    tools: TRAWL_TOOLS,
    instructions:
      'A collection of passages, searched by meaning. Use short queries, one for each fact you need. Use fetch to read a whole ' +
      'passage. Cite passages by title and url.',
  },
  'browsecomp-plus': { tools: BROWSECOMP_PLUS_TOOLS },
  'dr-tulu': { tools: DR_TULU_TOOLS },
};
