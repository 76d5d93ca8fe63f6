import { asTrawlError } from '../../src/errors.ts';
import { findIndex, indexProblems } from '../../src/opensearch/check-index.ts';
import { openOpenSearchIndex } from '../../src/opensearch/open-published-index.ts';
import { parseOpenSearchAddress, shownAddress } from '../../src/opensearch/opensearch-address.ts';
import { OpenSearchClient } from '../../src/opensearch/opensearch-client.ts';
import { storedRows } from '../../src/published/publication.ts';

export interface OpenSearchFacts {
  readonly address: string;
  /** Null if OpenSearch cannot be reached. */
  readonly version: string | null;
  /** The index's own name; null if there is no published index. */
  readonly index: string | null;
  /** Rows that were published. */
  readonly rows: number | null;
  /** green, yellow (copies of shards are missing) or red (shards are missing). */
  readonly health: string | null;
  /** Shards and copies of them that answer. */
  readonly activeShards: number | null;
  /** Median time of a search for 10 rows, in milliseconds; null if it cannot be searched. */
  readonly searchMs: number | null;
  /** What is missing, in sentences. */
  readonly problems: readonly string[];
}

const TRIALS = 5;

/** Says what an OpenSearch has of an index, and what is missing. Fails only for an address that cannot be parsed. */
export async function openSearchFacts(place: string): Promise<OpenSearchFacts> {
  const address = parseOpenSearchAddress(place);
  const facts = {
    address: shownAddress(address),
    version: null as string | null,
    index: null as string | null,
    rows: null as number | null,
    health: null as string | null,
    activeShards: null as number | null,
    searchMs: null as number | null,
  };
  let client: OpenSearchClient | undefined;
  try {
    client = await OpenSearchClient.connect(address);
    facts.version = await client.version();
    const found = await findIndex(client, address);
    facts.index = found.name;
    facts.rows = storedRows(found.publication);
    const { status, activeShards } = await client.health(found.name);
    facts.health = status;
    facts.activeShards = activeShards;
    const problems = (await indexProblems(client, found)).map(({ message }) => message);
    if (problems.length === 0) facts.searchMs = await trial(place);
    return { ...facts, problems };
  } catch (error) {
    return { ...facts, problems: [asTrawlError(error).message] };
  } finally {
    await client?.close();
  }
}

async function trial(place: string): Promise<number> {
  const published = await openOpenSearchIndex(place);
  const index = published.openVectors();
  try {
    const times: number[] = [];
    const queries = Float32Array.from({ length: index.dimension }, (_, j) => (j === 0 ? 1 : 0));
    for (let i = 0; i < TRIALS; i++) {
      const start = performance.now();
      await index.search({ queries, count: 1, k: 10 });
      times.push(performance.now() - start);
    }
    return times.sort((a, b) => a - b)[Math.floor(TRIALS / 2)]!;
  } finally {
    await index.close();
    await published.close();
  }
}

export function openSearchLines(facts: OpenSearchFacts): string[] {
  const { address, version, index, rows, health, activeShards, searchMs, problems } = facts;
  return [
    `OpenSearch      ${address}: ${version === null ? 'no answer' : `version ${version}`}`,
    ...(index === null
      ? []
      : [`  index         ${index}, ${rows} rows, health ${health}, ${activeShards} shards with copies`]),
    ...(searchMs === null ? [] : [`  search        ${searchMs.toFixed(1)} ms for 10 rows, one query at a time`]),
    ...(problems.length === 0
      ? ['  state         complete and ready']
      : problems.map((problem) => `  problem       ${problem}`)),
  ];
}
