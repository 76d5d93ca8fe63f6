/**
 * The passage file: one SQLite database per shard, read-only once finished. Shared by reader and writer.
 *
 * `passages`
 * - `row`: row number within the shard, from 0, without gaps.
 * - `id`: the id for look-ups: INTEGER for a 64-bit integer, TEXT for a string or a larger integer (its digits), NULL for a
 *   row without id. `document` has the id with its original type.
 * - `line`: line (Parquet: row) of the corpus file, from 1, for error messages.
 * - `document`: the corpus row as JSON text, verbatim.
 *
 * `meta`: one row per fact; `sha256` is the content hash over the documents in row order, each followed by a newline.
 */
export const PASSAGE_TABLES = `
  CREATE TABLE passages (
    row INTEGER PRIMARY KEY,
    id ANY,
    line INTEGER NOT NULL,
    document TEXT NOT NULL
  ) STRICT;
  CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
`;

/** Keys by which passages can be looked up. */
export const LOOKUPS = ['id', 'url', 'title', 'document'] as const;
export type Lookup = (typeof LOOKUPS)[number];

/**
 * The SQL expression of each look-up over a row of `passages`. It must be the text that the SQLite index was created with. A
 * title is the column `title`, else the first line of a `contents` with several lines, quotes included. A document is the column
 * `doc_id`, which `trawl prepare` writes.
 */
export const LOOKUP_KEYS: Readonly<Record<Lookup, string>> = {
  id: 'id',
  url: "CASE WHEN json_valid(document) THEN document ->> '$.url' END",
  title:
    "CASE WHEN json_valid(document) THEN coalesce(document ->> '$.title', " +
    "CASE WHEN instr(document ->> '$.contents', char(10)) > 0 " +
    "THEN substr(document ->> '$.contents', 1, instr(document ->> '$.contents', char(10)) - 1) END) END",
  document: "CASE WHEN json_valid(document) THEN document ->> '$.doc_id' END",
};

/** Created after the last row, because sorting once is faster than updating the indexes with each row. */
export const PASSAGE_INDEXES = LOOKUPS.map(
  (by) => `CREATE INDEX ${lookupIndex(by)} ON passages (${LOOKUP_KEYS[by]}) WHERE ${LOOKUP_KEYS[by]} IS NOT NULL`,
).join(';\n');

/** Name of the SQLite index. Files of the first release only have the one over ids, and older ones have none over documents. */
export function lookupIndex(by: Lookup): string {
  return `passages_by_${by}`;
}

/** "Trwl" in ASCII: distinguishes a passage file from other SQLite files. */
export const PASSAGE_APPLICATION_ID = 0x5472776c;

/**
 * Version of the tables above, in SQLite's user_version.
 * - 1: first version.
 */
export const PASSAGE_SCHEMA_VERSION = 1;
