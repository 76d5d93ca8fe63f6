import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import { CallToolRequestSchema, type CallToolResult, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv';
import type { TruncateSide } from '../../embedding/text-encoder.ts';
import { asTrawlError, type TrawlError } from '../../errors.ts';
import { packageVersion } from '../../package-root.ts';
import type { RecordedSearch, Retriever } from '../../retrieval/retriever.ts';
import { ERROR_STATUS } from '../errors/error-status.ts';
import type { RankingConfig } from '../ranking.ts';
import { TOOLS } from './tools.ts';

export interface McpOptions {
  /** Called for each tool call, so that an assistant can connect while the index is being opened. */
  retriever(): Retriever | Promise<Retriever>;
  /** Called once for each search of a tool. */
  onSearch?(search: RecordedSearch): void;
  /** Called with the error of a failed tool, for the log; the assistant does not get the details of a bug. */
  onFailure(tool: string, error: TrawlError): void;
  /** What to shorten if a question and its query together exceed the model's token limit. */
  readonly truncate: TruncateSide;
  /** How passages are ranked, unless the tool call sets the mode. */
  readonly ranking: RankingConfig;
  /** Longest text of an argument, in UTF-16 units. */
  readonly maxChars: number;
}

/** Shared by all servers, because it has no state and creating one takes longer than a request. */
const validator = new AjvJsonSchemaValidator();

const INSTRUCTIONS =
  'A collection of passages, searched by meaning. Use short queries, one for each fact you need. Use fetch to read a whole ' +
  'passage. Cite passages by title and url.';

/**
 * An MCP server with the tools `search` and `fetch` for one index. As the protocol requires, a failing tool returns `isError` with a
 * message for the assistant, which begins with the error's code.
 */
function mcpServer(options: McpOptions): Server {
  const server = new Server(
    { name: 'trawl', title: 'Trawl', version: packageVersion },
    { capabilities: { tools: {} }, instructions: INSTRUCTIONS, jsonSchemaValidator: validator },
  );
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: TOOLS.map(({ name, title, description, input, output }) => ({
      name,
      title,
      description,
      inputSchema: objectSchema(input),
      outputSchema: objectSchema(output),
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
  { retriever, onSearch = () => undefined, onFailure, truncate, ranking, maxChars }: McpOptions,
): Promise<CallToolResult> {
  const tool = TOOLS.find((each) => each.name === name);
  if (tool === undefined) {
    const known = TOOLS.map((each) => each.name).join(' or ');
    return failed(`Tool ${JSON.stringify(name.slice(0, 100))} not found. Expected ${known}.`);
  }
  try {
    const result = await tool.call(await retriever(), args, { signal, truncate, ranking, maxChars, onSearch });
    return {
      content: [{ type: 'text', text: JSON.stringify(result) }],
      structuredContent: result as Record<string, unknown>,
    };
  } catch (thrown) {
    const error = asTrawlError(thrown);
    onFailure(name, error);
    const detail = ERROR_STATUS[error.code] === 500 ? 'The server failed. Its log has the details.' : error.message;
    return failed(`${error.code}: ${detail}`);
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
  let end = (): void => undefined;
  // Closing the server cancels its tools but does not end the request, hence this promise.
  const aborted = new Promise<never>((_resolve, reject) => {
    end = () => reject(signal.reason);
  });
  signal.addEventListener('abort', end, { once: true });
  if (signal.aborted) end();
  try {
    return await Promise.race([transport.handleRequest(request, { parsedBody: withoutCancellations(body) }), aborted]);
  } finally {
    signal.removeEventListener('abort', end);
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
