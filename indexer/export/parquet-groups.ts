import { ByteWriter, type ColumnSource, ParquetWriter } from 'hyparquet-writer';

/** The columns below the root, as in Parquet's own schema: a flat list, with `num_children` for groups. */
export type ParquetSchema = readonly SchemaElement[];
type SchemaElement = ConstructorParameters<typeof ParquetWriter>[0]['schema'][number];
export type ParquetColumn = ColumnSource;

/** What a new writer needs to continue a file: a JSON value. It grows with the number of row groups. */
export interface ParquetGroupsState {
  /** Bytes of the file so far. */
  readonly offset: number;
  /** The facts of the row groups, as JSON text with bigints as `{"bigint": "digits"}`. */
  readonly rowGroups: string;
}

/**
 * Makes a Parquet file row group by row group: it consists of the bytes of `begin`, of each `write`, and of `end`. The bytes depend only
 * on the columns. A row group is held in memory.
 */
export class ParquetGroups {
  readonly #buffer = new ByteWriter();
  readonly #writer: ParquetWriter;

  constructor(columns: ParquetSchema, state?: ParquetGroupsState) {
    // The children of columns with children follow them in the list.
    let nested = 0;
    for (const { num_children = 0 } of columns) nested += num_children;
    const root = { name: 'root', num_children: columns.length - nested };
    this.#writer = new ParquetWriter({
      writer: this.#buffer,
      schema: [root, ...columns].map((element) => ({ ...element })),
      statistics: false,
    });
    if (state === undefined) return;
    this.#writer.row_groups = JSON.parse(state.rowGroups, reviveBigint) as ParquetWriter['row_groups'];
    this.#writer.num_rows = this.#writer.row_groups.reduce((sum, { num_rows }) => sum + num_rows, 0n);
    this.#buffer.index = 0;
    this.#buffer.offset = state.offset;
  }

  begin(): Uint8Array {
    return this.#take();
  }

  write(rows: number, columns: readonly ParquetColumn[]): Uint8Array {
    void this.#writer.write({ columnData: [...columns], rowGroupSize: rows });
    return this.#take();
  }

  end(): Uint8Array {
    void this.#writer.finish();
    return this.#take();
  }

  /** Only for columns with `offsetIndex: false`: page indexes are written at the end of the file and are not part of the state. */
  state(): ParquetGroupsState {
    return { offset: this.#buffer.offset, rowGroups: JSON.stringify(this.#writer.row_groups, replaceBigint) };
  }

  #take(): Uint8Array {
    const bytes = this.#buffer.getBytes().slice();
    this.#buffer.index = 0;
    return bytes;
  }
}

/** The texts in UTF-8, for a column of many different texts: the writer itself would encode each of them alone. */
export function encodedTexts(texts: readonly string[]): Uint8Array[] {
  const encoder = new TextEncoder();
  const joined = texts.join('');
  const bytes = encoder.encode(joined);
  // A byte for each character.
  if (bytes.length !== joined.length) return texts.map((text) => encoder.encode(text));
  let end = 0;
  return texts.map((text) => {
    const start = end;
    end += text.length;
    return bytes.subarray(start, end);
  });
}

function replaceBigint(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? { bigint: String(value) } : value;
}

function reviveBigint(_: string, value: unknown): unknown {
  const isBigint = typeof value === 'object' && value !== null && 'bigint' in value;
  return isBigint ? BigInt((value as { bigint: string }).bigint) : value;
}
