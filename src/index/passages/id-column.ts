/**
 * The column with the id of a row: `id`, else `_id`, as BEIR calls it. A row that was written over Elasticsearch's interface begins with
 * `_index` and `_id`; its `id` is a column like others.
 */
export function idColumnOf(row: Readonly<Record<string, unknown>>): 'id' | '_id' {
  const column = (name: string): unknown => (Object.hasOwn(row, name) ? row[name] : undefined);
  if (typeof column('_index') === 'string' && typeof column('_id') === 'string') return '_id';
  return (column('id') ?? null) === null ? '_id' : 'id';
}

/** Stands for the id of a passage without one. Prefixed, because the number alone may be the id of another passage. */
export function rowId(row: number): string {
  return `row:${row}`;
}
