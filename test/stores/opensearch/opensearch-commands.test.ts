import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runTrawl } from '../../cli/run-trawl.ts';
import { assertFails, assertNeedsPackage } from '../failed-commands.ts';

/** Nothing listens on port 1. */
const NOBODY = 'opensearch://127.0.0.1:1/passages';

test('without the optional package, the error has the command that installs it', (t) =>
  assertNeedsPackage(t, NOBODY, '@opensearch-project/opensearch'));

test('an OpenSearch that cannot be reached ends the command, and doctor says so', async () => {
  const [search, doctor] = await Promise.all([runTrawl(['search', NOBODY, 'x']), runTrawl(['doctor', NOBODY])]);
  assertFails(search, 1, /OpenSearch at 127\.0\.0\.1:1 could not .*\[STORE_FAILED\]/);
  assert.equal(doctor.code, 3);
  assert.match(doctor.stdout, /opensearch:\/\/127\.0\.0\.1:1\/passages: no answer/);
});

test('what cannot be done is refused before OpenSearch is asked', async () => {
  const cases: [string[], number, RegExp][] = [
    [['search', 'opensearch://root:secret@h/i', 'x'], 1, /TRAWL_OPENSEARCH_CREDENTIALS.*\[CONFIG_INVALID\]/],
    [['optimize', NOBODY], 2, /\[USAGE\]/],
    [['publish', NOBODY, 'indexes/sample'], 2, /\[USAGE\]/],
    [['publish', 'indexes/sample', NOBODY, '--index-type', 'HNSW'], 2, /--index-type is not for OpenSearch.*\[USAGE\]/],
    [['publish', 'indexes/sample', 'milvus://h/c', '--shards', '2'], 2, /--shards is not for Milvus.*\[USAGE\]/],
    [['search', NOBODY, '--queries', 'q.jsonl', '--out', 'hits.jsonl'], 2, /\[USAGE\]/],
    [['serve', NOBODY, '--plan'], 2, /\[USAGE\]/],
    [['index', 'corpus', '--out', NOBODY], 2, /--work is missing: with an address in OpenSearch.*\[USAGE\]/],
    [['index', 'corpus', '--out', NOBODY, '--work', NOBODY], 2, /--work is an address.*\[USAGE\]/],
    [['index', 'corpus', '--out', NOBODY, '--work', 'w', '--shard', '1/2'], 2, /--shard does not work.*\[USAGE\]/],
    [['index', 'corpus', '--out', NOBODY, '--work', 'w', '--bm25'], 2, /without vectors, which OpenSearch.*\[USAGE\]/],
    [
      ['index', 'no-corpus', '--out', NOBODY, '--work', 'w'],
      1,
      /OpenSearch at 127\.0\.0\.1:1 could not.*\[STORE_FAILED\]/,
    ],
  ];
  for (const [args, code, reason] of cases) assertFails(await runTrawl(args), code, reason);
});
