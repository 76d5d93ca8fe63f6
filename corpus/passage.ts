/** A passage's own id, its type kept: integers beyond 2^53 are bigint. Null where the row has none. */
export type PassageId = string | number | bigint | null;

/** The parsed columns of one row. Look columns up with `columnOf`: a row may have a column named like a method. */
export type PassageRow = Readonly<Record<string, unknown>>;

/** Where a passage was read, for messages. */
export interface PassageLocation {
  readonly file: string;
  /** Line of a text file, from 1 (blank lines and a header count); row of a Parquet file, from 1. */
  readonly line: number;
}

/** One passage as a reader yields it. */
export interface Passage {
  readonly id: PassageId;
  /** The row as JSON text: the line itself for JSONL, built from the columns for TSV and Parquet. Never has a newline. */
  readonly document: string;
  /** The same row parsed: what a passage template reads. Has a string `contents`, or a string `text`. */
  readonly row: PassageRow;
  readonly location: PassageLocation;
  /** Place of its file among the files of the corpus, from 0. */
  readonly fileIndex: number;
}

/** The value of a column; undefined where the row has none. */
export function columnOf(row: PassageRow, name: string): unknown {
  return Object.hasOwn(row, name) ? row[name] : undefined;
}

/** `file:line`, the way every message about a row begins. */
export function formatLocation({ file, line }: PassageLocation): string {
  return `${file}:${line}`;
}
