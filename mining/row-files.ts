import { CheckpointedFile } from '../src/system/checkpointed-file.ts';
import { originFields, queryFields, type RowFormat, type TrainingRow } from './formats/row-format.ts';
import type { MinedPassage, MinedQuery, MiningOrigin } from './mined-query.ts';

/** The bytes of both files at a checkpoint. */
export interface RowBytes {
  readonly rows: number;
  readonly origins: number;
}

/** The file of rows, and for trainers that take every column as an input, the file with the origin of each row. */
export class RowFiles {
  readonly #format: RowFormat;
  readonly #rows: CheckpointedFile;
  readonly #origins: CheckpointedFile | undefined;
  #isEmpty: boolean;

  private constructor(format: RowFormat, rows: CheckpointedFile, origins: CheckpointedFile | undefined, bytes: number) {
    this.#format = format;
    this.#rows = rows;
    this.#origins = origins;
    this.#isEmpty = bytes === 0;
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

  /** Opens both files at a checkpoint. `mode`: permissions of new ones. */
  static async open(out: string, format: RowFormat, bytes: RowBytes, mode?: number): Promise<RowFiles> {
    const rows = await CheckpointedFile.open(out, bytes.rows, mode);
    try {
      const origins = format.onlyInputs
        ? await CheckpointedFile.open(RowFiles.originsOf(out), bytes.origins, mode)
        : undefined;
      return new RowFiles(format, rows, origins, bytes.rows);
    } catch (error) {
      await rows.close();
      throw error;
    }
  }

  async write(rows: readonly TrainingRow[], mined: MinedQuery, origin: MiningOrigin): Promise<void> {
    let text = '';
    for (const { fields } of rows) {
      const json = JSON.stringify(fields);
      text += this.#format.isArray ? `${this.#isEmpty ? '[' : ','}\n${json}` : `${json}\n`;
      this.#isEmpty = false;
    }
    await this.#rows.write(text);
    await this.#origins?.write(rows.map((row) => `${originLine(row, mined, origin)}\n`).join(''));
  }

  async checkpoint(): Promise<RowBytes> {
    return { rows: await this.#rows.checkpoint(), origins: (await this.#origins?.checkpoint()) ?? 0 };
  }

  /** Writes what comes after the last row. Returns the bytes of the finished files. No checkpoint may follow. */
  async end(): Promise<RowBytes> {
    if (this.#format.isArray) await this.#rows.write(this.#isEmpty ? '[]\n' : '\n]\n');
    return this.checkpoint();
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
