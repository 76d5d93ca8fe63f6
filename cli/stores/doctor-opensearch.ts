import { asTrawlError } from '../../src/base/errors.ts';
import {
  type FoundIndex,
  findIndex,
  indexProblems,
  openFoundIndex,
} from '../../src/stores/opensearch/open-published-index.ts';
import { parseOpenSearchAddress, shownAddress } from '../../src/stores/opensearch/opensearch-address.ts';
import { type IndexHealth, OpenSearchClient } from '../../src/stores/opensearch/opensearch-client.ts';
import { storedRows } from '../../src/stores/published/publication.ts';
import { lines } from '../output/lines.ts';
import { stateLines, timedSearch } from './timed-search.ts';

/** Says what an OpenSearch has of an index, and what is missing. Fails only for an address that cannot be parsed. */
export async function openSearchFacts(place: string) {
  const address = parseOpenSearchAddress(place);
  const facts = {
    address: shownAddress(address),
    /** Null if OpenSearch cannot be reached. */
    version: null as string | null,
    cluster: null as string | null,
    /** Nodes that have rows. */
    dataNodes: null as number | null,
    /** The index's own name; null without a published index. */
    index: null as string | null,
    /** Rows that were published. */
    rows: null as number | null,
    /** green, yellow (copies of shards are missing) or red (shards are missing). */
    health: null as string | null,
    shards: null as number | null,
    /** Copies of each shard that the index has, itself included. */
    copies: null as number | null,
    /** Shards and copies of them that answer. */
    activeShards: null as number | null,
    /** The modes in which it can be searched. */
    modes: null as readonly string[] | null,
    /** Median time of a search for 10 rows, in milliseconds; null if it cannot be searched. */
    searchMs: null as number | null,
    /** What is missing, in sentences. */
    problems: [] as readonly string[],
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
    if (problems.length === 0) facts.searchMs = await timedSearch(openFoundIndex(client, found, async () => undefined));
    facts.problems = [...problems, ...risks(found, health, facts.copies)];
  } catch (error) {
    facts.problems = [asTrawlError(error).message];
  } finally {
    await client?.close();
  }
  return facts;
}

/** What does not change an answer now, but may later. */
function risks({ name, facts }: FoundIndex, { status, missingShards, dataNodes }: IndexHealth, copies: number) {
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

export function openSearchLines(facts: Awaited<ReturnType<typeof openSearchFacts>>): string[] {
  const { address, version, cluster, dataNodes, index, rows, health, shards, copies, activeShards, modes } = facts;
  return lines(
    `OpenSearch      ${address}: ${version === null ? 'no answer' : `version ${version}`}`,
    cluster !== null && `  cluster       ${cluster}, data nodes: ${dataNodes}`,
    index !== null &&
      `  index         ${index}, ${rows} rows, health ${health}, ${activeShards} of ${shards! * copies!} shards with copies`,
    modes !== null && `  modes         ${modes.join(', ')}`,
    ...stateLines(facts),
  );
}
