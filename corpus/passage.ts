/** A passage's id with its type; bigint for integers beyond 2^53. Null if the row has none. */
export type PassageId = string | number | bigint | null;

/** The columns of a row. Use `columnOf`, because a column may be named like a method. */
export type PassageRow = Readonly<Record<string, unknown>>;

export interface PassageLocation {
  readonly file: string;
  /** Line of a text file (counting blank lines and a header) or row of a Parquet file, from 1. */
  readonly line: number;
}

export interface Passage {
  readonly id: PassageId;
  /** The row as JSON text without newlines: for JSONL the line, for TSV and Parquet made from the columns. */
  readonly document: string;
  /** The parsed row. It has a string `contents` or a string `text`. */
  readonly row: PassageRow;
  readonly location: PassageLocation;
  /** Number of its file in the corpus, from 0. */
  readonly fileIndex: number;
}

/** The value of a column; undefined if the row does not have it. */
export function columnOf(row: PassageRow, name: string): unknown {
  return Object.hasOwn(row, name) ? row[name] : undefined;
}

/** `file:line` */
export function formatLocation({ file, line }: PassageLocation): string {
  return `${file}:${line}`;
}
