import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { serverSource } from '../../../indexer/sync/server-source.ts';
import { removePassages } from '../../../indexer/update/remove-passages.ts';
import { TrawlError } from '../../../src/base/errors.ts';
import { EncoderPools } from '../../../src/encoder/pool/encoder-pools.ts';
import { readIndexManifest } from '../../../src/index/manifest/read-manifest.ts';
import { openRetriever } from '../../../src/search/opening/open-retriever.ts';
import { AccessKeys } from '../../../src/server/access/access-keys.ts';
import { buildApp } from '../../../src/server/app.ts';
import { IndexRegistry } from '../../../src/server/indexes/index-registry.ts';
import { fileFolder, sampleIndex } from '../../cli/run-trawl.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { contentsOf, sync } from './sync-helpers.ts';

const index = await sampleIndex(await fileFolder());
// One encoder for all servers, which stays open.
const encoderPools = new EncoderPools();
const kept = await openRetriever(index, { encoderPools });
after(() => kept.close());
const ADMIN = 'admin-key-0123456789';
const READ = 'read-key-0123456789';

interface Source {
  readonly url: string;
  /** Of the server itself, not of the proxy. */
  readonly port: number;
  /** The folder that the server opens. */
  readonly served: string;
  /** Requests for files. */
  readonly asked: readonly string[];
}

type Behave = (
  request: IncomingMessage,
  reply: ServerResponse,
  body: Buffer,
  headers: IncomingMessage['headers'],
) => boolean;

/** A server over a copy of the index, behind a proxy that may disturb replies. */
async function startSource(t: TestContext, behave: Behave = () => false): Promise<Source> {
  const served = join(await tempFolder(t), 'sample');
  cpSync(index, served, { recursive: true });
  const holder = IndexRegistry.opening([{ name: 'sample', folder: served }], (name, { folder }) =>
    openRetriever(folder, { name, encoderPools }),
  );
  await holder.open();
  const app = buildApp(holder, { keys: AccessKeys.parse(`admin:${ADMIN}\nread:${READ}`, 'test') });
  const port = Number(new URL(await app.listen({ host: '127.0.0.1', port: 0 })).port);
  const asked: string[] = [];
  const proxy = createServer((incoming, reply) => {
    asked.push(`${incoming.url}${incoming.headers.range === undefined ? '' : ` ${incoming.headers.range}`}`);
    const { method, url: path, headers } = incoming;
    request({ port, method, path, headers }, async (found) => {
      const parts: Buffer[] = [];
      for await (const part of found) parts.push(part as Buffer);
      const body = Buffer.concat(parts);
      if (behave(incoming, reply, body, found.headers)) return;
      reply.writeHead(found.statusCode!, found.headers);
      reply.end(body);
    }).end();
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  t.after(async () => {
    proxy.closeAllConnections();
    proxy.close();
    await app.close();
    await holder.close();
  });
  return { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, port, served, asked };
}

function from({ url }: Source, apiKey: string | undefined = ADMIN) {
  return serverSource(`${url}/indexes/sample`, { apiKey, stallMs: 2000 });
}

interface FileList {
  readonly name: string;
  readonly generation: string;
  readonly served: string;
  readonly snapshot: string;
  readonly files: readonly { path: string; bytes: number; sha256: string | null; tag: string }[];
}

async function listOf(url: string): Promise<FileList> {
  const reply = await fetch(`${url}/admin/indexes/sample/files`, { headers: { authorization: `Bearer ${ADMIN}` } });
  return (await reply.json()) as FileList;
}

const isFile = (name: string) => (incoming: IncomingMessage) => incoming.url!.endsWith(name);

test('an index is copied from a server, and then nothing is transferred', async (t) => {
  const source = await startSource(t);
  const to = join(await tempFolder(t), 'copy');
  await sync(from(source), to);
  assert.deepEqual(contentsOf(to), contentsOf(index));
  const asked = source.asked.length;
  const again = await sync(from(source), to);
  assert.equal(again.state, 'current');
  assert.deepEqual(
    source.asked.slice(asked).map((path) => path.split('/').at(-1)),
    ['files', 'manifest.json', 'shard.json'],
  );
});

test('a server lists the files with sizes, checksums and tags', async (t) => {
  const { url } = await startSource(t);
  const headers = { authorization: `Bearer ${ADMIN}` };
  const list = await listOf(url);
  const { generation } = readIndexManifest(index);
  assert.deepEqual([list.name, list.generation, list.served], ['sample', generation, generation]);
  for (const { path, bytes, sha256, tag } of list.files) {
    const content = readFileSync(join(index, path));
    assert.equal(bytes, content.length);
    if (path.endsWith('passages.sqlite')) assert.equal(sha256, null);
    else assert.equal(sha256, createHash('sha256').update(content).digest('hex'), path);
    const get = async (more: Record<string, string>) =>
      fetch(`${url}/admin/indexes/sample/files/${list.snapshot}/${path}`, { headers: { ...headers, ...more } });
    const whole = await get({});
    assert.equal(whole.headers.get('etag'), `"${tag}"`);
    assert.equal(whole.headers.get('content-length'), String(bytes));
    assert.ok(Buffer.from(await whole.arrayBuffer()).equals(content), path);
    const part = async (range: string, more: Record<string, string> = {}) => {
      const reply = await get({ range, ...more });
      return [
        reply.status,
        reply.headers.get('content-range'),
        Buffer.from(await reply.arrayBuffer()).toString('latin1'),
      ];
    };
    const text = content.toString('latin1');
    assert.deepEqual(await part('bytes=10-19'), [206, `bytes 10-19/${bytes}`, text.slice(10, 20)]);
    assert.deepEqual(await part('bytes=10-'), [206, `bytes 10-${bytes - 1}/${bytes}`, text.slice(10)]);
    assert.deepEqual(await part('bytes=-7'), [206, `bytes ${bytes - 7}-${bytes - 1}/${bytes}`, text.slice(-7)]);
    assert.deepEqual(await part(`bytes=${bytes}-`), [416, `bytes */${bytes}`, '']);
    // Ranges that it does not know, and those of another file, get the whole.
    assert.deepEqual(await part('bytes=1-2,4-5'), [200, null, text]);
    assert.deepEqual(await part('lines=1-2'), [200, null, text]);
    assert.deepEqual(await part('bytes=10-19', { 'if-range': '"other"' }), [200, null, text]);
  }
});

test('only a key of the scope admin gets files', async (t) => {
  const source = await startSource(t);
  const to = join(await tempFolder(t), 'copy');
  for (const [key, status] of [
    [undefined, 401],
    ['wrong', 401],
    [READ, 403],
  ] as const) {
    await assert.rejects(
      sync(serverSource(`${source.url}/indexes/sample`, { apiKey: key }), to),
      trawlError('SOURCE_REFUSED', new RegExp(`status ${status}.*--key-file`, 's')),
    );
    const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
    const path = '/admin/indexes/sample/files/0123456789abcdef0123456789abcdef/manifest.json';
    assert.equal((await fetch(`${source.url}${path}`, { headers })).status, status);
  }
  assert.ok(!existsSync(to));
});

test('a server gives nothing but the files of the list', async (t) => {
  const source = await startSource(t);
  writeFileSync(join(source.served, 'secret.txt'), 'secret');
  const headers = { authorization: `Bearer ${ADMIN}` };
  const { snapshot } = await listOf(source.url);
  const { port } = new URL(source.url);
  const status = (path: string): Promise<number> =>
    new Promise((resolve, reject) => {
      // Not `fetch`, which would resolve the dots itself.
      request({ port, path: `/admin/indexes/sample/files/${path}`, headers }, (reply) => {
        reply.resume();
        resolve(reply.statusCode!);
      })
        .on('error', reject)
        .end();
    });
  for (const path of [
    'secret.txt',
    '../secret.txt',
    '../../../../etc/passwd',
    '..%2f..%2fetc%2fpasswd',
    '%2e%2e/%2e%2e/etc/passwd',
    '/etc/passwd',
    'shard-00000',
    'shard-00000/../manifest.json',
    'manifest.json%00',
    '',
  ]) {
    assert.equal(await status(`${snapshot}/${path}`), 404, path);
  }
  assert.equal(await status(`${'0'.repeat(32)}/manifest.json`), 410);
  assert.equal(await status('../../etc/passwd'), 410);
});

test('an index with a link that leads out of it is not listed', async (t) => {
  const source = await startSource(t);
  const codes = join(source.served, 'shard-00000', 'codes.i8');
  rmSync(codes);
  symlinkSync(join(index, 'shard-00000', 'codes.i8'), codes);
  await assert.rejects(
    sync(from(source), join(await tempFolder(t), 'copy')),
    trawlError('SOURCE_REFUSED', /status 501.*INDEX_FILE_FOREIGN/),
  );
});

test('files stay readable while they are copied, although the folder gets another generation', async (t) => {
  let replaced = false;
  const source: Source = await startSource(t, (incoming) => {
    if (!replaced && isFile('shard.json')(incoming)) {
      replaced = true;
      renameSync(source.served, `${source.served}.old`);
      cpSync(index, source.served, { recursive: true });
      rmSync(`${source.served}.old`, { recursive: true });
      writeFileSync(join(source.served, 'manifest.json'), '{}');
    }
    return false;
  });
  const to = join(await tempFolder(t), 'copy');
  assert.equal((await sync(from(source), to)).state, 'copied');
  assert.deepEqual(contentsOf(to), contentsOf(index));
});

test('clients that break a download off do not disturb later downloads, and the server stops', async (t) => {
  const { port, served } = await startSource(t);
  // Larger than the buffers of the sockets, so that the server is in the middle of it.
  truncateSync(join(served, 'shard-00000', 'passages.sqlite'), 64 * 2 ** 20);
  const { snapshot } = await listOf(`http://127.0.0.1:${port}`);
  const path = `/admin/indexes/sample/files/${snapshot}/shard-00000/passages.sqlite`;
  for (let i = 0; i < 3; i++) {
    await new Promise<void>((resolve, reject) => {
      request({ port, path, headers: { authorization: `Bearer ${ADMIN}` } }, (reply) => {
        reply.once('data', () => reply.destroy());
        reply.once('close', resolve);
        reply.on('error', () => undefined);
      })
        .on('error', reject)
        .end();
    });
    await setTimeout(50);
    const range = await fetch(`http://127.0.0.1:${port}${path}`, {
      headers: { authorization: `Bearer ${ADMIN}`, range: 'bytes=0-15' },
    });
    assert.equal(range.status, 206);
    assert.equal(Buffer.from(await range.arrayBuffer()).toString('latin1'), 'SQLite format 3\0');
  }
  // The server is closed after the test, which fails if that rejects.
});

test('a generation that is gone, as after a restart of the server, is compared again', async (t) => {
  let changed = false;
  let updating: Promise<unknown> = Promise.resolve();
  const source: Source = await startSource(t, (incoming, reply) => {
    if (changed || !isFile('vectors.faiss')(incoming)) return false;
    changed = true;
    updating = removePassages(source.served, ['s-0001'], {}).then(() => {
      reply.writeHead(410, { 'content-type': 'application/json' });
      reply.end('{"error":{"code":"SOURCE_CHANGED","message":"gone"}}');
    });
    return true;
  });
  const to = join(await tempFolder(t), 'copy');
  const notes: string[] = [];
  await sync(from(source), to, { note: (text) => notes.push(text) });
  await updating;
  assert.match(notes.join('\n'), /no longer has the index.*Compared again/s);
  assert.deepEqual(contentsOf(to), contentsOf(source.served));
});

test('a transfer that the server cuts off is resumed by a range', async (t) => {
  let cuts = 2;
  const source = await startSource(t, (incoming, reply, body, headers) => {
    if (!isFile('vectors.faiss')(incoming) || cuts-- <= 0) return false;
    reply.writeHead(incoming.headers.range === undefined ? 200 : 206, headers);
    reply.write(body.subarray(0, 20_000), () => reply.destroy());
    return true;
  });
  const to = join(await tempFolder(t), 'copy');
  await sync(from(source), to);
  assert.deepEqual(contentsOf(to), contentsOf(index));
  const ranges = source.asked.filter((path) => path.includes('vectors.faiss')).map((path) => path.split(' ')[1]);
  assert.equal(ranges.length, 3);
  assert.ok(ranges[0] === undefined && ranges[1]!.startsWith('bytes=') && ranges[2]!.startsWith('bytes='));
});

test('a file whose wrong beginning came before a cut is transferred anew', async (t) => {
  let isBad = true;
  const source = await startSource(t, (incoming, reply, _body, headers) => {
    if (!isBad || !isFile('vectors.faiss')(incoming)) return false;
    isBad = false;
    reply.writeHead(200, headers);
    reply.write(Buffer.alloc(20_000, 1), () => reply.destroy());
    return true;
  });
  const to = join(await tempFolder(t), 'copy');
  const notes: string[] = [];
  await sync(from(source), to, { note: (text) => notes.push(text) });
  assert.match(notes.join('\n'), /vectors\.faiss: the resumed file is not the expected one; starting over/);
  assert.deepEqual(contentsOf(to), contentsOf(index));
});

test('a server that always cuts off is given up, and what it sent is kept', async (t) => {
  let isBad = true;
  const source = await startSource(t, (incoming, reply, body, headers) => {
    if (!isBad || !isFile('vectors.faiss')(incoming)) return false;
    reply.writeHead(incoming.headers.range === undefined ? 200 : 206, headers);
    reply.write(body.subarray(0, 5_000), () => reply.destroy());
    return true;
  });
  const to = join(await tempFolder(t), 'copy');
  await assert.rejects(
    sync(from(source), to, { jobs: 1 }),
    trawlError('SOURCE_UNREACHABLE', /vectors\.faiss.*given up after 3 attempts/),
  );
  isBad = false;
  const asked = source.asked.length;
  await sync(from(source), to);
  assert.match(source.asked.slice(asked).find((path) => path.includes('vectors.faiss'))!, /bytes=\d{4,}-$/);
  assert.deepEqual(contentsOf(to), contentsOf(index));
});

test('a server that ends a file early without an error, and one that sends wrong bytes, are refused', async (t) => {
  for (const spoil of [
    (body: Buffer) => body.subarray(0, body.length - 10),
    (body: Buffer) => Buffer.concat([body, Buffer.from('more')]),
    (body: Buffer) => Buffer.from(body.map((byte, i) => (i === 5000 ? byte ^ 1 : byte))),
  ]) {
    const source = await startSource(t, (incoming, reply, body, headers) => {
      if (!isFile('codes.i8')(incoming)) return false;
      const { 'content-length': _length, ...others } = headers;
      reply.writeHead(incoming.headers.range === undefined ? 200 : 206, others);
      reply.end(spoil(body));
      return true;
    });
    const to = join(await tempFolder(t), 'copy');
    await assert.rejects(sync(from(source), to), (error) => {
      assert.ok(error instanceof TrawlError);
      assert.match(error.code, /^(INDEX_CHECKSUM_MISMATCH|SOURCE_UNREACHABLE)$/);
      return true;
    });
    assert.ok(!existsSync(to));
  }
});

test('a server that does not list a file of its manifest is refused with a way out', async (t) => {
  const source = await startSource(t, (incoming, reply, body) => {
    if (!isFile('/files')(incoming)) return false;
    const list = JSON.parse(body.toString()) as FileList;
    const files = list.files.filter(({ path }) => !path.endsWith('vectors.faiss'));
    reply.end(JSON.stringify({ ...list, files }));
    return true;
  });
  await assert.rejects(
    sync(from(source), join(await tempFolder(t), 'copy')),
    trawlError('SOURCE_REFUSED', /does not list the file .*vectors\.faiss.*Check that the server .* `trawl verify`/),
  );
});

test('a server of another kind, an unknown index and a wrong URL are refused with a way out', async (t) => {
  const source = await startSource(t, (incoming, reply) => {
    if (!incoming.url!.startsWith('/admin/indexes/page/')) return false;
    reply.writeHead(200, { 'content-type': 'text/html' });
    reply.end('<html>');
    return true;
  });
  const to = join(await tempFolder(t), 'copy');
  const open = (name: string) => serverSource(`${source.url}/indexes/${name}`, { apiKey: ADMIN });
  await assert.rejects(sync(open('none'), to), trawlError('SOURCE_REFUSED', /status 404.*Check the name/s));
  await assert.rejects(sync(open('page'), to), trawlError('SOURCE_REFUSED', /did not answer with a list/));
  await assert.rejects(
    sync(serverSource('http://127.0.0.1:9/indexes/x', {}), to),
    trawlError('SOURCE_UNREACHABLE', /connection failed/),
  );
  for (const url of ['http://host:8000', 'http://user:secret@host/indexes/x', 'http://']) {
    assert.throws(
      () => serverSource(url),
      (error) => trawlError('USAGE')(error) && !/secret/.test(String(error)),
    );
  }
});
