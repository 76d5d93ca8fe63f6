/**
 * The passage file: one SQLite database per shard, read-only once finished. Reader and writer share what stands here.
 *
 * `passages`
 * - `row`: row number within the shard, from 0, without gaps.
 * - `id`: the corpus's own id for look-ups: INTEGER where it is an integer of 64 bits, TEXT where it is a string or a
 *   larger integer (its digits), NULL where the row has none. The id as it was, with its type, is in `document`.
 * - `line`: line (Parquet: row) of the corpus file, from 1, for messages about a row.
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

/** By what passages can be looked up. */
export const LOOKUPS = ['id', 'url', 'title'] as const;
export type Lookup = (typeof LOOKUPS)[number];

/**
 * What a look-up compares, as SQL over a row of `passages`: a look-up has to use the text that its index was made with.
 * A title is the column of that name, else the first line of `contents` where it has more than one, quotes included.
 */
export const LOOKUP_KEYS: Readonly<Record<Lookup, string>> = {
  id: 'id',
  url: "CASE WHEN json_valid(document) THEN document ->> '$.url' END",
  title:
    "CASE WHEN json_valid(document) THEN coalesce(document ->> '$.title', " +
    "CASE WHEN instr(document ->> '$.contents', char(10)) > 0 " +
    "THEN substr(document ->> '$.contents', 1, instr(document ->> '$.contents', char(10)) - 1) END) END",
};

/** Made after the last row: sorting once is faster than keeping an index in order. */
export const PASSAGE_INDEXES = LOOKUPS.map(
  (by) => `CREATE INDEX ${lookupIndex(by)} ON passages (${LOOKUP_KEYS[by]}) WHERE ${LOOKUP_KEYS[by]} IS NOT NULL`,
).join(';\n');

/** Name of the index; files of the first release have only that over ids. */
export function lookupIndex(by: Lookup): string {
  return `passages_by_${by}`;
}

/** "Trwl" in ASCII: tells a passage file from other SQLite files. */
export const PASSAGE_APPLICATION_ID = 0x5472776c;

/**
 * Version of the tables above, in SQLite's user_version.
 * - 1: first version.
 */
export const PASSAGE_SCHEMA_VERSION = 1;
