import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { SyntheticVectors } from '../vectors/synthetic-vectors.ts';
import type { VectorBasis } from '../vectors/vector-basis.ts';

export interface VectorEndpoint {
  readonly url: string;
  close(): void;
}

/** The name that the endpoint gives its model. By it Trawl puts the prefixes of E5 in front of texts. */
const ENDPOINT_MODEL = 'vectors-like-e5';

/** The text whose vector is the held-out vector `number` of the stream of queries. */
export function queryText(number: number): string {
  return `query ${number}`;
}

/** Numbers of other texts, such as the probes of an endpoint, start here. */
const OTHER_TEXTS = 2 ** 30;

/**
 * An embedding server (OpenAI's route) without a model: the vector of `queryText(i)` is the held-out vector i of the synthetic
 * rows' distribution, in float32; that of any other text is one that its hash chooses.
 */
export async function openVectorEndpoint(basis: VectorBasis, seed: number): Promise<VectorEndpoint> {
  const vectors = new SyntheticVectors(basis, { seed, float16: false });
  const numberOf = (text: string): number => {
    const [, number] = /(?:^|: )query (\d+)$/.exec(text) ?? [];
    return number === undefined
      ? OTHER_TEXTS + (createHash('sha256').update(text).digest().readUInt32LE(0) >>> 2)
      : Number(number);
  };
  const embeddingOf = (text: string): string => {
    const vector = new Float32Array(basis.dimension);
    vectors.fill('queries', numberOf(text), 1, vector);
    return Buffer.from(vector.buffer).toString('base64');
  };
  const server = createServer((request, response) => {
    const reply = (status: number, body: unknown) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    if (request.url === '/v1/models') {
      return void reply(200, { object: 'list', data: [{ id: ENDPOINT_MODEL, object: 'model', max_model_len: 512 }] });
    }
    if (request.url !== '/v1/embeddings') return void reply(404, { error: 'not found' });
    buffer(request).then(
      (body) => {
        const { input, encoding_format: format } = JSON.parse(body.toString()) as Record<string, unknown>;
        const texts = [input].flat() as string[];
        const data = texts.map(embeddingOf).map((text, index) => ({
          object: 'embedding',
          index,
          embedding:
            format === 'base64' ? text : [...new Float32Array(Uint8Array.from(Buffer.from(text, 'base64')).buffer)],
        }));
        reply(200, { object: 'list', model: ENDPOINT_MODEL, data, usage: { prompt_tokens: texts.length } });
      },
      () => response.destroy(),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
