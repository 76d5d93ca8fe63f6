import { readFile } from 'node:fs/promises';

/**
 * Options of `trawl index` for an index whose queries have another prefix. An answer that mixed the encoder of one index with
 * the vectors of the other would have the scores of neither.
 */
export const otherPrefix: readonly string[] = ['--query-prefix', 'passages about: '];

/** The JSONL rows of the file `from` with other ids, so that an index of them answers every query with other ids. */
export async function otherPassages(from: string): Promise<string> {
  const lines = (await readFile(from, 'utf8')).split('\n').filter((line) => line !== '');
  return lines
    .map((line) => {
      const row = JSON.parse(line) as { id: unknown };
      return `${JSON.stringify({ ...row, id: `other-${String(row.id)}` })}\n`;
    })
    .join('');
}
