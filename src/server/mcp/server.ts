import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import { CallToolRequestSchema, type CallToolResult, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv';
import { untilAborted } from '../../base/abort.ts';
import { asTrawlError, type TrawlError } from '../../base/errors.ts';
import { packageVersion } from '../../base/package-root.ts';
import type { Perturbed } from '../../search/calls/query-outcome.ts';
import type { Retriever } from '../../search/retriever.ts';
import { clientMessage } from '../errors/error-status.ts';
import { type RecordedOpening, type RecordedSearch, shortLists } from '../recording/recorded-search.ts';
import type { RequestLimits } from '../server-config.ts';
import { BROWSECOMP_PLUS_TOOLS } from './browsecomp-plus-tools.ts';
import { DR_TULU_TOOLS } from './dr-tulu-tools.ts';
import { DEFAULT_SNIPPET_TOKENS, type McpToolConfig, type McpToolSet } from './mcp-config.ts';
import type { Tool } from './tool.ts';
import { TRAWL_TOOLS } from './trawl-tools.ts';

/**
 * The tools of a server, by the name of `--mcp-tools`. `instructions` say how to use them, where the project's own prompts do not.
 *
 * @internal Exported for tests.
 */
export const TOOL_SETS: Readonly<Record<McpToolSet, { tools: readonly Tool[]; instructions?: string }>> = {
  trawl: {
    tools: TRAWL_TOOLS,
    instructions:
      'A collection of passages, searched by meaning. Use short queries, one for each fact you need. Use fetch to read a whole ' +
      'passage. Cite passages by title and url.',
  },
  'browsecomp-plus': { tools: BROWSECOMP_PLUS_TOOLS },
  'dr-tulu': { tools: DR_TULU_TOOLS },
};

export interface McpOptions extends McpToolConfig {
  /** Called for each tool call, so that an assistant can connect while the index is being opened. */
  retriever(): Retriever | Promise<Retriever>;
  onSearch?(search: RecordedSearch): void;
  /** Called with each passage or page that a tool opens. */
  onOpen?(opening: RecordedOpening): void;
  /** Called with the error of a failed tool, for the log; the assistant does not get the details of a bug. */
  onFailure(tool: string, error: TrawlError): void;
  /** Defaults and limits of searches. */
  readonly limits: RequestLimits;
}

/** The member of a result's `_meta` that says how its searches were perturbed. */
const PERTURBED_META = 'trawl/perturbed';
/** The member that says that hits are not proved to be the best. */
const EXACT_META = 'trawl/exact';
/** The member that says why lists have fewer hits than were asked for (`shortLists`). */
const SHORT_META = 'trawl/short';

/** Shared by all servers, because it has no state and creating one takes longer than a request. */
const validator = new AjvJsonSchemaValidator();

/**
 * An MCP server with a set of tools for one index. As the protocol requires, a failing tool returns `isError` with a
 * message for the assistant, which begins with the error's code.
 */
function mcpServer(options: McpOptions): Server {
  const { tools, instructions } = TOOL_SETS[options.tools ?? 'trawl'];
  const server = new Server(
    { name: 'trawl', title: 'Trawl', version: packageVersion },
    { capabilities: { tools: {} }, instructions, jsonSchemaValidator: validator },
  );
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: tools.map(({ name, title, description, input, output }) => ({
      name,
      title,
      description,
      inputSchema: objectSchema(input),
      outputSchema: output && objectSchema(output),
      annotations: { readOnlyHint: true, openWorldHint: false },
    })),
  }));
  server.setRequestHandler(CallToolRequestSchema, ({ params }, { signal }) =>
    callTool(params.name, params.arguments ?? {}, signal, options),
  );
  return server;
}

async function callTool(
  name: string,
  args: unknown,
  signal: AbortSignal,
  options: McpOptions,
): Promise<CallToolResult> {
  const { limits, snippetTokens = DEFAULT_SNIPPET_TOKENS, onOpen = () => undefined } = options;
  const { tools } = TOOL_SETS[options.tools ?? 'trawl'];
  const tool = tools.find((each) => each.name === name);
  if (tool === undefined) {
    const known = tools.map((each) => each.name).join(' or ');
    return failed(`Tool ${JSON.stringify(name.slice(0, 100))} not found. Expected ${known}.`);
  }
  const perturbed: Perturbed[] = [];
  let isExact = true;
  const short: string[] = [];
  const onSearch = (search: RecordedSearch): void => {
    for (const outcome of search.outcomes) {
      if (!outcome.ok) continue;
      if (outcome.perturbed) perturbed.push(outcome.perturbed);
      isExact &&= outcome.certificate.exact;
    }
    short.push(shortLists(search));
    options.onSearch?.(search);
  };
  try {
    const retriever = await options.retriever();
    const reply = await tool.call(retriever, args, { signal, limits, snippetTokens, onSearch, onOpen });
    // An event stream has no headers for each reply.
    const meta = {
      [PERTURBED_META]: perturbed.length === 0 ? undefined : perturbed,
      [EXACT_META]: isExact ? undefined : false,
      [SHORT_META]: short.filter((reasons) => reasons !== '').join(', ') || undefined,
    };
    return {
      content: reply.texts.map((text) => ({ type: 'text', text })),
      structuredContent: reply.structured,
      _meta: Object.values(meta).some((value) => value !== undefined) ? meta : undefined,
    };
  } catch (thrown) {
    const error = asTrawlError(thrown);
    options.onFailure(name, error);
    return failed(`${error.code}: ${clientMessage(error)}`);
  }
}

function failed(text: string): CallToolResult {
  return { isError: true, content: [{ type: 'text', text }] };
}

/** Plain JSON Schema, without the library's own properties. */
function objectSchema(schema: object): { type: 'object' } & Record<string, unknown> {
  return JSON.parse(JSON.stringify(schema)) as { type: 'object' };
}

/**
 * Answers one POST of the streamable HTTP transport. There are no sessions, so that any replica can answer any request, even after a
 * restart. Aborting `signal` rejects with the signal's reason and cancels the running tool.
 */
export async function answerMcp(request: Request, body: unknown, signal: AbortSignal, options: McpOptions) {
  const server = mcpServer(options);
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
  await server.connect(transport);
  try {
    // Closing the server cancels its tools but does not end the request.
    const answer = transport.handleRequest(request, { parsedBody: withoutCancellations(body) });
    return await untilAborted(answer, signal, () => signal.reason);
  } finally {
    await server.close();
  }
}

/**
 * Removes cancellations from a batch. Without sessions they can only cancel calls of the same batch, and the transport would wait
 * forever for the results of cancelled calls.
 */
function withoutCancellations(body: unknown): unknown {
  if (!Array.isArray(body)) return body;
  return body.filter((message: { method?: unknown } | null) => message?.method !== 'notifications/cancelled');
}

/** Serves standard input and output until the input ends or `signal` is aborted. */
export async function serveStdio(options: McpOptions, signal: AbortSignal): Promise<void> {
  const server = mcpServer(options);
  const closed = new Promise<void>((resolve) => {
    server.onclose = resolve;
  });
  const end = (): void => void server.close();
  // The transport does not notice that an assistant has exited and closed the pipe.
  process.stdin.once('end', end).once('close', end);
  signal.addEventListener('abort', end, { once: true });
  try {
    await server.connect(new StdioServerTransport());
    if (signal.aborted) end();
    await closed;
  } finally {
    process.stdin.off('end', end).off('close', end);
    signal.removeEventListener('abort', end);
  }
}
