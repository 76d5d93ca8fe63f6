import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { type Ended, endOf, runTrawl, spawnTrawl } from '../../cli/run-trawl.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';

/** Nothing listens on port 1. */
const NOBODY = 'opensearch://127.0.0.1:1/passages';

function assertFails({ code, stderr, stdout }: Ended, exitCode: number, reason: RegExp): void {
  assert.equal(code, exitCode, stderr);
  assert.match(stderr, reason);
  assert.doesNotMatch(stderr + stdout, /secret/);
}

test('without the optional package, the error has the command that installs it', async (t) => {
  const hook = join(await tempFolder(t), 'hook.mjs');
  writeFileSync(
    hook,
    `import { registerHooks } from 'node:module';
     registerHooks({ resolve(name, context, next) {
       if (name !== '@opensearch-project/opensearch') return next(name, context);
       throw Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' });
     } });`,
  );
  const env = { NODE_OPTIONS: `--import=${pathToFileURL(hook)}` };
  const ended = await endOf(spawnTrawl(['search', NOBODY, 'x'], { env }));
  assertFails(ended, 1, /npm install @opensearch-project\/opensearch[\s\S]*\[PACKAGE_MISSING\]/);
});

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
