import { TrawlError } from '../src/errors.ts';
import { PassageFile } from '../src/passages/passage-file.ts';
import { LOOKUPS, type Lookup } from '../src/passages/schema.ts';
import type { PublishedRow } from '../src/published/published-row.ts';
import type { IndexDirectory } from '../src/retrieval/index-directory.ts';
import { SegmentReader } from '../src/vector-index/vector-segments.ts';

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

  /** The look-ups that every shard has. */
  lookups(): Lookup[] {
    return LOOKUPS.filter((by) => this.#shards.every(({ passages }) => passages.has(by)));
  }

  /** The live rows of [first, end), which are in one shard. */
  range(first: number, end: number): PublishedRow[] {
    const shard = this.#shardOf(first);
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

  #shardOf(row: number): OpenShard {
    return this.#shards.findLast(({ firstRow, rows }) => firstRow <= row && row < firstRow + rows)!;
  }
}
