import { type AnalyserName, engineAnalyser } from '../../src/engine/lexical/lexical-settings.ts';
import { LexicalFile } from '../../src/engine/reference/lexical/lexical-file.ts';
import { INDEX_MANIFEST_FILE, type IndexManifest } from '../../src/index/manifest/index-manifest.ts';
import type { ShardManifest } from '../../src/index/manifest/shard-manifest.ts';
import { within } from '../../src/search/opening/index-directory.ts';
import { problem, problemOf, type VerifyProblem } from './verify-problem.ts';

/** An inverted index, and what the manifests say about it. */
export interface NamedLexical {
  readonly path: string;
  readonly analyser: AnalyserName;
  readonly rows: number;
  /** Unknown for deleted rows. */
  readonly counts?: Readonly<Record<(typeof COUNTS)[number], number>>;
}

const COUNTS = ['documents', 'tokens', 'terms', 'postings'] as const;

const MAKE_AGAIN = 'Copy the file again from an intact copy, or make it again with trawl optimize --bm25.';

/** The inverted indexes of a shard, including the ones that will replace others. */
export function lexicalOfShard(folder: string, { rows, bm25, nextBm25 }: ShardManifest): NamedLexical[] {
  return [bm25, nextBm25].flatMap((lexical) =>
    (lexical?.indexes ?? []).map(({ path, documents, tokens, terms, postings }) => ({
      path: within(folder, path),
      analyser: lexical!.made.analyser,
      rows,
      counts: { documents, tokens, terms, postings },
    })),
  );
}

/** The inverted indexes over the texts of the deleted rows. */
export function lexicalOfDeleted(folder: string, { bm25, tombstones }: IndexManifest): NamedLexical[] {
  return (bm25?.deleted ?? []).map(({ path }) => ({
    path: within(folder, path),
    analyser: bm25!.made.analyser,
    rows: tombstones?.rows ?? 0,
  }));
}

/** Whether the index has an inverted index of the deleted rows' texts for each field, which scores depend on. */
export function deletedFieldProblems(folder: string, { bm25, tombstones }: IndexManifest): VerifyProblem[] {
  if (bm25 === undefined || tombstones === null) return [];
  const named = new Set(bm25.deleted?.map(({ field }) => field));
  return bm25.made.fields
    .filter((field) => !named.has(field))
    .map((field) =>
      problem(
        `${folder}/${INDEX_MANIFEST_FILE}`,
        `${tombstones.rows} rows are deleted, but it names no inverted index of their field ${field}`,
      ),
    );
}

export function lexicalHeaderProblems({ path, analyser, rows, counts }: NamedLexical): VerifyProblem[] {
  let file: LexicalFile;
  try {
    file = new LexicalFile(path);
  } catch (error) {
    return [problemOf(error, path)];
  }
  try {
    const { documents, tokens, termCount: terms, postingCount: postings } = file;
    const found = { documents, tokens, terms, postings };
    const differences: string[] = [];
    if (file.analyser !== engineAnalyser(analyser)) {
      differences.push(`its analyser is ${file.analyser}, the manifest says ${analyser}`);
    }
    if (file.rows !== rows) {
      const expected = counts === undefined ? `${rows} rows are deleted` : `the shard has ${rows}`;
      differences.push(`it has ${file.rows} rows, but ${expected}`);
    }
    for (const count of counts === undefined ? [] : COUNTS) {
      if (found[count] === counts![count]) continue;
      differences.push(`it has ${found[count]} ${count}, the manifest says ${counts![count]}`);
    }
    return differences.map((difference) => problem(path, difference, MAKE_AGAIN));
  } finally {
    file.close();
  }
}
