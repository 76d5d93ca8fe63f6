import { narrowedRetriever } from '../../src/search/layers/passing-retriever.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { DEFAULT_SERVER_CONFIG } from '../../src/server/server-config.ts';
import { isPublishedAddress } from '../../src/stores/published/published-address.ts';
import { checkEndpointOptions } from '../model/endpoint-options.ts';
import { FURTHER_INDEX_OPTION, openReranked } from '../open/open-reranked.ts';
import { checkFilter, filterOption } from '../options/filter-option.ts';
import { HYBRID_OPTIONS, hybridOptions } from '../options/hybrid-options.ts';
import { MCP_OPTIONS } from '../options/mcp-options.ts';
import * as option from '../options/option.ts';
import { MODE_OPTION } from '../options/ranking-options.ts';
import { checkRerankOptions, RERANK_OPTIONS, rerankCall } from '../options/rerank-options.ts';
import { RETRIEVER_OPTIONS, retrieverOptions } from '../options/retriever-options.ts';
import { VIEW_OPTIONS, viewOption } from '../options/view-options.ts';
import { defineCommand, EXIT, INDEX_OR_ADDRESS } from '../program/command.ts';
import { SERVE_OPTIONS } from '../serve/serve-options.ts';
import { parseServedIndexes } from '../serve/served-indexes.ts';

export const mcpCommand = defineCommand({
  name: 'mcp',
  takesStoreAddress: true,
  summary: 'serve an index to an assistant over standard input and output (MCP)',
  description:
    'Serves the Model Context Protocol on standard input and output, for assistants that start their own servers. ' +
    'The tools are search (query, optional question, k, mode and filter) and fetch (id), or the tools of --mcp-tools. docs/agents.md has the configuration for ' +
    'assistants. Warnings go to stderr. The server ends when its input ends.\n\n' +
    'For assistants that connect over HTTP, use trawl serve --mcp.',
  positionals: INDEX_OR_ADDRESS,
  options: {
    index: FURTHER_INDEX_OPTION,
    ...MCP_OPTIONS,
    topk: option.integer({ min: 1, default: 5 }, 'With --mcp-tools browsecomp-plus: documents per search.'),
    truncate: SERVE_OPTIONS.truncate,
    mode: MODE_OPTION,
    filter: SERVE_OPTIONS.filter,
    ...VIEW_OPTIONS,
    ...HYBRID_OPTIONS,
    ...RERANK_OPTIONS,
    ...RETRIEVER_OPTIONS,
  },
  examples: ['trawl mcp indexes/sample', 'trawl mcp indexes/wiki18 --index indexes/news'],
  async run({ options, positionals, given, signal, note }) {
    checkRerankOptions(options, given);
    checkEndpointOptions(options.model, given);
    // A wrong path, filter or view must end the command instead of failing each search.
    const filter = filterOption(options.filter);
    const further = parseServedIndexes(options.index).map(({ folder }) => folder);
    for (const each of [positionals[0]!, ...further]) {
      if (isPublishedAddress(each)) continue;
      const { columns, folder } = openIndexDirectory(each);
      checkFilter(filter, { columns, index: folder });
    }
    viewOption(options);
    const { serveStdio } = await import('../../src/server/mcp/server.ts');
    // Assistants wait only a short time for the handshake, so the index opens in the background.
    const retrieving = {
      ...retrieverOptions(options),
      signal,
      modes: options.mode === undefined ? undefined : [options.mode],
      cutTokenizer: options['cut-tokenizer'],
      onWarning: note,
    };
    const opening = openReranked(positionals[0]!, options, retrieving, options.index);
    const failure = new AbortController();
    opening.catch(() => failure.abort());
    try {
      await serveStdio(
        {
          retriever: async () => narrowedRetriever((await opening).retriever, filter === undefined ? {} : { filter }),
          limits: {
            ...DEFAULT_SERVER_CONFIG,
            topk: options.topk,
            truncate: options.truncate,
            mode: options.mode ?? null,
            hybrid: hybridOptions(options),
            rerank: rerankCall(options).rerank ?? null,
          },
          tools: options['mcp-tools'],
          snippetTokens: options['mcp-snippet-tokens'],
          onFailure: (tool, error) => note(`${tool}: ${error.message} [${error.code}]`),
        },
        AbortSignal.any([signal, failure.signal]),
      );
      if (failure.signal.aborted) await opening;
      return EXIT.ok;
    } finally {
      await (await opening.catch(() => undefined))?.close();
    }
  },
});
