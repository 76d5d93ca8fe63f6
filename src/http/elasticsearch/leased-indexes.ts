import type { Retriever } from '../../retrieval/retriever.ts';
import type { RetrieverHolder } from '../indexes/retriever-holder.ts';
import { retrieverFor } from '../indexes/view-choice.ts';
import { indexNotFound } from './elasticsearch-error.ts';
import type { ElasticsearchRequest } from './elasticsearch-route.ts';
import { fitsPattern } from './query/dsl-query.ts';

export interface IndexNames {
  /** Names of indexes and groups, and patterns, with commas in between; undefined, `_all` or `*`: all indexes. */
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
  // A group is an alias of its indexes.
  const all = [...known.map((name) => [name, [name]] as const), ...holder.groups];
  const fitting = (pattern: string): string[] =>
    all.flatMap(([name, members]) => (fitsPattern(pattern, name) ? members : []));
  const found = new Set<string>();
  let hasPattern = false;
  for (const name of names.split(',')) {
    const pattern = name === '_all' ? '*' : name;
    // After a pattern, `-name` leaves indexes out.
    if (hasPattern && pattern.startsWith('-')) {
      for (const left of fitting(pattern.slice(1))) found.delete(left);
      continue;
    }
    const members = fitting(pattern);
    hasPattern ||= pattern.includes('*');
    if (members.length === 0 && !pattern.includes('*') && !ignoreUnavailable) throw indexNotFound(name);
    for (const member of members) found.add(member);
  }
  return [...found].sort();
}

/** Calls `use` with the retrievers of the indexes, which stay open until it has ended. */
export async function withIndexes<T>(
  { request, routes: { holder, config } }: Pick<ElasticsearchRequest, 'request' | 'routes'>,
  names: readonly string[],
  use: (retrievers: readonly Retriever[]) => Promise<T>,
): Promise<T> {
  const leases: ReturnType<RetrieverHolder['lease']>[] = [];
  try {
    for (const name of names) leases.push(holder.lease(name));
    return await use(leases.map(({ retriever }) => retrieverFor(request, retriever, config)));
  } finally {
    for (const lease of leases) lease.release();
  }
}
