import { asTrawlError } from '../../src/base/errors.ts';
import { formatBytes, formatCount } from '../../src/base/format.ts';
import { collectionProblems, findCollection } from '../../src/stores/milvus/check-collection.ts';
import { filesCollection } from '../../src/stores/milvus/collection-files.ts';
import { parseMilvusAddress, shownAddress } from '../../src/stores/milvus/milvus-address.ts';
import { MilvusClient } from '../../src/stores/milvus/milvus-client.ts';
import type { QueryNodeFacts, SegmentFacts } from '../../src/stores/milvus/milvus-facts.ts';
import { timedSearch } from './timed-search.ts';

/** A query node with the rows of the index that it holds. */
interface NodeOfIndex extends QueryNodeFacts {
  readonly rows: number;
}

export interface MilvusFacts {
  /** Without user and password. */
  readonly address: string;
  /** Null if Milvus cannot be reached. */
  readonly version: string | null;
  /** The collection's own name; null if there is no published index. */
  readonly collection: string | null;
  readonly indexType: string | null;
  readonly rows: number | null;
  readonly segments: number | null;
  /** Copies of each row, and of the record of the index, on different query nodes; null if that is unknown. */
  readonly copies: number | null;
  /** The query nodes of Milvus; null if this user is not told. */
  readonly queryNodes: readonly NodeOfIndex[] | null;
  /** Median time of a search for 10 rows, in milliseconds; null if it cannot be searched. */
  readonly searchMs: number | null;
  /** What is missing, in sentences. */
  readonly problems: readonly string[];
}

/** Says what a Milvus has of an index, and what is missing. Fails only for an address that cannot be parsed. */
export async function milvusFacts(place: string): Promise<MilvusFacts> {
  const address = parseMilvusAddress(place);
  const facts = {
    address: shownAddress(address),
    version: null as string | null,
    collection: null as string | null,
    indexType: null as string | null,
    rows: null as number | null,
    segments: null as number | null,
    copies: null as number | null,
    queryNodes: null as readonly NodeOfIndex[] | null,
    searchMs: null as number | null,
  };
  let client: MilvusClient | undefined;
  try {
    client = await MilvusClient.connect(address);
    facts.version = await client.version();
    const found = await findCollection(client, address);
    facts.collection = found.name;
    facts.indexType = found.publication.indexType;
    const problems = (await collectionProblems(client, found)).map(({ message }) => message);
    facts.rows = await client.countOf(found.name, { filter: '', consistency: 'Strong' }).catch(() => null);
    const segments = await client.segments(found.name).catch(() => []);
    facts.segments = segments.length;
    // The record and the columns are in a collection of their own, without which no server can open the index.
    const ofFiles = await client.segments(filesCollection(found.name)).catch(() => []);
    facts.copies = copiesOf([...segments, ...ofFiles]);
    const nodes = await client.queryNodes().catch(() => []);
    if (nodes.length > 0) facts.queryNodes = nodes.map((node) => ({ ...node, rows: rowsOn(node.id, segments) }));
    if (problems.length === 0) facts.searchMs = await trial(place);
    return { ...facts, problems };
  } catch (error) {
    return { ...facts, problems: [asTrawlError(error).message] };
  } finally {
    await client?.close();
  }
}

function copiesOf(segments: readonly SegmentFacts[]): number | null {
  const held = segments.filter(({ rows, nodes }) => rows > 0 && nodes.length > 0).map(({ nodes }) => nodes.length);
  return held.length === 0 ? null : Math.min(...held);
}

function rowsOn(node: number, segments: readonly SegmentFacts[]): number {
  return segments.reduce((sum, { rows, nodes }) => sum + (nodes.includes(node) ? rows : 0), 0);
}

async function trial(place: string): Promise<number> {
  const { openPublishedIndex } = await import('../../src/stores/milvus/open-published-index.ts');
  const published = await openPublishedIndex(place);
  try {
    return await timedSearch(published);
  } finally {
    await published.close();
  }
}

export function milvusLines({
  address,
  version,
  collection,
  indexType,
  rows,
  segments,
  copies,
  queryNodes,
  searchMs,
  problems,
}: MilvusFacts): string[] {
  return [
    `Milvus          ${address}: ${version === null ? 'no answer' : `version ${version}`}`,
    ...(collection === null
      ? []
      : [`  collection    ${collection}, ${indexType}, ${rows ?? '?'} rows in ${segments} loaded segments`]),
    ...(copies === null ? [] : [`  copies        ${copies} of each row and of the record of the index`]),
    ...(queryNodes ?? []).map(
      (node) =>
        `  query node    ${node.id}: ${formatCount(node.rows)} rows, ${formatBytes(node.usedBytes)} of ${formatBytes(node.memoryBytes)} of memory used`,
    ),
    ...(searchMs === null ? [] : [`  search        ${searchMs.toFixed(1)} ms for 10 rows, one query at a time`]),
    ...(problems.length === 0
      ? ['  state         complete and ready']
      : problems.map((problem) => `  problem       ${problem}`)),
  ];
}
