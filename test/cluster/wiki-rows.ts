import { createReadStream, readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { sharedData } from '../helpers/shared-data.ts';

export const WIKI_CORPUS = 'pool_wiki_dev/corpus.jsonl';
const CALLS = 'search_calls/all_search_calls.jsonl';

/** Writes the first rows of the corpus, with a column for filters. @throws Error if it has fewer. */
export async function writeWikiRows(path: string, rows: number): Promise<void> {
  const lines: string[] = [];
  for await (const line of createInterface({ input: createReadStream(sharedData(WIKI_CORPUS)) })) {
    if (lines.length === rows) break;
    lines.push(JSON.stringify({ ...JSON.parse(line), part: lines.length % 10 }));
  }
  if (lines.length < rows) throw new Error(`${WIKI_CORPUS} has ${lines.length} rows, expected ${rows}.`);
  writeFileSync(path, `${lines.join('\n')}\n`);
}

/** Distinct queries of search agents. */
export function agentQueries(count: number): string[] {
  const found = new Set<string>();
  for (const line of readFileSync(sharedData(CALLS), 'utf8').split('\n')) {
    if (line === '' || found.size === count) break;
    for (const query of (JSON.parse(line) as { queries: string[] }).queries) if (found.size < count) found.add(query);
  }
  return [...found];
}
