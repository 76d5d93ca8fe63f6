import type { TestContext } from 'node:test';
import type { EndpointEncoder } from '../../../src/encoder/endpoint/endpoint-encoder.ts';
import { type OpenEndpointOptions, openEndpoint } from '../../../src/encoder/endpoint/open-endpoint.ts';

/** An encoder that repeats requests at once and is closed after the test. */
export async function opened(t: TestContext, url: string, options: OpenEndpointOptions = {}): Promise<EndpointEncoder> {
  const encoder = await openEndpoint(url, { firstWaitMs: 1, ...options });
  t.after(() => encoder.close());
  return encoder;
}
