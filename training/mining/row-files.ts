import { usageError } from '../../src/base/errors.ts';
import { CheckpointedFile } from '../../src/base/system/checkpointed-file.ts';
import { ROW_FORMATS, type RowFormatName } from './formats/formats.ts';
import { originFields, queryFields, type RowFormat, type RowOptions, type TrainingRow } from './formats/row-format.ts';
import { JsonRows } from './json-rows.ts';
import type { MinedPassage, MinedQuery, MiningOrigin } from './mined-query.ts';
import { ParquetRows } from './parquet-rows.ts';
import type { RowEncoder } from './row-encoder.ts';

/** The bytes of both files at a checkpoint. */
export interface RowBytes {
  readonly rows: number;
  readonly origins: number;
}

/** What a run needs to continue both files. */
export interface RowCheckpoint extends RowBytes {
  /** The state of the encoder of the rows. */
  readonly encoder?: unknown;
}

/**
 * Refuses a Parquet file of a format whose rows do not form a table.
 *
 * @throws TrawlError USAGE.
 */
export function checkRowFile(out: string, format: RowFormatName): void {
  const { columns }: RowFormat = ROW_FORMATS[format];
  if (!isParquet(out) || columns !== undefined) return;
  const tables = Object.entries<RowFormat>(ROW_FORMATS).filter(([, each]) => each.columns !== undefined);
  throw usageError(
    `--out ${out} ends in .parquet, and rows of the format ${format} are written as JSON. Give it another ending, or choose one of ` +
      `${tables.map(([name]) => name).join(', ')}.`,
  );
}

function isParquet(out: string): boolean {
  return out.toLowerCase().endsWith('.parquet');
}

/** The file of rows, and for trainers that take every column as an input, the file with the origin of each row. */
export class RowFiles {
  readonly #encoder: RowEncoder;
  readonly #rows: CheckpointedFile;
  readonly #origins: CheckpointedFile | undefined;

  private constructor(encoder: RowEncoder, rows: CheckpointedFile, origins: CheckpointedFile | undefined) {
    this.#encoder = encoder;
    this.#rows = rows;
    this.#origins = origins;
  }

  /** The path of the file of origins. */
  static originsOf(out: string): string {
    return `${out}.origins.jsonl`;
  }

  /** Whether the partial files have the bytes of a checkpoint. */
  static fit(out: string, { onlyInputs }: RowFormat, bytes: RowBytes): boolean {
    if (!CheckpointedFile.fits(out, bytes.rows)) return false;
    return !onlyInputs || CheckpointedFile.fits(RowFiles.originsOf(out), bytes.origins);
  }

  /** Whether finished files with these bytes are there, renamed or not. */
  static areWhole(out: string, { onlyInputs }: RowFormat, bytes: RowBytes): boolean {
    if (!CheckpointedFile.isWhole(out, bytes.rows)) return false;
    return !onlyInputs || CheckpointedFile.isWhole(RowFiles.originsOf(out), bytes.origins);
  }

  /** Opens both files at a checkpoint. `options`: the options of all rows. `mode`: permissions of new files. */
  static async open(
    out: string,
    format: RowFormat,
    options: RowOptions,
    { encoder: state, ...bytes }: RowCheckpoint,
    mode?: number,
  ): Promise<RowFiles> {
    const isEmpty = bytes.rows === 0;
    const encoder =
      isParquet(out) && format.columns !== undefined
        ? new ParquetRows(format.columns(options), state)
        : new JsonRows(format.isArray, isEmpty);
    const rows = await CheckpointedFile.open(out, bytes.rows, mode);
    try {
      if (isEmpty) await rows.write(encoder.begin());
      const origins = format.onlyInputs
        ? await CheckpointedFile.open(RowFiles.originsOf(out), bytes.origins, mode)
        : undefined;
      return new RowFiles(encoder, rows, origins);
    } catch (error) {
      await rows.close();
      throw error;
    }
  }

  async write(rows: readonly TrainingRow[], mined: MinedQuery, origin: MiningOrigin): Promise<void> {
    await this.#rows.write(this.#encoder.add(rows));
    await this.#origins?.write(rows.map((row) => `${originLine(row, mined, origin)}\n`).join(''));
  }

  async checkpoint(): Promise<RowCheckpoint> {
    return { ...(await this.#sync()), encoder: this.#encoder.state() };
  }

  /** Writes what comes after the last row. Returns the bytes of the finished files. No checkpoint may follow. */
  async end(): Promise<RowBytes> {
    await this.#rows.write(this.#encoder.end());
    return this.#sync();
  }

  async #sync(): Promise<RowBytes> {
    return { rows: await this.#rows.checkpoint(), origins: (await this.#origins?.checkpoint()) ?? 0 };
  }

  async close(): Promise<void> {
    await this.#rows.close();
    await this.#origins?.close();
  }
}

function originLine({ positives, negatives }: TrainingRow, mined: MinedQuery, origin: MiningOrigin): string {
  return JSON.stringify({
    query_id: mined.query.id,
    ...queryFields(mined),
    positives: positives.map(placeOf),
    negatives: negatives.map(placeOf),
    ...originFields(mined, origin),
  });
}

function placeOf({ id, rank, score }: MinedPassage): object {
  return { id, rank, score };
}
