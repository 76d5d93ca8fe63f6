import assert from 'node:assert/strict';
import { join } from 'node:path';
import { before, type TestContext, test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { packageRoot } from '../../src/base/package-root.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { endOf, fileFolder, runTrawl, SAMPLE_PASSAGES, sampleIndex, serveIndex, spawnTrawl } from './run-trawl.ts';

const loaded = loadKernel();
const withoutEngine = loaded.ok ? false : `the native engine is not built: ${loaded.reason}`;
const PROGRAM = join(packageRoot, 'dist', 'cli', 'trawl.js');
const folder = await fileFolder();
let index = '';

before(async () => {
  index = await sampleIndex(folder);
});

interface Searched {
  readonly results: readonly { readonly id: string; readonly title: string }[];
}

async function searchAndFetch(t: TestContext, transport: Transport): Promise<void> {
  const client = new Client({ name: 'test', version: '1' });
  t.after(() => client.close());
  await client.connect(transport);
  await client.listTools();
  const found = await client.callTool({
    name: 'search',
    arguments: { query: 'who designed the Brooklyn Bridge', k: 2 },
  });
  const { results } = found.structuredContent as unknown as Searched;
  assert.deepEqual([results.length, results[0]!.title], [2, 'Brooklyn Bridge']);
  const fetched = await client.callTool({ name: 'fetch', arguments: { id: results[0]!.id } });
  assert.match((fetched.structuredContent as { text: string }).text, /John A\. Roebling/);
}

test('an MCP client searches the index through trawl mcp over standard input and output', async (t) => {
  await searchAndFetch(t, new StdioClientTransport({ command: process.execPath, args: [PROGRAM, 'mcp', index] }));
});

test('trawl mcp --mode bm25 ranks by words', { skip: withoutEngine }, async (t) => {
  const words = join(folder, 'words');
  assert.equal((await runTrawl(['index', SAMPLE_PASSAGES, '--out', words, '--bm25', '--quiet'])).code, 0);
  const args = [PROGRAM, 'mcp', words, '--mode', 'bm25', '--truncate', 'question'];
  await searchAndFetch(t, new StdioClientTransport({ command: process.execPath, args }));
  const dense = await runTrawl(['mcp', words, '--mode', 'dense'], { stdin: 'pipe' });
  assert.equal(dense.code, 1);
  assert.match(dense.stderr, /no vectors/);
});

test('trawl mcp --index searches several indexes as one, and each must have the columns of the filter', async (t) => {
  const args = [PROGRAM, 'mcp', index, '--index', `more=${index}`];
  const client = new Client({ name: 'test', version: '1' });
  t.after(() => client.close());
  await client.connect(new StdioClientTransport({ command: process.execPath, args }));
  const found = await client.callTool({ name: 'search', arguments: { query: 'Brooklyn Bridge', k: 2 } });
  const { results } = found.structuredContent as unknown as Searched;
  assert.deepEqual(
    results.map(({ id }) => id),
    ['s-0001', 's-0001'],
  );
  for (const [more, message] of [
    [['--index', index], /Two indexes have the name/],
    [['--index', `more=${index}`, '--filter', 'open'], /names the column "open"/],
    [['--index', join(folder, 'none')], /INDEX_NOT_FOUND/],
  ] as const) {
    const { code, stderr } = await runTrawl(['mcp', index, ...more], { stdin: 'pipe' });
    assert.notEqual(code, 0);
    assert.match(stderr, message);
  }
});

test('an MCP client searches a server that was started with --mcp', async (t) => {
  const { url } = await serveIndex(t, index, ['--mcp']);
  await searchAndFetch(t, new StreamableHTTPClientTransport(new URL(`${url}/mcp`)));
});

/** The text blocks of a tool's reply over standard input and output. */
async function toolTexts(t: TestContext, args: readonly string[], name: string, tool: object): Promise<string[]> {
  const client = new Client({ name: 'test', version: '1' });
  t.after(() => client.close());
  await client.connect(new StdioClientTransport({ command: process.execPath, args: [PROGRAM, 'mcp', ...args] }));
  const reply = await client.callTool({ name, arguments: { ...tool } });
  return (reply.content as { text: string }[]).map(({ text }) => text);
}

test('--mcp-tools offers the tools of BrowseComp-Plus, with --topk documents cut by the tokens of the index’s model', async (t) => {
  const args = [index, '--mcp-tools', 'browsecomp-plus', '--topk', '2', '--mcp-snippet-tokens', '8'];
  const [text] = await toolTexts(t, args, 'search', { query: 'who designed the Brooklyn Bridge' });
  const found = JSON.parse(text!) as { docid: string; snippet: string }[];
  assert.deepEqual([found.length, found[0]!.docid], [2, 's-0001']);
  assert.match(found[0]!.snippet, /^The Brooklyn Bridge is (\S+ ?){1,5}$/);
  const { url } = await serveIndex(t, index, ['--mcp', '--mcp-tools', 'dr-tulu']);
  const client = new Client({ name: 'test', version: '1' });
  t.after(() => client.close());
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)));
  const { tools } = await client.listTools();
  assert.ok(tools.some(({ name }) => name === 'massive_serve_search'));
});

test('an index without a model needs a tokenizer to cut texts by tokens, and --cut-tokenizer names one', {
  skip: withoutEngine,
}, async (t) => {
  const plain = join(folder, 'plain-words');
  assert.equal((await runTrawl(['index', SAMPLE_PASSAGES, '--out', plain, '--bm25', '--quiet'])).code, 0);
  const args = [plain, '--mcp-tools', 'browsecomp-plus', '--topk', '1'];
  const query = { query: 'Brooklyn Bridge' };
  assert.match((await toolTexts(t, args, 'search', query))[0]!, /^NOT_SUPPORTED: .*--cut-tokenizer/);
  const tokenizer = join(packageRoot, 'models', 'token-average-256', 'tokenizer.json');
  for (const name of ['token-average-256', tokenizer]) {
    const [text] = await toolTexts(t, [...args, '--cut-tokenizer', name], 'search', query);
    assert.match((JSON.parse(text!) as { snippet: string }).snippet, /^The Brooklyn Bridge is /);
  }
  for (const command of ['mcp', 'serve']) {
    const { code, stderr } = await endOf(
      spawnTrawl([command, plain, '--cut-tokenizer', 'no-such-model'], { stdin: 'pipe' }),
    );
    assert.equal(code, 1);
    assert.match(stderr, /MODEL_NOT_FOUND/);
  }
});

test('trawl mcp ends with its input, and writes only the protocol to standard output', async () => {
  // Standard input is closed from the start.
  const { code, stdout } = await endOf(spawnTrawl(['mcp', index]));
  assert.deepEqual([code, stdout], [0, '']);
});

test('trawl mcp with a path that is no index fails at once', async () => {
  const { code, stdout, stderr } = await runTrawl(['mcp', join(folder, 'none')]);
  assert.deepEqual([code, stdout], [1, '']);
  assert.match(stderr, /INDEX_NOT_FOUND/);
});

test('trawl mcp with an index that cannot be opened fails with the reason', async () => {
  const args = ['mcp', index, '--model', join(folder, 'no-model')];
  // Standard input stays open, so only the failure can end the process.
  const { code, stderr } = await endOf(spawnTrawl(args, { stdin: 'pipe' }));
  assert.equal(code, 1);
  assert.match(stderr, /MODEL_NOT_FOUND/);
});
