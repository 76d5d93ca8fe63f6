import { DEFAULT_SERVER_CONFIG } from '../../src/http/server-config.ts';
import { openIndexDirectory } from '../../src/retrieval/index-directory.ts';
import { openRetriever } from '../../src/retrieval/open-retriever.ts';
import { defineCommand, EXIT } from '../command.ts';
import { RETRIEVER_OPTIONS, retrieverOptions } from '../retriever-options.ts';

export const mcpCommand = defineCommand({
  name: 'mcp',
  summary: 'give an assistant an index, over standard input and output',
  description:
    'Speaks the Model Context Protocol on standard input and output, for assistants that start their servers themselves. ' +
    'Tools: search (query, optional question and k) and fetch (id). docs/agents.md has the lines for an assistant’s ' +
    'configuration. Remarks go to stderr. It ends when its input does.\n\n' +
    'For an assistant that connects over HTTP: trawl serve --mcp.',
  positionals: { usage: '<index>', help: { index: 'The index directory.' }, min: 1, max: 1 },
  options: { ...RETRIEVER_OPTIONS },
  examples: ['trawl mcp indexes/sample'],
  async run({ options, positionals, signal, note }) {
    // A wrong path should end the command, not fail each search.
    openIndexDirectory(positionals[0]!);
    const { serveStdio } = await import('../../src/http/mcp/server.ts');
    // Assistants wait for the handshake only for a short time: the index opens behind it.
    const opening = openRetriever(positionals[0]!, { ...retrieverOptions(options), onWarning: note });
    const failure = new AbortController();
    opening.catch(() => failure.abort());
    try {
      await serveStdio(
        {
          retriever: () => opening,
          maxChars: DEFAULT_SERVER_CONFIG.maxQueryChars,
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
