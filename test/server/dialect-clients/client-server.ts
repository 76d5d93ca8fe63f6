import type { TestContext } from 'node:test';
import { TrawlError } from '../../../src/base/errors.ts';
import { FakeRetriever } from '../../helpers/fake-retriever.ts';
import { serve } from '../build.ts';

/**
 * Clients that handle responses like the projects' own: which fields they read, what they retry and how they treat errors,
 * but without pauses between retries.
 */

export const DOCUMENTS = ['Alpha', 'Beta', 'Gamma', 'Delta', 'Epsilon', 'Zeta'].map((title, i) =>
  JSON.stringify({ id: String(i), contents: `"${title}"\nText of ${title}.`, url: `https://example.org/${i}` }),
);

/** A server whose first `failures` responses are errors. */
export async function flaky(t: TestContext, failures: number, dialects: readonly string[] = []): Promise<Flaky> {
  let left = failures;
  let asked = 0;
  const retriever = new FakeRetriever({
    documents: DOCUMENTS,
    before() {
      asked++;
      if (left-- > 0) throw new TrawlError('OVERLOADED', 'The queue is full.');
    },
  });
  const { url } = await serve(t, retriever, { dialects });
  return { url, asked: () => asked };
}

interface Flaky {
  readonly url: string;
  asked(): number;
}

export function postJson(url: string, body: unknown): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
}

/** Python's `.json()["a"]`: a missing key is an error. */
export function key<T>(value: unknown, name: string | number): T {
  const found = (value as Record<string | number, T>)[name];
  if (found === undefined) throw new Error(`KeyError: ${name}`);
  return found;
}
