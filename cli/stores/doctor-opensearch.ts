import { asTrawlError } from '../../src/base/errors.ts';
import { type FoundIndex, findIndex, indexProblems } from '../../src/stores/opensearch/check-index.ts';
import { openFoundIndex } from '../../src/stores/opensearch/open-published-index.ts';
import { parseOpenSearchAddress, shownAddress } from '../../src/stores/opensearch/opensearch-address.ts';
import { type IndexHealth, OpenSearchClient } from '../../src/stores/opensearch/opensearch-client.ts';
import { storedRows } from '../../src/stores/published/publication.ts';
import { timedSearch } from './timed-search.ts';

export interface OpenSearchFacts {
  readonly address: string;
  /** Null if OpenSearch cannot be reached. */
  readonly version: string | null;
  readonly cluster: string | null;
  /** Nodes that have rows. */
  readonly dataNodes: number | null;
  /** The index's own name; null if there is no published index. */
  readonly index: string | null;
  /** Rows that were published. */
  readonly rows: number | null;
  /** green, yellow (copies of shards are missing) or red (shards are missing). */
  readonly health: string | null;
  readonly shards: number | null;
  /** Copies of each shard that the index has, itself included. */
  readonly copies: number | null;
  /** Shards and copies of them that answer. */
  readonly activeShards: number | null;
  /** The modes in which it can be searched. */
  readonly modes: readonly string[] | null;
  /** Median time of a search for 10 rows, in milliseconds; null if it cannot be searched. */
  readonly searchMs: number | null;
  /** What is missing, in sentences. */
  readonly problems: readonly string[];
}

/** Says what an OpenSearch has of an index, and what is missing. Fails only for an address that cannot be parsed. */
export async function openSearchFacts(place: string): Promise<OpenSearchFacts> {
  const address = parseOpenSearchAddress(place);
  const facts = {
    address: shownAddress(address),
    version: null as string | null,
    cluster: null as string | null,
    dataNodes: null as number | null,
    index: null as string | null,
    rows: null as number | null,
    health: null as string | null,
    shards: null as number | null,
    copies: null as number | null,
    activeShards: null as number | null,
    modes: null as readonly string[] | null,
    searchMs: null as number | null,
  };
  let client: OpenSearchClient | undefined;
  try {
    client = await OpenSearchClient.connect(address);
    facts.version = await client.version();
    const cluster = await client.clusterHealth();
    facts.cluster = cluster.name;
    facts.dataNodes = cluster.dataNodes;
    const found = await findIndex(client, address);
    const { settings } = found.facts;
    facts.index = found.name;
    facts.rows = storedRows(found.publication);
    facts.shards = Number(settings.number_of_shards);
    facts.copies = Number(settings.number_of_replicas) + 1;
    facts.modes = found.publication.words === undefined ? ['dense'] : ['dense', 'bm25', 'hybrid'];
    const health = await client.health(found.name);
    facts.health = health.status;
    facts.activeShards = health.activeShards;
    const problems = (await indexProblems(client, found)).map(({ message }) => message);
    // With them, a search would say the same.
    if (problems.length === 0) facts.searchMs = await trial(client, found);
    return { ...facts, problems: [...problems, ...risks(found, health, facts.copies)] };
  } catch (error) {
    return { ...facts, problems: [asTrawlError(error).message] };
  } finally {
    await client?.close();
  }
}

/** What does not change an answer now, but may later. */
function risks(
  { name, facts }: FoundIndex,
  { status, missingShards, dataNodes }: IndexHealth,
  copies: number,
): string[] {
  const found: string[] = [];
  if (status === 'yellow') {
    const why =
      dataNodes < copies
        ? `The index ${name} has ${copies} copies, which need as many data nodes, but the cluster has ${dataNodes}. Start more, or publish with --replicas ${dataNodes}.`
        : 'OpenSearch restores them by itself if it has room; GET /_cluster/allocation/explain says why it does not.';
    found.push(`${missingShards} copies of shards are missing, so that the loss of a node may stop searches. ${why}`);
  }
  const { blocks } = facts.settings as { blocks?: { write?: unknown } };
  if (String(blocks?.write) !== 'true') {
    found.push(
      `The index ${name} can be written to. A change would make answers wrong: set index.blocks.write to true, and run trawl verify.`,
    );
  }
  return found;
}

async function trial(client: OpenSearchClient, found: FoundIndex): Promise<number> {
  const published = await openFoundIndex(client, found, async () => undefined);
  try {
    return await timedSearch(published);
  } finally {
    await published.close();
  }
}

export function openSearchLines(facts: OpenSearchFacts): string[] {
  const { address, version, cluster, dataNodes, index, rows, health, shards, copies, activeShards, modes } = facts;
  const { searchMs, problems } = facts;
  return [
    `OpenSearch      ${address}: ${version === null ? 'no answer' : `version ${version}`}`,
    ...(cluster === null ? [] : [`  cluster       ${cluster}, data nodes: ${dataNodes}`]),
    ...(index === null
      ? []
      : [
          `  index         ${index}, ${rows} rows, health ${health}, ${activeShards} of ${shards! * copies!} shards with copies`,
          `  modes         ${modes!.join(', ')}`,
        ]),
    ...(searchMs === null ? [] : [`  search        ${searchMs.toFixed(1)} ms for 10 rows, one query at a time`]),
    ...(problems.length === 0
      ? ['  state         complete and ready']
      : problems.map((problem) => `  problem       ${problem}`)),
  ];
}
