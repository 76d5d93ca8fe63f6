import { readFile } from 'node:fs/promises';

/**
 * Options of `trawl index` for an index whose queries are embedded otherwise: an answer with the encoder of the one and
 * the vectors of the other would have neither's scores.
 */
export const otherPrefix: readonly string[] = ['--query-prefix', 'passages about: '];

/** The passages of `from` with other ids, one a line: an index of them answers every query otherwise. */
export async function otherPassages(from: string): Promise<string> {
  const lines = (await readFile(from, 'utf8')).split('\n').filter((line) => line !== '');
  return lines
    .map((line) => {
      const row = JSON.parse(line) as { id: unknown };
      return `${JSON.stringify({ ...row, id: `other-${String(row.id)}` })}\n`;
    })
    .join('');
}
