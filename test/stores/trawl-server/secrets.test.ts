import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { repeatedRequest } from '../../../src/stores/trawl-server/repeated-request.ts';
import { ServerRetriever } from '../../../src/stores/trawl-server/server-retriever.ts';
import { fileFolder, runTrawl } from '../../cli/run-trawl.ts';

const folder = await fileFolder();

const hasNoSecret = /^(?!.*secret)/s;

test('a URL with a user, query or fragment is refused without a request, and nothing repeats it', async () => {
  for (const url of [
    'http://u:secret@127.0.0.1:9',
    'http://secret@127.0.0.1:9',
    'http://127.0.0.1:9/?key=secret',
    'http://127.0.0.1:9/#secret',
    'http://:secret',
  ]) {
    const onWait = (): void => assert.fail('the request is repeated');
    await assert.rejects(ServerRetriever.open(url, { onWait }), { code: 'CONFIG_INVALID', message: hasNoSecret }, url);
  }
});

test('trawl search --url with a password says how a key is passed, and writes the password nowhere', async () => {
  const out = join(folder, 'hits.jsonl');
  for (const url of ['http://u:secret@127.0.0.1:9', 'u:secret@127.0.0.1:9']) {
    const { code, stdout, stderr } = await runTrawl(['search', '--url', url, '--queries', 'none.jsonl', '--out', out]);
    assert.notEqual(code, 0);
    assert.match(stderr, /--key-file|expected a URL such as/);
    assert.doesNotMatch(stdout + stderr, /secret/);
  }
  assert.deepEqual(readdirSync(folder), []);
});

test('a request that cannot be sent is not repeated, and its error names neither URL nor key', async () => {
  const onWait = (): void => assert.fail('the request is repeated');
  const refused = { code: 'CONFIG_INVALID', message: hasNoSecret };
  await assert.rejects(repeatedRequest('http://u:secret@127.0.0.1:9', undefined, { onWait }), refused);
  await assert.rejects(repeatedRequest('http://127.0.0.1:9', undefined, { apiKey: 'secret\nkey', onWait }), refused);
});
