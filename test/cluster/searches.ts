import { type DialectRequest, post } from './dialect-requests.ts';

/** Searches of one query each, every fifth with a filter. */
export function singleSearches(queries: readonly string[]): DialectRequest[] {
  return queries.map((query, i) =>
    i % 5 === 4
      ? post('/v1/search', { queries: [query], k: 10, filter: 'part < 3' })
      : post('/retrieve', { queries: [query], topk: 10, return_scores: true }),
  );
}

/** Searches of one query each, in a mode. */
export function searchesInMode(queries: readonly string[], mode: string): DialectRequest[] {
  return queries.map((query) => post('/v1/search', { queries: [query], k: 10, mode }));
}

/** Searches of several queries each. */
export function batchSearches(queries: readonly string[], batch: number): DialectRequest[] {
  const requests: DialectRequest[] = [];
  for (let at = 0; at < queries.length; at += batch) {
    requests.push(post('/retrieve', { queries: queries.slice(at, at + batch), topk: 10, return_scores: true }));
  }
  return requests;
}
