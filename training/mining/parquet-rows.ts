import { ParquetGroups, type ParquetGroupsState, type ParquetSchema } from '../../indexer/export/parquet-groups.ts';
import type { RowColumn, TrainingRow } from './row-formats.ts';

/** Characters of the texts of a row group, or up to one query more. A row group is held in memory, and its facts until the end of the file. */
const GROUP_CHARS = 2 ** 22;

type Fields = TrainingRow['fields'];

interface ParquetState {
  readonly groups: ParquetGroupsState;
  readonly pending: readonly Fields[];
}

/**
 * A Parquet file of training rows: texts, int64 and float64, or lists of these. It consists of `begin`, of each `add` in the order of the
 * rows, and of `end`, and depends only on the rows.
 */
export class ParquetRows {
  readonly #columns: readonly RowColumn[];
  readonly #groups: ParquetGroups;
  readonly #groupChars: number;
  #pending: Fields[];
  #pendingChars: number;

  /** @param state what `state()` of an encoder with the same columns returned; undefined at the start. */
  constructor(columns: readonly RowColumn[], state: unknown, groupChars = GROUP_CHARS) {
    const resumed = state as ParquetState | undefined;
    this.#columns = columns;
    this.#groups = new ParquetGroups(columns.flatMap(schemaOf), resumed?.groups);
    this.#groupChars = groupChars;
    this.#pending = [...(resumed?.pending ?? [])];
    this.#pendingChars = this.#pending.reduce((sum, fields) => sum + charsOf(fields), 0);
  }

  begin(): Uint8Array {
    return this.#groups.begin();
  }

  add(rows: readonly TrainingRow[]): Uint8Array {
    for (const { fields } of rows) {
      this.#pending.push(fields);
      this.#pendingChars += charsOf(fields);
    }
    return this.#pendingChars >= this.#groupChars ? this.#writeGroup() : new Uint8Array(0);
  }

  end(): Uint8Array {
    const last = this.#pending.length > 0 ? this.#writeGroup() : new Uint8Array(0);
    return Buffer.concat([last, this.#groups.end()]);
  }

  state(): ParquetState {
    return { groups: this.#groups.state(), pending: this.#pending };
  }

  #writeGroup(): Uint8Array {
    const rows = this.#pending;
    const bytes = this.#groups.write(
      rows.length,
      this.#columns.map((column) => ({
        name: column.name,
        data: rows.map((fields) => cellOf(column, fields[column.name])),
        // Page indexes would not survive in the state.
        offsetIndex: false,
      })),
    );
    this.#pending = [];
    this.#pendingChars = 0;
    return bytes;
  }
}

/** Whole numbers are int64, which the writer takes as bigints. */
function cellOf({ type }: RowColumn, value: unknown): unknown {
  if (type !== 'integer') return value;
  return Array.isArray(value) ? value.map((each: number) => BigInt(each)) : BigInt(value as number);
}

function charsOf(fields: Fields): number {
  let chars = 0;
  for (const value of Object.values(fields).flat()) if (typeof value === 'string') chars += value.length;
  return chars;
}

const TYPES = {
  text: { type: 'BYTE_ARRAY', converted_type: 'UTF8' },
  integer: { type: 'INT64' },
  number: { type: 'DOUBLE' },
} as const;

function schemaOf({ name, type, isList = false }: RowColumn): ParquetSchema {
  const required = { repetition_type: 'REQUIRED' } as const;
  if (!isList) return [{ name, ...TYPES[type], ...required }];
  return [
    { name, converted_type: 'LIST', ...required, num_children: 1 },
    { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
    { name: 'element', ...TYPES[type], ...required },
  ];
}
