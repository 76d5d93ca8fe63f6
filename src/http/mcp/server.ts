import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import { CallToolRequestSchema, type CallToolResult, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv';
import { asTrawlError, type TrawlError } from '../../errors.ts';
import { packageVersion } from '../../package-root.ts';
import type { Retriever } from '../../retrieval/retriever.ts';
import { ERROR_STATUS } from '../error-status.ts';
import { TOOLS } from './tools.ts';

export interface McpOptions {
  /** Asked at each call, so that a server can be connected while its index is being opened. */
  retriever(): Retriever | Promise<Retriever>;
  /** What a tool failed with, for the log: an assistant is told no details of a defect. */
  onFailure(tool: string, error: TrawlError): void;
  /** Longest text of an argument, in UTF-16 units. */
  readonly maxChars: number;
}

/** Making one compiles nothing, but costs more than a request; it holds no state. */
const validator = new AjvJsonSchemaValidator();

const INSTRUCTIONS =
  'A collection of passages that can be searched by meaning. Search with short queries, one for each thing that is looked ' +
  'for; fetch gives the whole text of a passage; cite passages by title and url.';

/**
 * The MCP server over one index: tools `search` and `fetch`. A tool that fails answers with `isError` and a message that
 * begins with the error's code, which the assistant reads, as the protocol wants it.
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
  { retriever, onFailure, maxChars }: McpOptions,
): Promise<CallToolResult> {
  const tool = TOOLS.find((each) => each.name === name);
  if (tool === undefined) {
    const known = TOOLS.map((each) => each.name).join(' and ');
    return failed(`There is no tool ${JSON.stringify(name)}; there are ${known}.`);
  }
  try {
    const result = await tool.call(await retriever(), args, { signal, maxChars });
    return {
      content: [{ type: 'text', text: JSON.stringify(result) }],
      structuredContent: result as Record<string, unknown>,
    };
  } catch (thrown) {
    const error = asTrawlError(thrown);
    onFailure(name, error);
    const detail = ERROR_STATUS[error.code] === 500 ? 'The server failed; its log has the details.' : error.message;
    return failed(`${error.code}: ${detail}`);
  }
}

function failed(text: string): CallToolResult {
  return { isError: true, content: [{ type: 'text', text }] };
}

/** As plain JSON Schema, without what the schema library keeps beside it. */
function objectSchema(schema: object): { type: 'object' } & Record<string, unknown> {
  return JSON.parse(JSON.stringify(schema)) as { type: 'object' };
}

/**
 * Answers one POST of the streamable HTTP transport. Without sessions: any replica can answer any request, and a server
 * that is started again disturbs nobody. Rejects with the reason of
 * `signal` as soon as that is aborted, and ends the tool that runs.
 */
export async function answerMcp(request: Request, body: unknown, signal: AbortSignal, options: McpOptions) {
  const server = mcpServer(options);
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
  await server.connect(transport);
  let end = (): void => undefined;
  // Closing the server ends its tools, but answers nobody.
  const ended = new Promise<never>((_resolve, reject) => {
    end = () => reject(signal.reason);
  });
  signal.addEventListener('abort', end, { once: true });
  if (signal.aborted) end();
  try {
    return await Promise.race([transport.handleRequest(request, { parsedBody: body }), ended]);
  } finally {
    signal.removeEventListener('abort', end);
    await server.close();
  }
}

/** Serves the process's standard input and output until the input ends or `signal` is aborted. */
export async function serveStdio(options: McpOptions, signal: AbortSignal): Promise<void> {
  const server = mcpServer(options);
  const closed = new Promise<void>((resolve) => {
    server.onclose = resolve;
  });
  const end = (): void => void server.close();
  // The transport does not listen for it: an assistant that ends closes the pipe.
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
