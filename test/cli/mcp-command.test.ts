import assert from 'node:assert/strict';
import { join } from 'node:path';
import { before, type TestContext, test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { loadKernel } from '../../src/native/kernel.ts';
import { packageRoot } from '../../src/package-root.ts';
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

test('an MCP client searches a server that was started with --mcp', async (t) => {
  const { url } = await serveIndex(t, index, ['--mcp']);
  await searchAndFetch(t, new StreamableHTTPClientTransport(new URL(`${url}/mcp`)));
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
