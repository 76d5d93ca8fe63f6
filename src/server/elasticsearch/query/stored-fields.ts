import { isObject } from '../../../base/objects.ts';
import { sourceOfRow } from '../../../index/document-store/written-row.ts';
import type { Retriever } from '../../../search/retriever.ts';
import { queryFailure } from '../elasticsearch-error.ts';
import { fitsPattern } from './dsl-query.ts';
import { queriedField } from './queried-field.ts';

/** Passages that are looked at. The members of a corpus are usually the same in all of them. */
const SAMPLE = 256;

/** The names of the members in the sample of an index as a request sees it. A query may name thousands of fields. */
const samples = new WeakMap<Retriever, Promise<readonly string[]>>();

/**
 * Refuses a query for a field that passages have but the index cannot search: it would find nothing, as if no passage had the words.
 *
 * @param name of a field that the index does not search, or a pattern with `*`.
 * @throws ElasticsearchError query_shard_exception.
 */
export async function refuseStoredField(name: string, retriever: Retriever): Promise<void> {
  const { info } = retriever;
  let names = samples.get(retriever);
  if (names === undefined) {
    names = sampledNames(retriever);
    samples.set(retriever, names);
    names.catch(() => samples.delete(retriever));
  }
  // Elasticsearch makes `NAME.keyword` by itself of a field that is not mapped.
  const base = name.replace(/\.keyword$/, '');
  const wanted = queriedField(base, info) === undefined ? [name, base] : [name];
  const path = (await names).find((each) => wanted.some((pattern) => fitsPattern(pattern, each)));
  if (path === undefined) return;
  throw queryFailure(
    info.index,
    `field [${name.slice(0, 100)}] is stored and not searched. Map [${path.slice(0, 100)}] when you make the index (as text for its words, as keyword for filters); of an index that trawl index made, make it a column: trawl optimize INDEX --column NAME:TYPE`,
  );
}

async function sampledNames(retriever: Retriever): Promise<readonly string[]> {
  const { rows } = retriever.info;
  const count = Math.min(SAMPLE, rows);
  const keys = Array.from({ length: count }, (_, i) => String(Math.floor((i * rows) / count)));
  const { found } = await retriever.find({ by: 'row', keys, limit: 1 });
  return [...new Set(found.flat().flatMap(({ document }) => pathsOf(JSON.parse(sourceOfRow(document)), '')))];
}

/** The names of a row's members, and of the members within them with dots in between. */
function pathsOf(value: unknown, path: string): readonly string[] {
  if (Array.isArray(value)) return value.flatMap((item) => (isObject(item) ? pathsOf(item, path) : []));
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([name, member]) => {
    const own = path === '' ? name : `${path}.${name}`;
    return (member ?? null) === null ? [] : [own, ...pathsOf(member, own)];
  });
}
