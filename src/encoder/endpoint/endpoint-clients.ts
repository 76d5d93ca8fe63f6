import { EndpointClient } from './endpoint-client.ts';
import { parseEndpoints } from './endpoint-facts.ts';
import type { EndpointOptions } from './endpoint-options.ts';

/** One encoder's use of a client. */
export interface ClientLease {
  readonly client: EndpointClient;
  /** The last release cancels the requests. Call it once. */
  release(): void;
}

interface SharedClient {
  readonly client: EndpointClient;
  users: number;
}

/**
 * The clients of a server's endpoints. Encoders with the same addresses, key, model and limits share a client, so that the bound on
 * requests holds for all indexes together, and the probes are embedded once for them.
 */
export class EndpointClients {
  readonly #shared = new Map<string, SharedClient>();

  /** @throws TrawlError CONFIG_INVALID for an address that is not valid. */
  lease(text: string, options: EndpointOptions): ClientLease {
    const addresses = parseEndpoints(text);
    const { apiKey, model, requests, timeoutMs, attempts, firstWaitMs, maxWaitMs } = options;
    const urls = addresses.map(({ routes }) => routes);
    const key = JSON.stringify([urls, apiKey, model, requests, timeoutMs, attempts, firstWaitMs, maxWaitMs]);
    const shared = this.#shared.get(key) ?? { client: new EndpointClient(addresses, options), users: 0 };
    this.#shared.set(key, shared);
    shared.users++;
    return {
      client: shared.client,
      release: () => {
        shared.users--;
        if (shared.users > 0) return;
        this.#shared.delete(key);
        shared.client.close();
      },
    };
  }
}
