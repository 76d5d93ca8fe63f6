import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { type UpdateOptions, type UpdateSummary, updateIndex } from '../../indexer/update/update-index.ts';
import { openReferenceIndex } from '../../src/engine/reference/reference-index.ts';
import { openEngine } from '../../src/engine/vectors/open-engine.ts';
import { PassageFile } from '../../src/index/passages/passage-file.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { FakeTextEncoder } from './fake-text-encoder.ts';

export type Update = Partial<UpdateOptions> & Pick<UpdateOptions, 'corpus' | 'out'>;

export function update(options: Update): Promise<UpdateSummary> {
  return updateIndex({
    type: 'update',
    corpusOptions: {},
    encoder: new FakeTextEncoder(),
    uniqueIds: false,
    onProgress: () => undefined,
    ...options,
  });
}

export interface FoundPassage {
  readonly row: number;
  readonly score: number;
  readonly document: string;
}

/** The hits of a search, best first. Hits of equal scores are sorted by their documents. */
export async function searchIndex(
  folder: string,
  query: string,
  k: number,
  engine: 'fastest' | 'reference' = 'fastest',
): Promise<FoundPassage[]> {
  const { source, passages } = openIndexDirectory(folder);
  if (source === undefined) throw new Error('the index has no vectors');
  const index =
    engine === 'fastest' ? await openEngine(source, { threads: 1 }) : await openReferenceIndex(source, { threads: 1 });
  const files = passages.map(({ path, firstRow }) => ({ firstRow, file: new PassageFile(path) }));
  const documentOf = (row: number): string => {
    const { file, firstRow } = files.findLast((shard) => shard.firstRow <= row)!;
    return file.document(row - firstRow)!;
  };
  try {
    const found = await index.search({ queries: new FakeTextEncoder().vectorOf(query), count: 1, k });
    const rows = [...found.rows.subarray(0, found.counts[0])];
    return rows
      .map((row, i) => ({ row, score: found.scores[i]!, document: documentOf(row) }))
      .sort((a, b) => b.score - a.score || (a.document < b.document ? -1 : a.document > b.document ? 1 : 0));
  } finally {
    await index.close();
    for (const { file } of files) file.close();
  }
}

/** The bytes of every file below a folder, by path. */
export function filesOf(folder: string): Map<string, Buffer> {
  const files = new Map<string, Buffer>();
  for (const name of readdirSync(folder, { recursive: true }) as string[]) {
    const path = join(folder, name);
    if (statSync(path).isFile()) files.set(relative(folder, path), readFileSync(path));
  }
  return files;
}
