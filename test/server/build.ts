import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { connect } from 'node:net';
import type { TestContext } from 'node:test';
import type { FastifyInstance } from 'fastify';
import type { OpenRetriever } from '../../src/search/retriever.ts';
import { buildApp } from '../../src/server/app.ts';
import { listen } from '../../src/server/connections/listen.ts';
import type { IndexRegistry } from '../../src/server/indexes/index-registry.ts';
import type { ServerConfig } from '../../src/server/server-config.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';

/** An app that is closed after the test. */
export function build(
  t: TestContext,
  source: OpenRetriever | IndexRegistry = new FakeRetriever(),
  config: Partial<ServerConfig> = {},
): FastifyInstance {
  const app = buildApp(source, config);
  t.after(() => app.close());
  return app;
}

/** The same on a real socket. Closing does not wait for connections that the test left open. */
export async function serve(
  t: TestContext,
  source: OpenRetriever | IndexRegistry = new FakeRetriever(),
  config: Partial<ServerConfig> = {},
): Promise<{ app: FastifyInstance; url: string; port: number }> {
  const app = buildApp(source, config);
  t.after(() => {
    app.server.closeAllConnections();
    return app.close();
  });
  const url = await listen(app, { host: '127.0.0.1', port: 0 });
  return { app, url, port: (app.server.address() as AddressInfo).port };
}

/** A raw TCP connection. */
export async function openSocket(t: TestContext, port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  t.after(() => socket.destroy());
  await once(socket, 'connect');
  return socket;
}

/** Everything received until the server closes the connection. */
export async function readToEnd(socket: Socket): Promise<string> {
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  await once(socket, 'close');
  return Buffer.concat(chunks).toString();
}

/** POSTs a value, or a body as text or bytes, to /retrieve without a socket. */
export function post(
  app: FastifyInstance,
  body: unknown,
  headers: Record<string, string> = { 'content-type': 'application/json' },
): Promise<Posted> {
  return postTo(app, '/retrieve', body, headers);
}

export interface Posted {
  readonly status: number;
  /** Undefined if the response is not JSON. */
  readonly json: unknown;
  readonly text: string;
  readonly headers: Record<string, unknown>;
}

/** The same for any path. */
export async function postTo(
  app: FastifyInstance,
  url: string,
  body: unknown,
  headers: Record<string, string> = { 'content-type': 'application/json' },
): Promise<Posted> {
  const payload = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  const response = await app.inject({ method: 'POST', url, headers, payload });
  const isJson = String(response.headers['content-type']).startsWith('application/json');
  return {
    status: response.statusCode,
    json: isJson ? (JSON.parse(response.payload) as unknown) : undefined,
    text: response.payload,
    headers: response.headers,
  };
}

/** A GET request with fields as parameters of its URL. */
export async function getFrom(app: FastifyInstance, path: string, fields: object): Promise<Posted> {
  const query = Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, String(value)]));
  const response = await app.inject({ method: 'GET', url: path, query });
  const isJson = String(response.headers['content-type']).startsWith('application/json');
  return {
    status: response.statusCode,
    json: isJson ? (JSON.parse(response.payload) as unknown) : undefined,
    text: response.payload,
    headers: response.headers,
  };
}

/** Code, message and detail of an error body. */
export function errorOf(json: unknown): { code: string; message: string; detail: unknown } {
  const body = json as { detail: unknown; error: { code: string; message: string } };
  return { ...body.error, detail: body.detail };
}

/** Waits until `check` is true. Fails after 20 s, which allows for a busy machine. */
export async function eventually(check: () => boolean): Promise<void> {
  const deadline = performance.now() + 20_000;
  while (!check()) {
    if (performance.now() > deadline) throw new Error('the expected state was not reached within 20 s');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** The value of a metric, with its labels as in the text of /metrics. */
export async function metric(app: FastifyInstance, name: string): Promise<number> {
  const text = (await app.inject('/metrics')).payload;
  return Number(new RegExp(`^${name.replaceAll(/[{}]/g, '\\$&')} (.*)$`, 'm').exec(text)?.[1]);
}

/** Waits until a metric has the value. */
export async function untilMetric(app: FastifyInstance, name: string, value: number): Promise<void> {
  while ((await metric(app, name)) !== value) await new Promise((resolve) => setTimeout(resolve, 5));
}
