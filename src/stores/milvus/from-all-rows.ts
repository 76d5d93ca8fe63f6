import { TrawlError } from '../../base/errors.ts';
import type { MilvusClient } from './milvus-client.ts';

export interface PublishedCollection {
  readonly collection: string;
  /** Rows that were published. */
  readonly rows: number;
}

/**
 * What `read` finds among all rows of the collection. For seconds after a query node ended, Milvus 2.3 answers with what the other nodes
 * find, as if it were everything. Its count lacks the same rows (docs/cluster.md), so the rows are counted beside `read` and after it.
 *
 * @throws TrawlError STORE_FAILED if they are not as many as were published.
 */
export async function fromAllRows<T>(
  client: MilvusClient,
  collection: PublishedCollection,
  read: () => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const whole = checkWhole(client, collection, signal);
  // If `read` fails, its error is the one to tell.
  whole.catch(() => undefined);
  const found = await read();
  await whole;
  await checkWhole(client, collection, signal);
  return found;
}

async function checkWhole(
  client: MilvusClient,
  { collection, rows }: PublishedCollection,
  signal: AbortSignal | undefined,
): Promise<void> {
  const found = await client.countOf(collection, { filter: '', consistency: 'Bounded', signal });
  if (found === rows) return;
  throw new TrawlError(
    'STORE_FAILED',
    `Milvus at ${client.server} finds ${found} rows in ${collection}, but ${rows} were published. If a query node has ended, they are found again once another node has loaded them; \`trawl doctor\` says what is missing.`,
  );
}
