import assert from 'node:assert/strict';
import { type Addresses, ask, type DialectRequest, dialectRequests } from './dialect-requests.ts';
import { comparable, type WatchedRequest } from './watched-load.ts';

/** What the examples of the dialects name in the sample corpus, and what is in this one. */
const REPLACEMENTS = { 's-0001': '0', 's-0003': '2', 'Brooklyn Bridge': 'Evan Morris' };

/**
 * Requests of `dialectRequests` that get no answer, whatever the store. `dense`: from an index without words. `words`: from one with words and Elasticsearch's
 * k1 and b.
 */
export const UNANSWERED: Readonly<Record<'dense' | 'words', readonly string[]>> = {
  dense: ['elasticsearch /wiki/_search: 400', 'elasticsearch /wiki/_search: 400', 'elasticsearch /wiki/_search: 400'],
  words: [],
};

/** Requests with the replies of the folder's server, which have to be answers. */
export async function expectedReplies(
  folder: Addresses,
  requests: readonly DialectRequest[],
): Promise<WatchedRequest[]> {
  const watched: WatchedRequest[] = [];
  for (const request of requests) {
    const { status, text } = await ask(folder, request);
    assert.equal(status, 200, `${request.path}: ${text}`);
    watched.push({ request, expected: comparable(text) });
  }
  return watched;
}

/** Requests of every dialect, asked of two servers. */
export interface ComparedDialects {
  readonly requests: number;
  readonly answered: readonly WatchedRequest[];
  /** Requests that got no answer, as `DIALECT PATH: STATUS CODE`. */
  readonly refused: readonly string[];
}

/** Asks the folder's server and the store's the same requests of every dialect, and compares status and reply of each. */
export async function compareDialects(
  folder: Addresses,
  store: Addresses,
  batches: readonly (readonly string[])[],
): Promise<ComparedDialects> {
  const requests = dialectRequests(batches, REPLACEMENTS);
  const answered: WatchedRequest[] = [];
  const refused: string[] = [];
  for (const request of requests) {
    const [expected, found] = await Promise.all([ask(folder, request), ask(store, request)]);
    const { dialect, path, body } = request;
    const shown = `${dialect} ${path} ${JSON.stringify(body)}: ${found.text.slice(0, 500)}`;
    assert.equal(found.status, expected.status, shown);
    assert.equal(comparable(found.text), comparable(expected.text), shown);
    if (expected.status === 200) answered.push({ request, expected: comparable(expected.text) });
    else refused.push(`${dialect} ${path}: ${expected.status}`);
  }
  return { requests: requests.length, answered, refused };
}
