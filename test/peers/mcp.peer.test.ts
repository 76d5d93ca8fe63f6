import assert from 'node:assert/strict';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { packageRoot } from '../../src/base/package-root.ts';
import { fileFolder, sampleIndex } from '../cli/run-trawl.ts';
import { CLIENTS } from '../helpers/peers.ts';
import { sampleServer } from '../helpers/sample-server.ts';

const skip = CLIENTS.missing();
const server = await sampleServer({ mcp: { hosts: [] } });
const folder = await fileFolder();
let index = '';

before(async () => {
  if (skip === false) index = await sampleIndex(folder);
});

interface Answer {
  readonly tools: string[];
  readonly results: { readonly id: string; readonly title: string }[];
  readonly text: string;
  readonly missing: { readonly error: boolean; readonly text: string };
}

test('the official Python client gets the same results over both HTTP transports and over stdio', {
  skip,
}, async () => {
  const command = [process.execPath, join(packageRoot, 'dist', 'cli', 'trawl.js'), 'mcp', index];
  const answers = (await CLIENTS.run('mcp_client.py', {
    url: `${server.url}/mcp`,
    command,
    query: 'who designed the Brooklyn Bridge',
  })) as { http: Answer; events: Answer; stdio: Answer };
  assert.deepEqual(answers.http, answers.stdio);
  assert.deepEqual(answers.events, answers.stdio);
  const { tools, results, text, missing } = answers.http;
  assert.deepEqual(tools, ['search', 'fetch']);
  assert.deepEqual([results.length, results[0]!.title], [3, 'Brooklyn Bridge']);
  assert.match(text, /John A\. Roebling/);
  assert.equal(missing.error, true);
  assert.match(missing.text, /^NOT_FOUND/);
});
