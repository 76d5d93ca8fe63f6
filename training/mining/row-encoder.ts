import type { TrainingRow } from './formats/row-format.ts';

/**
 * Turns rows into the content of a file. It consists of `begin`, of each `add` in the order of the rows, and of `end`, and depends only on
 * the rows.
 */
export interface RowEncoder {
  begin(): string | Uint8Array;
  add(rows: readonly TrainingRow[]): string | Uint8Array;
  end(): string | Uint8Array;
  /** What a new encoder needs to continue, besides the content so far: a JSON value, or undefined. */
  state(): unknown;
}
