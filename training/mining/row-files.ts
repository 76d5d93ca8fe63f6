import { usageError } from '../../src/base/errors.ts';
import { CheckpointedFile } from '../../src/base/system/checkpointed-file.ts';
import type { MinedPassage, MinedQuery, MiningOrigin } from './mined-query.ts';
import { ParquetRows } from './parquet-rows.ts';
import {
  originFields,
  queryFields,
  ROW_FORMATS,
  type RowFormat,
  type RowFormatName,
  type TrainingRow,
} from './row-formats.ts';

export interface RowBytes {
  readonly rows: number;
  readonly origins: number;
}

export interface RowCheckpoint extends RowBytes {
  readonly encoder?: unknown;
}

interface OpenOptions {
  readonly row: Parameters<RowFormat['rows']>[2];
  readonly checkpoint: RowCheckpoint;
  readonly mode?: number;
}

/** @throws TrawlError USAGE for a Parquet file of a format whose rows do not form a table. */
export function checkRowFile(out: string, format: RowFormatName): void {
  if (!isParquet(out) || ROW_FORMATS[format].columns !== undefined) return;
  const tables = Object.entries<RowFormat>(ROW_FORMATS).filter(([, { columns }]) => columns !== undefined);
  throw usageError(
    `--out ${out} ends in .parquet, and rows of the format ${format} are written as JSON. Give it another ending, or choose one of ` +
      `${tables.map(([name]) => name).join(', ')}.`,
  );
}

function isParquet(out: string): boolean {
  return out.toLowerCase().endsWith('.parquet');
}

export function originsPath(out: string): string {
  return `${out}.origins.jsonl`;
}

/** Whether the partial files have the bytes of a checkpoint (`fits`), or the finished files, renamed or not, these bytes (`isWhole`). */
export function haveRowFiles(
  check: 'fits' | 'isWhole',
  out: string,
  { onlyInputs }: RowFormat,
  bytes: RowBytes,
): boolean {
  if (!CheckpointedFile[check](out, bytes.rows)) return false;
  return !onlyInputs || CheckpointedFile[check](originsPath(out), bytes.origins);
}

/** Opens the file of rows, and for trainers that take every column as an input, the file with the origin of each row. */
export async function openRowFiles(out: string, format: RowFormat, { row, checkpoint, mode }: OpenOptions) {
  const isEmpty = checkpoint.rows === 0;
  const columns = isParquet(out) ? format.columns?.(row) : undefined;
  const encoder =
    columns === undefined ? jsonRows(format.isArray === true, isEmpty) : new ParquetRows(columns, checkpoint.encoder);
  const file = await CheckpointedFile.open(out, checkpoint.rows, mode);
  let origins: CheckpointedFile | undefined;
  try {
    if (isEmpty) await file.write(encoder.begin());
    if (format.onlyInputs) origins = await CheckpointedFile.open(originsPath(out), checkpoint.origins, mode);
  } catch (error) {
    await file.close();
    throw error;
  }
  const sync = async (): Promise<RowBytes> => ({
    rows: await file.checkpoint(),
    origins: (await origins?.checkpoint()) ?? 0,
  });
  return {
    async write(rows: readonly TrainingRow[], mined: MinedQuery, origin: MiningOrigin): Promise<void> {
      await file.write(encoder.add(rows));
      await origins?.write(rows.map((each) => `${originLine(each, mined, origin)}\n`).join(''));
    },
    checkpoint: async (): Promise<RowCheckpoint> => ({ ...(await sync()), encoder: encoder.state() }),
    /** Writes what comes after the last row. Returns the bytes of the finished files. No checkpoint may follow. */
    async end(): Promise<RowBytes> {
      await file.write(encoder.end());
      return sync();
    },
    async close(): Promise<void> {
      await file.close();
      await origins?.close();
    },
  };
}

function originLine({ positives, negatives }: TrainingRow, mined: MinedQuery, origin: MiningOrigin): string {
  const place = ({ id, rank, score }: MinedPassage): object => ({ id, rank, score });
  return JSON.stringify({
    query_id: mined.query.id,
    ...queryFields(mined),
    positives: positives.map(place),
    negatives: negatives.map(place),
    ...originFields(mined, origin),
  });
}

/** Encodes rows as a JSON object a line, or as one JSON array of objects. Has the methods of `ParquetRows`. */
function jsonRows(isArray: boolean, isEmptyAtStart: boolean) {
  let isEmpty = isEmptyAtStart;
  return {
    begin: () => '',
    add(rows: readonly TrainingRow[]): string {
      let text = '';
      for (const { fields } of rows) {
        const json = JSON.stringify(fields);
        text += isArray ? `${isEmpty ? '[' : ','}\n${json}` : `${json}\n`;
        isEmpty = false;
      }
      return text;
    },
    end(): string {
      if (!isArray) return '';
      return isEmpty ? '[]\n' : '\n]\n';
    },
    state: () => undefined,
  };
}
