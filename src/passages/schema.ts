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

/** Made after the last row: sorting once is faster than keeping an index in order. */
export const PASSAGE_ID_INDEX = 'CREATE INDEX passages_by_id ON passages (id) WHERE id IS NOT NULL';

/** "Trwl" in ASCII: tells a passage file from other SQLite files. */
export const PASSAGE_APPLICATION_ID = 0x5472776c;

/**
 * Version of the tables above, in SQLite's user_version.
 * - 1: first version.
 */
export const PASSAGE_SCHEMA_VERSION = 1;
