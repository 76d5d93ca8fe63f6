import { asTrawlError } from '../../src/base/errors.ts';
import { formatBytes, formatCount } from '../../src/base/format.ts';
import { parseMilvusAddress, shownAddress } from '../../src/stores/milvus/milvus-address.ts';
import { MilvusClient, type QueryNodeFacts, type SegmentFacts } from '../../src/stores/milvus/milvus-client.ts';
import {
  collectionProblems,
  findCollection,
  openPublishedIndex,
} from '../../src/stores/milvus/open-published-index.ts';
import { filesName } from '../../src/stores/published/find-publication.ts';
import { lines } from '../output/lines.ts';
import { stateLines, timedSearch } from './timed-search.ts';

/** Says what a Milvus has of an index, and what is missing. Fails only for an address that cannot be parsed. */
export async function milvusFacts(place: string) {
  const address = parseMilvusAddress(place);
  const facts = {
    /** Without user and password. */
    address: shownAddress(address),
    /** Null if Milvus cannot be reached. */
    version: null as string | null,
    /** The collection's own name; null without a published index. */
    collection: null as string | null,
    indexType: null as string | null,
    rows: null as number | null,
    segments: null as number | null,
    /** Copies of each row, and of the record of the index, on different query nodes; null if that is unknown. */
    copies: null as number | null,
    /** The query nodes of Milvus with the rows of the index that each holds; null if this user is not told. */
    queryNodes: null as readonly (QueryNodeFacts & { readonly rows: number })[] | null,
    /** Median time of a search for 10 rows, in milliseconds; null if it cannot be searched. */
    searchMs: null as number | null,
    /** What is missing, in sentences. */
    problems: [] as readonly string[],
  };
  let client: MilvusClient | undefined;
  try {
    client = await MilvusClient.connect(address);
    facts.version = await client.version();
    const found = await findCollection(client, address);
    facts.collection = found.name;
    facts.indexType = found.publication.indexType;
    facts.problems = (await collectionProblems(client, found)).map(({ message }) => message);
    facts.rows = await client.countOf(found.name, { filter: '', consistency: 'Strong' }).catch(() => null);
    const segments = await client.segments(found.name).catch(() => []);
    facts.segments = segments.length;
    // The record and the columns are in a collection of their own, without which no server can open the index.
    const ofFiles = await client.segments(filesName(found.name)).catch(() => []);
    facts.copies = copiesOf([...segments, ...ofFiles]);
    const nodes = await client.queryNodes().catch(() => []);
    if (nodes.length > 0) facts.queryNodes = nodes.map((node) => ({ ...node, rows: rowsOn(node.id, segments) }));
    if (facts.problems.length === 0) facts.searchMs = await timedSearch(openPublishedIndex(place));
  } catch (error) {
    facts.problems = [asTrawlError(error).message];
  } finally {
    await client?.close();
  }
  return facts;
}

function copiesOf(segments: readonly SegmentFacts[]): number | null {
  const held = segments.filter(({ rows, nodes }) => rows > 0 && nodes.length > 0).map(({ nodes }) => nodes.length);
  return held.length === 0 ? null : Math.min(...held);
}

function rowsOn(node: number, segments: readonly SegmentFacts[]): number {
  return segments.reduce((sum, { rows, nodes }) => sum + (nodes.includes(node) ? rows : 0), 0);
}

export function milvusLines(facts: Awaited<ReturnType<typeof milvusFacts>>): string[] {
  const { address, version, collection, indexType, rows, segments, copies, queryNodes } = facts;
  return lines(
    `Milvus          ${address}: ${version === null ? 'no answer' : `version ${version}`}`,
    collection !== null &&
      `  collection    ${collection}, ${indexType}, ${rows ?? '?'} rows in ${segments} loaded segments`,
    copies !== null && `  copies        ${copies} of each row and of the record of the index`,
    ...(queryNodes ?? []).map(
      (node) =>
        `  query node    ${node.id}: ${formatCount(node.rows)} rows, ${formatBytes(node.usedBytes)} of ${formatBytes(node.memoryBytes)} of memory used`,
    ),
    ...stateLines(facts),
  );
}
