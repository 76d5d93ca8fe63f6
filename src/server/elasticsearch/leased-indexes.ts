import type { Retriever } from '../../search/retriever.ts';
import { chosenIndex } from '../indexes/index-choice.ts';
import type { IndexRegistry } from '../indexes/index-registry.ts';
import { hasViewsOf, retrieverFor } from '../indexes/view-choice.ts';
import { indexNotFound } from './elasticsearch-error.ts';
import type { ElasticsearchRequest } from './elasticsearch-route.ts';
import { fitsPattern } from './query/dsl-query.ts';

export interface IndexNames {
  /** Names of indexes and groups, and patterns, with commas in between; undefined, `_all` or `*`: all indexes. */
  readonly names: string | undefined;
  /** Whether unknown names are left out instead of refused. */
  readonly ignoreUnavailable: boolean;
}

/** The indexes that a request names in its path, or elsewhere as on the other routes of the server. */
export function requestedIndexes({ request, path, parameters }: ElasticsearchRequest): IndexNames {
  return { names: path.index ?? chosenIndex(request), ignoreUnavailable: parameters.ignore_unavailable === 'true' };
}

/**
 * The names of indexes, in their order.
 *
 * @param isUsable whether patterns and `_all` find an index. One that is named and is not usable is refused when it is used.
 * @throws ElasticsearchError index_not_found_exception.
 */
function indexesOf(
  holder: IndexRegistry,
  { names, ignoreUnavailable }: IndexNames,
  isUsable: (name: string) => boolean = () => true,
): readonly string[] {
  const known = holder.slots.map(({ name }) => name).sort();
  if (names === undefined || names === '_all' || names === '') return known.filter(isUsable);
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
    const isPattern = pattern.includes('*');
    hasPattern ||= isPattern;
    const members = fitting(pattern);
    if (members.length === 0 && !isPattern && !ignoreUnavailable) throw indexNotFound(name);
    for (const member of members) if (isUsable(member) || !(isPattern || ignoreUnavailable)) found.add(member);
  }
  return [...found].sort();
}

/** The names of the indexes that a request names in its path, in their order. @throws ElasticsearchError index_not_found_exception. */
export function indexesInPath({ routes, path, parameters }: ElasticsearchRequest): readonly string[] {
  const ignoreUnavailable = parameters.ignore_unavailable === 'true';
  return indexesOf(routes.holder, { names: path.index, ignoreUnavailable });
}

/** The indexes that a request searches. Patterns and `_all` leave out those that do not have its views. */
export function searchedIndexes(
  { request, routes: { holder, config } }: ElasticsearchRequest,
  names: IndexNames,
): readonly string[] {
  return indexesOf(holder, names, (name) => {
    const info = holder.slot(name).retriever?.info;
    return info === undefined || hasViewsOf(request, info, config);
  });
}

/** Calls `use` with the retrievers of the indexes, which stay open until it has ended. */
export async function withIndexes<T>(
  { request, routes: { holder, config } }: ElasticsearchRequest,
  names: readonly string[],
  use: (retrievers: readonly Retriever[]) => Promise<T>,
): Promise<T> {
  const leases: ReturnType<IndexRegistry['lease']>[] = [];
  try {
    for (const name of names) leases.push(holder.lease(name));
    return await use(leases.map(({ retriever }) => retrieverFor(request, retriever, config)));
  } finally {
    for (const lease of leases) lease.release();
  }
}
