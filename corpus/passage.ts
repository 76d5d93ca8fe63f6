/** Where a passage was read, for messages. */
export interface PassageLocation {
  readonly file: string;
  /** Line of a text file, from 1; row of a Parquet file, from 1. */
  readonly line: number;
}

/** One passage as a reader yields it. */
export interface Passage {
  /** The corpus's own id, its type kept: integers beyond 2^53 are bigint. Null where the row has none. */
  readonly id: string | number | bigint | null;
  /** The row as JSON text: the line itself for JSONL, built from the columns for TSV and Parquet. Never has a newline. */
  readonly document: string;
  readonly location: PassageLocation;
}
