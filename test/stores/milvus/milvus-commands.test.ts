import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { runTrawl, SAMPLE_PASSAGES } from '../../cli/run-trawl.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { assertFails, assertNeedsPackage } from '../failed-commands.ts';
import { described, FakeMilvus, NO_COLLECTION } from './fake-milvus.ts';

/** Nothing listens on port 1. */
const NOBODY = 'milvus://127.0.0.1:1/wiki/passages';
const WITH_PASSWORD = 'milvus://root:secret@127.0.0.1:1/wiki/passages';

test('without the optional package, the error has the command that installs it', (t) =>
  assertNeedsPackage(t, NOBODY, '@zilliz/milvus2-sdk-node'));

test('a Milvus that cannot be reached ends the command after a few attempts', async () => {
  assertFails(await runTrawl(['search', NOBODY, 'x']), 1, /Milvus at 127\.0\.0\.1:1 could not .*\[STORE_FAILED\]/);
});

test('something other than Milvus ends the command', async (t) => {
  const server = createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  const place = `127.0.0.1:${port}`;
  const env = { TRAWL_MILVUS_CREDENTIALS: `milvus://root:secret@${place}` };
  const ended = await runTrawl(['inspect', `milvus://${place}/wiki/passages`], { env });
  assertFails(ended, 1, /could not .*\[STORE_FAILED\]/);
});

test('doctor says that Milvus does not answer', async () => {
  const ended = await runTrawl(['doctor', NOBODY]);
  assert.equal(ended.code, 3);
  assert.match(ended.stdout, /milvus:\/\/127\.0\.0\.1:1\/wiki\/passages: no answer/);
  assert.doesNotMatch(ended.stdout, /secret/);
});

test('doctor says what is missing in a Milvus that answers, and exits with 3', async (t) => {
  const replies: Record<string, object> = {};
  const fake = await FakeMilvus.start(t, {
    ListDatabases: () => ({ status: {}, db_names: ['default', 'wiki'] }),
    DescribeCollection: ({ request }) => replies[request.collection_name] ?? NO_COLLECTION,
  });
  const address = `milvus://127.0.0.1:${fake.port}/wiki/c`;
  const doctor = async (): Promise<{ version: string; collection: null; problems: string[] }> => {
    const { code, stdout, stderr } = await runTrawl(['doctor', address, '--json']);
    assert.equal(code, 3, stderr);
    return JSON.parse(stdout).milvus;
  };
  const absent = await doctor();
  assert.deepEqual([absent.version, absent.collection], ['v0', null]);
  assert.match(absent.problems.join(), /there is no such collection or alias\. Publish an index with `trawl publish/);
  replies.c = described('c', []);
  assert.match((await doctor()).problems.join(), /the collection c was not made by `trawl publish`/);
  replies.c = { status: { error_code: 'PermissionDenied', code: 65535, reason: 'permission deny to this user' } };
  assert.match((await doctor()).problems.join(), /permission/i);
  const { stdout } = await runTrawl(['doctor', address]);
  assert.match(stdout, /version v0[\s\S]*problem .*permission/i);
});

test('BM25 and hybrid search are refused before Milvus is asked', async () => {
  for (const mode of ['bm25', 'hybrid']) {
    const ended = await runTrawl(['search', NOBODY, 'x', '--mode', mode]);
    assertFails(ended, 1, /vectors only, no inverted indexes for BM25.*\[NOT_SUPPORTED\]/);
  }
});

test('commands that read folders refuse an address, and publish takes a folder and an address', async () => {
  for (const args of [
    ['optimize', NOBODY],
    ['export', NOBODY],
    ['remove', NOBODY],
    ['publish', NOBODY, 'indexes/sample'],
    ['publish', 'indexes/sample', 'indexes/other'],
    ['search', NOBODY, '--queries', 'q.jsonl', '--out', 'hits.jsonl'],
    ['serve', NOBODY, '--plan'],
  ]) {
    assertFails(await runTrawl(args), 2, /\[USAGE\]/);
  }
});

test('a wrong address is refused before anything is read', async () => {
  for (const address of ['milvus://root:secret@h', 'milvus://root:secret@h/d/my-index', 'milvus://root:secret@h/c?x']) {
    assertFails(await runTrawl(['search', address, 'x']), 1, /\[CONFIG_INVALID\]/);
    assertFails(await runTrawl(['serve', address]), 1, /\[CONFIG_INVALID\]/);
  }
});

test('a password on the command line is refused by every command, with the file that it belongs into', async () => {
  for (const args of [
    ['search', WITH_PASSWORD, 'x'],
    ['inspect', WITH_PASSWORD],
    ['verify', WITH_PASSWORD],
    ['serve', `name=${WITH_PASSWORD}`],
    ['mcp', WITH_PASSWORD],
    ['doctor', WITH_PASSWORD],
  ]) {
    assertFails(await runTrawl(args), 1, /has a password.*TRAWL_MILVUS_CREDENTIALS_FILE.*\[CONFIG_INVALID\]/);
  }
});

test('credentials that cannot be used end the command before Milvus is asked, without being shown', async (t) => {
  const file = join(await tempFolder(t), 'credentials');
  writeFileSync(file, '# the cluster\n\nmilvus://root:sec/ret@h\n');
  const of = (env: Record<string, string>, address = NOBODY) => runTrawl(['search', address, 'x'], { env });
  assertFails(
    await of({ TRAWL_MILVUS_CREDENTIALS_FILE: file }),
    1,
    /credentials, line 3, is not milvus:.*percent-encoded/,
  );
  assertFails(
    await of({ TRAWL_MILVUS_CREDENTIALS_FILE: `${file}-none` }),
    1,
    /not the path of a file that can be read \(ENOENT\).*\[CONFIG_INVALID\]/,
  );
  assertFails(await of({ TRAWL_MILVUS_CREDENTIALS: 'root:secret' }), 1, /part 1, is not milvus:/);
  const other = { TRAWL_MILVUS_CREDENTIALS: 'milvus://root:secret@h:1' };
  assertFails(await of(other, 'milvus://root@127.0.0.1:1/c'), 1, /without a password for milvus:\/\/127\.0\.0\.1:1/);
});

test('a build into Milvus names a working folder, and asks Milvus before it embeds', async (t) => {
  const work = join(await tempFolder(t), 'work');
  const build = ['index', 'corpus.jsonl', '--out', NOBODY];
  assertFails(await runTrawl(build), 2, /--work is missing.*\[USAGE\]/);
  for (const wrong of [['--update'], ['--append'], ['--shard', '1/2'], ['--bm25'], ['--from-embeddings', 'x.npy']])
    assertFails(
      await runTrawl([...build, '--work', work, ...wrong]),
      2,
      /does not work with an address as --out.*\[USAGE\]/,
    );
  assertFails(await runTrawl(['index', 'corpus.jsonl', '--out', 'x', '--work', work]), 2, /--work has no effect/);
  assertFails(
    await runTrawl(['index', 'corpus.jsonl', '--out', WITH_PASSWORD, '--work', work]),
    1,
    /\[CONFIG_INVALID\]/,
  );
  assertFails(await runTrawl([...build, '--work', work]), 1, /\[STORE_FAILED\]/);
});

test('a build into a name that is taken, or into a missing database, ends before anything is embedded', async (t) => {
  const replies: Record<string, object> = {};
  const fake = await FakeMilvus.start(t, {
    DescribeCollection: ({ request }) => replies[request.collection_name] ?? NO_COLLECTION,
  });
  const folder = await tempFolder(t);
  const work = join(folder, 'work');
  const build = () =>
    runTrawl([
      ...['index', SAMPLE_PASSAGES, '--out', `milvus://127.0.0.1:${fake.port}/wiki/c`, '--work', work],
      // Would end the command with MODEL_NOT_FOUND as soon as it is read.
      ...['--model', './none'],
    ]);
  assertFails(await build(), 1, /\[MODEL_NOT_FOUND\]/);
  replies.c = described('c', []);
  assertFails(await build(), 1, /was not made by `trawl publish`.*\[INDEX_EXISTS\]/);
  replies.c = described('other', []);
  assertFails(await build(), 1, /c is an alias of other.*\[INDEX_EXISTS\]/);
  replies.c = { status: { error_code: 'UnexpectedError', code: 800, reason: 'database not found[database=wiki]' } };
  assertFails(await build(), 1, /no such database.*\[INDEX_NOT_FOUND\]/);
  assert.ok(!existsSync(work) && !existsSync(`${work}.partial`));
});
