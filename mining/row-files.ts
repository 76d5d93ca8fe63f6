import { CheckpointedFile } from './checkpointed-file.ts';
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

  /** Opens both files at a checkpoint. */
  static async open(out: string, format: RowFormat, bytes: RowBytes): Promise<RowFiles> {
    const rows = await CheckpointedFile.open(out, bytes.rows);
    try {
      const origins = format.onlyInputs
        ? await CheckpointedFile.open(RowFiles.originsOf(out), bytes.origins)
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

  /** Writes what comes after the last row. No checkpoint may follow. */
  async end(): Promise<void> {
    if (this.#format.isArray) await this.#rows.write(this.#isEmpty ? '[]\n' : '\n]\n');
    await this.checkpoint();
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
