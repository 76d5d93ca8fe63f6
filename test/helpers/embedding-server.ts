import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';

export const ENDPOINT_DIMENSION = 8;

export interface AskedEmbedding {
  readonly path: string;
  readonly texts: readonly string[];
  readonly body: Readonly<Record<string, unknown>>;
  readonly authorization: string | undefined;
}

export interface EmbeddingServerOptions {
  /** Words that the model reads of a text. Default: 600. */
  readonly limit?: number;
  /** Whether a longer text is refused with 400. Default: it is truncated. */
  readonly refusesLong?: boolean;
  /** Which routes it has. Default: OpenAI's. */
  readonly routes?: readonly ('openai' | 'tei')[];
  /** Pages by path, such as `/info`; the others are 404. */
  readonly pages?: Readonly<Record<string, unknown>>;
  /** Answers a request for a page itself if it returns true. */
  readonly page?: (path: string, response: ServerResponse) => boolean;
  /** Changes the vectors: another model. */
  readonly seed?: () => string;
  /** Numbers instead of base64, as LM Studio sends them. */
  readonly sendsNumbers?: boolean;
  /** The header in which TEI's route counts tokens. Default: their number. */
  readonly teiTokens?: string;
  /** Length of the vectors. Default: 1. */
  readonly length?: number;
  /** Answers a request itself if it returns true. `count` counts requests for vectors from 1. */
  readonly answer?: (
    asked: AskedEmbedding,
    count: number,
    response: ServerResponse,
    request: IncomingMessage,
  ) => boolean;
  /** Changes the reply. */
  readonly change?: (
    reply: { data: { index: number; embedding: unknown }[]; usage?: object },
    asked: AskedEmbedding,
  ) => unknown;
  /** Milliseconds before each answer. */
  readonly delayMs?: number;
}

export interface EmbeddingServer {
  readonly url: string;
  readonly asked: AskedEmbedding[];
  /** Requests that run now, and most at a time. */
  readonly running: { now: number; most: number };
}

/** The vector of a text: a hash of its first words. Texts with common words are near each other. */
export function endpointVector(text: string, { limit = 600, seed = '', length = 1 } = {}): Float32Array {
  const sum = new Float64Array(ENDPOINT_DIMENSION);
  for (const word of `${text}\u0001`.split(/(?<=\s)/).slice(0, limit)) {
    const hash = createHash('sha256')
      .update(seed + word)
      .digest();
    for (let i = 0; i < ENDPOINT_DIMENSION; i++) sum[i]! += hash.readInt32LE(4 * i) / 2 ** 31;
  }
  const norm = Math.hypot(...sum);
  return Float32Array.from(sum, (value) => (value / norm) * length);
}

/** A server with the routes of an embedding server. It keeps the requests of `asked` without those for pages. */
export async function embeddingServer(t: TestContext, options: EmbeddingServerOptions = {}): Promise<EmbeddingServer> {
  const { limit = 600, routes = ['openai'], pages = MODEL_PAGES, delayMs = 0, length = 1 } = options;
  const asked: AskedEmbedding[] = [];
  const running = { now: 0, most: 0 };
  const server = createServer((request, response) => {
    const path = request.url!;
    if (request.method === 'GET') {
      if (options.page?.(path, response) === true) return;
      const page = pages[path];
      response.writeHead(page === undefined ? 404 : 200).end(JSON.stringify(page ?? { error: 'not found' }));
      return;
    }
    const api = path.endsWith('/embed') ? 'tei' : 'openai';
    let text = '';
    request.setEncoding('utf8').on('data', (part: string) => (text += part));
    request.on('end', () => {
      const body = JSON.parse(text) as Record<string, unknown>;
      const texts = [body['input'] ?? body['inputs']].flat() as string[];
      const one: AskedEmbedding = { path, texts, body, authorization: request.headers.authorization };
      asked.push(one);
      running.most = Math.max(running.most, ++running.now);
      setTimeout(() => {
        running.now--;
        if (!routes.includes(api) || !/^\/(v1\/embeddings|embed)$/.test(path))
          return void response.writeHead(404).end('{}');
        if (options.answer?.(one, asked.length, response, request) === true) return;
        const words = texts.map((each) => each.split(/\s+/).length);
        if (options.refusesLong === true && words.some((count) => count > limit)) {
          return void response.writeHead(400).end('{"error":{"message":"private text is too long"}}');
        }
        const seed = options.seed?.() ?? '';
        const vectors = texts.map((each) => endpointVector(each, { limit, seed, length }));
        const data = vectors.map((vector, index) => ({
          object: 'embedding',
          index,
          embedding:
            options.sendsNumbers === true || body['encoding_format'] !== 'base64'
              ? [...vector]
              : Buffer.from(vector.buffer).toString('base64'),
        }));
        const tokens = words.reduce((sum, count) => sum + Math.min(limit, count), 0);
        if (api === 'tei') {
          response.setHeader('x-compute-tokens', options.teiTokens ?? String(tokens));
          return void response.end(JSON.stringify(vectors.map((vector) => [...vector])));
        }
        const reply = {
          object: 'list',
          data,
          model: body['model'],
          usage: { prompt_tokens: tokens, total_tokens: tokens },
        };
        response.end(JSON.stringify(options.change?.(reply, one) ?? reply));
      }, delayMs);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked, running };
}

/** Pages of a server with one model, as vLLM has them. */
const MODEL_PAGES: Readonly<Record<string, unknown>> = {
  '/v1/models': { object: 'list', data: [{ id: 'tiny-e5', object: 'model', owned_by: 'vllm', max_model_len: 600 }] },
};
