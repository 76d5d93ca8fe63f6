import type { Compression } from '../corpus/compression.ts';
import { openPack } from '../prepare/pack.ts';
import { TrawlError } from '../src/errors.ts';
import type { StoredId } from '../src/passages/passage-file.ts';
import type { ExportedPassage } from './index-rows.ts';
import type { Sink } from './write-vectors.ts';

/** Text that is packed and written at once; each block is a gzip member or zstd frame of its own. */
const BLOCK_CHARACTERS = 1024 * 1024;

/** Writes lines, packed as the name of the file says. */
export async function writeLines(
  lines: AsyncIterable<string>,
  compression: Compression,
  sink: Sink,
  onLine: () => void,
): Promise<void> {
  const pack = await openPack(compression);
  const encoder = new TextEncoder();
  let block: string[] = [];
  let characters = 0;
  const flush = async (): Promise<void> => {
    await sink(pack(encoder.encode(block.join(''))));
    block = [];
    characters = 0;
  };
  let blocks = 0;
  for await (const line of lines) {
    block.push(line, '\n');
    characters += line.length + 1;
    onLine();
    if (characters >= BLOCK_CHARACTERS) {
      await flush();
      blocks++;
    }
  }
  // A packed file of nothing is one empty member, not no bytes.
  if (characters > 0 || blocks === 0) await flush();
}

/** How a file is packed, by its name. */
export function packingOf(path: string): Compression {
  const name = path.toLowerCase();
  if (name.endsWith('.gz')) return 'gzip';
  return name.endsWith('.zst') ? 'zstd' : 'none';
}

/**
 * A passage's id as a line; its row number where it has none.
 *
 * @throws TrawlError NOT_SUPPORTED for an id that is more than a line.
 */
export function idLine({ id, row }: ExportedPassage): string {
  const text = idText(id) ?? String(row);
  if (!/[\n\r]/.test(text)) return text;
  throw new TrawlError(
    'NOT_SUPPORTED',
    `The id of row ${row} has a line break in it, so a file with an id a line cannot hold it. Leave --ids out: --corpus has all ids.`,
    { details: { row } },
  );
}

export function idText(id: StoredId | null): string | null {
  return id === null ? null : String(id);
}
