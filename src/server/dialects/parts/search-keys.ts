import { field, isJsonObject } from './read-request.ts';

/**
 * The formats of POST /search, with keys that only their own clients send. A body is in the first format that has one of its keys;
 * `query` alone is in none.
 */
const KEYS = {
  ultrarag: ['query_list'],
  serper: ['q'],
  research: ['top_n', 'return_score'],
  foldagent: ['k'],
  openresearcher: ['topn'],
  'massive-serve': ['n_docs', 'queries', 'backend', 'nprobe'],
} as const;

type SearchFormat = keyof typeof KEYS;

/** The `claims` of a dialect of POST /search. A preferred dialect also claims a body without any of the keys. */
export function claimsKeysOf(format: SearchFormat): (body: unknown, named: boolean) => boolean {
  return (body, named) => {
    if (!isJsonObject(body)) return false;
    const found = (Object.keys(KEYS) as SearchFormat[]).find((each) =>
      KEYS[each].some((key) => field(body, key) !== undefined),
    );
    return found === format || (found === undefined && named);
  };
}
