import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What Trawl scores at the start to find out the format. */
const TRIAL_TEXTS = ['a', 'b'];

/** A rerank server whose score is the inner product of two vectors that are already known. */
export interface VectorReranker {
  /** In the format of text-embeddings-inference. */
  readonly url: string;
  close(): void;
}

/**
 * Serves `POST /rerank` on the loopback address. No cross-encoder with trained weights was at hand for the figures, so an encoder's own
 * vectors reorder the passages that another search has found. A text without a vector is a 422.
 *
 * @param vectors of queries and passages, by their texts; of equal length.
 */
export async function serveVectorReranker(vectors: ReadonlyMap<string, Float32Array>): Promise<VectorReranker> {
  const known = new Map(vectors);
  const [any = new Float32Array()] = vectors.values();
  for (const text of TRIAL_TEXTS) if (!known.has(text)) known.set(text, any);
  const server = createServer((request, response) => {
    if (request.method !== 'POST') {
      response.writeHead(404).end();
      return;
    }
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const { query, texts } = JSON.parse(Buffer.concat(parts).toString()) as { query: string; texts: string[] };
      const found = [query, ...texts].map((text) => known.get(text));
      const missing = found.indexOf(undefined);
      const [of, ...passages] = found as Float32Array[];
      const reply =
        missing < 0
          ? passages.map((passage, index) => ({ index, score: innerProduct(of!, passage) }))
          : { error: `no vector of ${JSON.stringify([query, ...texts][missing]!.slice(0, 80))}` };
      response.writeHead(missing < 0 ? 200 : 422, { 'content-type': 'application/json' });
      response.end(JSON.stringify(reply));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/rerank`,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

function innerProduct(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}
