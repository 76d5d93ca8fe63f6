import { narrowedRetriever } from '../../retrieval/narrowed-retriever.ts';
import type { Retriever } from '../../retrieval/retriever.ts';
import type { RetrieverHolder } from '../indexes/retriever-holder.ts';
import { shedding } from '../limits/shedding.ts';
import type { SearchRoutes } from '../routes/dialects.ts';
import { indexNotFound } from './elasticsearch-error.ts';
import { fitsPattern } from './query/dsl-query.ts';

export interface IndexNames {
  /** Names and patterns with commas in between; undefined or `_all`: all indexes. */
  readonly names: string | undefined;
  /** Whether unknown names are left out instead of refused. */
  readonly ignoreUnavailable?: boolean;
}

/** @throws ElasticsearchError index_not_found_exception. */
export function indexesOf(
  holder: RetrieverHolder,
  { names, ignoreUnavailable = false }: IndexNames,
): readonly string[] {
  const known = holder.slots.map(({ name }) => name).sort();
  if (names === undefined || names === '_all' || names === '') return known;
  const found = names.split(',').flatMap((name) => {
    if (name.includes('*')) return known.filter((one) => fitsPattern(name, one));
    if (known.includes(name)) return [name];
    if (ignoreUnavailable) return [];
    throw indexNotFound(name);
  });
  return [...new Set(found)].sort();
}

/** Calls `use` with the retrievers of the indexes, which stay open until it has ended. */
export async function withIndexes<T>(
  { holder, config }: Pick<SearchRoutes, 'holder' | 'config'>,
  names: readonly string[],
  use: (retrievers: readonly Retriever[]) => Promise<T>,
): Promise<T> {
  const leases: ReturnType<RetrieverHolder['lease']>[] = [];
  try {
    for (const name of names) leases.push(holder.lease(name));
    // The filter of the address and its limits hold here, too.
    return await use(leases.map(({ retriever }) => shedding(narrowedRetriever(retriever, config.filter), config)));
  } finally {
    for (const lease of leases) lease.release();
  }
}
