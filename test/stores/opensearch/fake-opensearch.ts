import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseOpenSearchAddress } from '../../../src/stores/opensearch/opensearch-address.ts';
import { OpenSearchClient } from '../../../src/stores/opensearch/opensearch-client.ts';

export interface FakeRequest {
  readonly method: string;
  readonly path: string;
  readonly body: string;
  readonly headers: IncomingHttpHeaders;
}

/** A reply: its status and body, or something that ends the connection in its own way. */
export type FakeReply = { readonly status?: number; readonly body: unknown } | ((response: ServerResponse) => void);

export const VERSION_REPLY = { version: { distribution: 'opensearch', number: '2.19.1' } };

/** A complete reply to one search, with changes. */
export function searchReply(changes: object = {}, shards: object = {}): object {
  return {
    timed_out: false,
    _shards: { total: 2, successful: 2, skipped: 0, failed: 0, ...shards },
    hits: { total: { value: 0, relation: 'eq' }, hits: [] },
    ...changes,
  };
}

/** A server that answers as a test says, on the loopback address. It says itself that it is OpenSearch. */
export class FakeOpenSearch {
  readonly port: number;
  readonly requests: FakeRequest[] = [];
  readonly #end: () => void;

  private constructor(port: number, end: () => void) {
    this.port = port;
    this.#end = end;
  }

  static async start(
    t: { after(end: () => void): void },
    answer: (request: FakeRequest, attempt: number) => FakeReply,
  ): Promise<FakeOpenSearch> {
    const attempts = new Map<string, number>();
    const server = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const { method = '', url = '', headers } = request;
      const got = { method, path: url, body: Buffer.concat(chunks).toString(), headers };
      fake.requests.push(got);
      const attempt = attempts.get(url) ?? 0;
      attempts.set(url, attempt + 1);
      const reply = answer(got, attempt);
      if (typeof reply === 'function') return reply(response);
      const text = typeof reply.body === 'string' ? reply.body : JSON.stringify(reply.body);
      response.writeHead(reply.status ?? 200, { 'content-type': 'application/json' }).end(text);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const fake = new FakeOpenSearch((server.address() as AddressInfo).port, () => {
      server.close();
      server.closeAllConnections();
    });
    t.after(() => fake.#end());
    return fake;
  }

  address(index: string): string {
    return `opensearch://127.0.0.1:${this.port}/${index}`;
  }

  async client(t: { after(end: () => Promise<void>): void }): Promise<OpenSearchClient> {
    const client = await OpenSearchClient.connect(parseOpenSearchAddress(this.address('any')));
    t.after(() => client.close());
    return client;
  }

  /** Requests of a path. */
  count(path: string): number {
    return this.requests.filter((request) => request.path === path).length;
  }
}
