import { usageError } from '../../src/base/errors.ts';
import { wellFormedJson } from '../../src/base/objects.ts';
import { CheckpointedFile } from '../../src/base/system/checkpointed-file.ts';
import type { MinedPassage, MinedQuery, MiningOrigin } from './mined-query.ts';
import { ParquetRows } from './parquet-rows.ts';
import { ROW_FORMATS, type RowFormat, type RowFormatName, type TrainingRow } from './row-formats.ts';

export interface RowBytes {
  readonly rows: number;
  readonly origins: number;
}

export interface RowCheckpoint extends RowBytes {
  readonly encoder?: unknown;
}

interface OpenOptions {
  readonly row: Parameters<RowFormat['rows']>[1];
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
export function haveRowFiles(check: 'fits' | 'isWhole', out: string, bytes: RowBytes): boolean {
  return CheckpointedFile[check](out, bytes.rows) && CheckpointedFile[check](originsPath(out), bytes.origins);
}

/**
 * Opens the file of rows and the file with the origin of each row. Origins are not in the rows: sentence-transformers takes every column as
 * an input, and datasets, with which the other trainers read rows, refuses a file if a field such as the history, absent or empty in its
 * first 10 MB, has a value later.
 */
export async function openRowFiles(out: string, format: RowFormat, { row, checkpoint, mode }: OpenOptions) {
  const isEmpty = checkpoint.rows === 0;
  const columns = isParquet(out) ? format.columns?.(row) : undefined;
  const encoder =
    columns === undefined ? jsonRows(format.isArray === true, isEmpty) : new ParquetRows(columns, checkpoint.encoder);
  const file = await CheckpointedFile.open(out, checkpoint.rows, mode);
  let origins: CheckpointedFile;
  try {
    if (isEmpty) await file.write(encoder.begin());
    origins = await CheckpointedFile.open(originsPath(out), checkpoint.origins, mode);
  } catch (error) {
    await file.close();
    throw error;
  }
  const sync = async (): Promise<RowBytes> => ({
    rows: await file.checkpoint(),
    origins: await origins.checkpoint(),
  });
  return {
    async write(rows: readonly TrainingRow[], mined: MinedQuery, origin: MiningOrigin): Promise<void> {
      await file.write(encoder.add(rows));
      await origins.write(rows.map((each) => `${originLine(each, mined, origin)}\n`).join(''));
    },
    checkpoint: async (): Promise<RowCheckpoint> => ({ ...(await sync()), encoder: encoder.state() }),
    /** Writes what comes after the last row. Returns the bytes of the finished files. No checkpoint may follow. */
    async end(): Promise<RowBytes> {
      await file.write(encoder.end());
      return sync();
    },
    async close(): Promise<void> {
      await file.close();
      await origins.close();
    },
  };
}

function originLine({ positives, negatives }: TrainingRow, { query, group }: MinedQuery, origin: MiningOrigin): string {
  const place = ({ id, rank, score }: MinedPassage): object => ({ id, rank, score });
  return wellFormedJson({
    query_id: query.id,
    question: query.question,
    sub_query: query.query,
    history_queries: query.history,
    round_index: query.round,
    positives: positives.map(place),
    negatives: negatives.map(place),
    dataset: query.dataset,
    group,
    generation: origin.generation,
    model: origin.model,
    reranker: origin.reranker,
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
        const json = wellFormedJson(fields);
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
