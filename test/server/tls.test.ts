import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { connect as connectPlain } from 'node:net';
import { type TestContext, test } from 'node:test';
import { connect, type Server } from 'node:tls';
import { buildApp } from '../../src/server/app.ts';
import { listen } from '../../src/server/connections/listen.ts';
import type { TlsPem } from '../../src/server/server-config.ts';
import { makeCertificate, withoutOpenssl } from '../helpers/certificate.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { eventually } from './build.ts';

const skip = withoutOpenssl();

async function certificate(t: TestContext): Promise<TlsPem> {
  const { cert, key } = makeCertificate(await tempFolder(t));
  return { cert, key };
}

async function serveTls(
  t: TestContext,
  tls: TlsPem,
): Promise<{ port: number; url: string; server: Server; close: () => Promise<void> }> {
  const app = buildApp(new FakeRetriever(), { tls });
  t.after(() => {
    app.server.closeAllConnections();
    return app.close();
  });
  const url = await listen(app, { host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  return { port, url, server: app.server as unknown as Server, close: async () => app.close() };
}

function post(port: number, ca: string): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json' };
    const sent = request({ host: '127.0.0.1', port, path: '/retrieve', method: 'POST', ca, headers, agent: false });
    sent.on('error', reject).on('response', (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text: string) => (body += text));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
    });
    sent.end('{"queries": ["a"], "topk": 1}');
  });
}

test('with a certificate the server speaks HTTPS, and a client that trusts it is answered', { skip }, async (t) => {
  const tls = await certificate(t);
  const { port, url } = await serveTls(t, tls);
  assert.match(url, /^https:\/\/127\.0\.0\.1:\d+$/);
  const { status, body } = await post(port, tls.cert);
  assert.equal(status, 200);
  assert.equal((JSON.parse(body) as { result: unknown[][] }).result[0]!.length, 1);
  await assert.rejects(post(port, (await certificate(t)).cert), /self-signed|signature|verify/);
});

test('plain HTTP and garbage on a TLS port are disconnected, and the server keeps running', { skip }, async (t) => {
  const tls = await certificate(t);
  const { port } = await serveTls(t, tls);
  for (const bytes of ['GET /livez HTTP/1.1\r\nhost: x\r\n\r\n', '\x16\x03\x01\xff\xff'.repeat(100)]) {
    const socket = connectPlain(port, '127.0.0.1');
    socket.on('error', () => {});
    socket.write(bytes, 'latin1');
    socket.resume();
    await once(socket, 'close');
  }
  const old = connect({ port, host: '127.0.0.1', ca: tls.cert, maxVersion: 'TLSv1.1', minVersion: 'TLSv1' });
  const [error] = (await once(old, 'error')) as [Error];
  assert.match(error.message, /protocol|version|alert/i);
  assert.equal((await post(port, tls.cert)).status, 200);
});

test('a new certificate is used for new connections, and old ones keep working', { skip }, async (t) => {
  const first = await certificate(t);
  const second = await certificate(t);
  const { port, server } = await serveTls(t, first);
  const open = connect({ port, host: '127.0.0.1', ca: first.cert });
  await once(open, 'secureConnect');
  server.setSecureContext(second);
  assert.equal((await post(port, second.cert)).status, 200);
  await assert.rejects(post(port, first.cert));
  open.write('GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
  const [chunk] = (await once(open, 'data')) as [Buffer];
  assert.match(chunk.toString(), /^HTTP\/1\.1 200 OK/);
});

test('connections without a request do not delay the stop, with and without a handshake', {
  skip,
}, async (t) => {
  const tls = await certificate(t);
  const { port, server, close } = await serveTls(t, tls);
  const secure = connect({ port, host: '127.0.0.1', ca: tls.cert });
  await once(secure, 'secureConnect');
  const plain = connectPlain(port, '127.0.0.1');
  await once(plain, 'connect');
  for (const socket of [secure, plain]) socket.on('error', () => {}).resume();
  let open = 0;
  const count = (): void => void server.getConnections((_error, connections) => (open = connections));
  await eventually(() => {
    count();
    return open === 2;
  });
  const ended = Promise.all([once(secure, 'close'), once(plain, 'close')]);
  await close();
  await ended;
});
