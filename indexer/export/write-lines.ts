import { TrawlError } from '../../src/base/errors.ts';
import type { Compression } from '../../src/base/files/compression.ts';
import type { StoredId } from '../../src/index/passages/passage-file.ts';
import { openPack } from '../prepare/pack.ts';
import type { ExportedPassage } from './index-rows.ts';

export interface ContentOutput {
  readonly compression: Compression;
  readonly totalRows: number;
  /** Writes bytes in order. The caller may overwrite them after the promise resolves. */
  readonly write: (bytes: Uint8Array) => Promise<void>;
  /** Called with the number of rows that were added since the last call. */
  readonly onRows: (rows: number) => void;
}

export type WriteContent = (output: ContentOutput) => Promise<void>;

/** A block of about this size becomes a gzip member or zstd frame. */
const BLOCK_CHARACTERS = 1024 * 1024;

/** Writes a line for each passage, in compressed blocks. */
export function writeLines(
  passages: AsyncIterable<ExportedPassage>,
  lineOf: (passage: ExportedPassage) => string,
): WriteContent {
  return async ({ compression, write, onRows }) => {
    const pack = openPack(compression);
    const encoder = new TextEncoder();
    let block: string[] = [];
    let characters = 0;
    let blocks = 0;
    const flush = async (): Promise<void> => {
      await write(pack(encoder.encode(block.join(''))));
      block = [];
      characters = 0;
      blocks++;
    };
    for await (const passage of passages) {
      const line = lineOf(passage);
      block.push(line, '\n');
      characters += line.length + 1;
      onRows(1);
      if (characters >= BLOCK_CHARACTERS) await flush();
    }
    // Without lines, a compressed file still needs one empty member or frame.
    if (characters > 0 || blocks === 0) await flush();
  };
}

export function compressionOfPath(path: string): Compression {
  const name = path.toLowerCase();
  if (name.endsWith('.gz')) return 'gzip';
  return name.endsWith('.zst') ? 'zstd' : 'none';
}

/**
 * The line of a passage in an ids file: its id, or its row number if it has no id.
 *
 * @throws TrawlError NOT_SUPPORTED for an id with a line break.
 */
export function idLine({ id, row }: ExportedPassage): string {
  const text = idText(id) ?? String(row);
  if (!/[\n\r]/.test(text)) return text;
  throw new TrawlError(
    'NOT_SUPPORTED',
    `The id of row ${row} contains a line break and cannot be written to a file with one id per line. Use --corpus instead of --ids.`,
    { details: { row } },
  );
}

export function idText(id: StoredId | null): string | null {
  return id === null ? null : String(id);
}
