import { TrawlError } from '../../base/errors.ts';
import { ColumnFile } from '../../engine/columns/column-file.ts';
import { SegmentReader } from '../../engine/vectors/vector-segments.ts';
import { PassageFile } from '../../index/passages/passage-file.ts';
import { LOOKUPS, type Lookup } from '../../index/passages/schema.ts';
import type { IndexDirectory } from '../../search/opening/index-directory.ts';
import { columnKey, MAX_KEY_COLUMNS, NO_KEY } from '../milvus/column-keys.ts';
import type { PublishedRow } from '../published/published-row.ts';

interface OpenShard {
  readonly firstRow: number;
  readonly rows: number;
  readonly vectors: SegmentReader;
  readonly passages: PassageFile;
}

/** The rows of an index folder with vectors, passages and look-up keys. Reads block, so it is for commands. */
export class LocalRows {
  readonly rows: number;
  readonly #dimension: number;
  readonly #shards: readonly OpenShard[];
  readonly #directory: IndexDirectory;
  /** The shard that was read last, and its columns by position. Calls at the same time may read several shards. */
  #last: { readonly shard: OpenShard; readonly columns: Map<number, ColumnFile> } | undefined;

  constructor(directory: IndexDirectory) {
    const { source, passages, manifest } = directory;
    this.rows = manifest.rows;
    this.#dimension = manifest.dimension;
    this.#directory = directory;
    this.#shards = source!.shards.map(({ firstRow, rows, segments }, i) => ({
      firstRow,
      rows,
      vectors: new SegmentReader(segments, manifest.dimension),
      passages: new PassageFile(passages[i]!.path),
    }));
  }

  /** Bytes of the longest document. Reads all passages. */
  longestDocument(): number {
    return Math.max(0, ...this.#shards.map(({ passages }) => passages.longestDocument()));
  }

  lookups(): Lookup[] {
    return LOOKUPS.filter((by) => this.#shards.every(({ passages }) => passages.has(by)));
  }

  /** The positions of the columns that have at most one value in every row. Reads all columns. */
  async singleColumns(): Promise<number[]> {
    const single: number[] = [];
    for (const [i, { paths, type }] of this.#directory.columns.entries()) {
      let isSingle = single.length < MAX_KEY_COLUMNS;
      for (const path of paths) isSingle &&= !(await ColumnFile.read(path, type)).header.multiple;
      if (isSingle) single.push(i);
    }
    return single;
  }

  /** The live rows of [first, end), which are in one shard, with the keys of some columns. */
  async range(first: number, end: number, keyColumns: readonly number[] = []): Promise<PublishedRow[]> {
    const shard = this.#shardOf(first);
    const columns = await this.#columnsOf(shard, keyColumns);
    const from = first - shard.firstRow;
    const count = Math.min(end, shard.firstRow + shard.rows) - first;
    const values = new Float32Array(count * this.#dimension);
    shard.vectors.read(from, count, values);
    const passages = shard.passages.keyedRange(from, count);
    if (passages.length !== count) {
      throw new TrawlError(
        'INDEX_FILE_FOREIGN',
        `The passage file of the shard at row ${shard.firstRow} has ${passages.length} of ${count} rows from row ${from}. Run trawl verify for details.`,
      );
    }
    const { liveRows } = this.#directory;
    return passages
      .map(({ document, id, keys }, i) => ({
        row: first + i,
        vector: values.subarray(i * this.#dimension, (i + 1) * this.#dimension),
        document,
        id,
        lookups: keys,
        keys: columns.map((column) => {
          const [value] = column.valuesOf(from + i);
          return value === undefined ? NO_KEY : columnKey(value);
        }),
      }))
      .filter(({ row }) => liveRows?.has(row) !== false);
  }

  /** The end of a range from `first` of at most `count` rows in one shard. */
  endOf(first: number, count: number): number {
    const shard = this.#shardOf(first);
    return Math.min(first + count, shard.firstRow + shard.rows);
  }

  close(): void {
    for (const { vectors, passages } of this.#shards) {
      vectors.close();
      passages.close();
    }
  }

  async #columnsOf(shard: OpenShard, keyColumns: readonly number[]): Promise<ColumnFile[]> {
    if (this.#last?.shard !== shard) this.#last = { shard, columns: new Map() };
    const { columns } = this.#last;
    for (const column of keyColumns) {
      const { paths, type } = this.#directory.columns[column]!;
      const path = paths[this.#shards.indexOf(shard)]!;
      if (!columns.has(column)) columns.set(column, await ColumnFile.read(path, type));
    }
    return keyColumns.map((column) => columns.get(column)!);
  }

  #shardOf(row: number): OpenShard {
    return this.#shards.findLast(({ firstRow, rows }) => firstRow <= row && row < firstRow + rows)!;
  }
}
