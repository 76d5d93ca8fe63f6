import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { S3 } from '@aws-sdk/client-s3';
import type { CopySource } from '../../indexer/sync/copy-source.ts';
import { s3Source } from '../../indexer/sync/s3-source.ts';
import { removePassages } from '../../indexer/update/remove-passages.ts';
import { freePort } from '../cli/free-port.ts';
import { fileFolder, runTrawl, sampleIndex } from '../cli/run-trawl.ts';
import { STORAGE } from '../helpers/peers.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { contentsOf, sync } from '../indexer/sync/sync-helpers.ts';

const skip = STORAGE.missing();
const KEYS = { AWS_ACCESS_KEY_ID: 'testing', AWS_SECRET_ACCESS_KEY: 'testing', AWS_REGION: 'us-east-1' };

/** moto's server: an independent implementation of S3's interface. */
async function startStorage(t: TestContext): Promise<{ endpoint: string; s3: S3 }> {
  const port = await freePort();
  const child = spawn(join(STORAGE.folder, 'bin', 'moto_server'), ['-H', '127.0.0.1', '-p', String(port)], {
    stdio: 'ignore',
  });
  t.after(async () => {
    child.kill('SIGTERM');
    if (child.exitCode === null) await once(child, 'close');
  });
  Object.assign(process.env, KEYS);
  const endpoint = `http://127.0.0.1:${port}`;
  const s3 = new S3({ endpoint, forcePathStyle: true, region: 'us-east-1', maxAttempts: 20 });
  t.after(() => s3.destroy());
  for (let i = 0; ; i++) {
    const isUp = await s3.createBucket({ Bucket: 'indexes' }).then(
      () => true,
      () => false,
    );
    if (isUp) return { endpoint, s3 };
    if (i === 100) throw new Error('moto does not answer');
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function upload(s3: S3, folder: string, prefix: string): Promise<void> {
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const path = join(folder, name);
    if (statSync(path).isFile())
      await s3.putObject({ Bucket: 'indexes', Key: `${prefix}/${name}`, Body: readFileSync(path) });
  }
}

test('an index in S3 is copied, resumed and updated', { skip }, async (t) => {
  const folder = await fileFolder();
  const index = await sampleIndex(folder);
  const { endpoint, s3 } = await startStorage(t);
  await upload(s3, index, 'a/wiki');
  const to = join(folder, 'to', 'copy');
  // A transfer that breaks off goes on by a range.
  let breaks = 1;
  const offsets: number[] = [];
  const open = async (): Promise<CopySource> => {
    const source = await s3Source('s3://indexes/a/wiki', { endpoint })(new AbortController().signal);
    return {
      ...source,
      async *read(path, offset, signal) {
        if (path.endsWith('vectors.faiss')) offsets.push(offset);
        for await (const chunk of source.read(path, offset, signal)) {
          if (path.endsWith('vectors.faiss') && breaks-- > 0) return yield chunk.subarray(0, 1_000);
          yield chunk;
        }
      },
    };
  };
  await sync(open, to);
  assert.deepEqual(offsets, [0, 1_000]);
  assert.deepEqual(contentsOf(to), contentsOf(index));
  const changed = join(folder, 'changed');
  cpSync(index, changed, { recursive: true });
  await removePassages(changed, ['s-0001'], {});
  await upload(s3, changed, 'a/wiki');
  const ended = await runTrawl(['sync', 's3://indexes/a/wiki/', to, '--s3-endpoint', endpoint, '--json'], {
    env: KEYS,
  });
  assert.equal(ended.code, 0, ended.stderr);
  assert.equal((JSON.parse(ended.stdout) as { files: { copied: number } }).files.copied, 1);
  assert.deepEqual(contentsOf(to), contentsOf(changed));

  const none = join(folder, 'none', 'copy');
  const from = (url: string) => s3Source(url, { endpoint });
  await assert.rejects(sync(from('s3://indexes/b'), none), trawlError('INDEX_NOT_FOUND', /manifest\.json/));
  await assert.rejects(sync(from('s3://nobucket/b'), none), trawlError('INDEX_NOT_FOUND', /no such bucket/));
  // An object that is replaced meanwhile by one of the same size.
  const key = 'a/wiki/shard-00000/codes.i8';
  const body = readFileSync(join(index, 'shard-00000', 'codes.i8'));
  body[5000]! ^= 1;
  await s3.putObject({ Bucket: 'indexes', Key: key, Body: body });
  await assert.rejects(sync(from('s3://indexes/a/wiki'), none), trawlError('INDEX_CHECKSUM_MISMATCH', /codes\.i8/));
  await s3.deleteObject({ Bucket: 'indexes', Key: key });
  await assert.rejects(sync(from('s3://indexes/a/wiki'), none), trawlError('INDEX_FILE_MISSING', /codes\.i8/));
  assert.ok(!existsSync(none));
  await assert.rejects(
    sync(s3Source('s3://indexes/a/wiki', { endpoint: 'http://127.0.0.1:9' }), none),
    trawlError('SOURCE_UNREACHABLE', /given up/),
  );
  for (const url of ['s3://', 's3://A_B/x', 's3:/bucket/x']) assert.throws(() => s3Source(url), trawlError('USAGE'));
});
