import { throwIfCancelled } from '../../base/abort.ts';
import { analyser } from '../../engine/lexical/analysis/analysers.ts';
import type { LexicalFields } from '../../engine/lexical/lexical-fields.ts';
import type { LexicalField } from '../../engine/lexical/lexical-settings.ts';
import { openLexicalFields } from '../../engine/lexical/open-lexical-index.ts';
import type { Bm25Record } from '../../index/manifest/schemas.ts';
import { fieldText } from '../../index/passages/field-text.ts';
import type { IndexDirectory } from '../../search/opening/index-directory.ts';
import type { Publication } from '../published/publication.ts';
import type { WordProbe } from '../published/word-probe.ts';
import type { LocalRows } from './local-rows.ts';

/** Rows that are read at a time to find one with words. */
const ROWS_A_READ = 256;

/** What a store's scores of words are checked with: the counts of the fields, and a word of each with its best row. */
export async function wordScoresOf(
  { lexical: sources }: IndexDirectory,
  words: Bm25Record,
  local: LocalRows,
  signal: AbortSignal,
): Promise<NonNullable<Publication['wordScores']>> {
  const lexical = await openLexicalFields(sources);
  try {
    const counts = [...lexical.indexes].map(([field, index]) => ({ field, ...index.counts }));
    const probes: WordProbe[] = [];
    for (const { field, documents } of counts) {
      if (documents === 0) continue;
      probes.push(await probeOf(lexical, { field, term: await firstTerm(field, words, local, signal) }, words));
    }
    return { scoredBy: 'OpenSearch', counts, probes };
  } finally {
    await lexical.close();
  }
}

/** The first word of a field that has words. */
async function firstTerm(
  field: LexicalField,
  { analyser: name }: Bm25Record,
  local: LocalRows,
  signal: AbortSignal,
): Promise<string> {
  const analyse = analyser(name);
  for (let first = 0; first < local.rows; ) {
    throwIfCancelled(signal);
    const end = local.endOf(first, ROWS_A_READ);
    for (const { document } of await local.range(first, end)) {
      const [term] = analyse(fieldText(document, field));
      if (term !== undefined) return term;
    }
    first = end;
  }
  throw new Error(`The field ${field} has words by its counts, but none was found.`);
}

async function probeOf(
  lexical: LexicalFields,
  { field, term }: { readonly field: LexicalField; readonly term: string },
  { k1, b }: Bm25Record,
): Promise<WordProbe> {
  const best = async (k1Factor: boolean): Promise<readonly [row: number, score: number]> => {
    const parameters = { k1, b, k1Factor };
    const { rows, scores } = await lexical.search({ queries: [{ type: 'term', field, term }], k: 1, parameters });
    return [rows[0]!, scores[0]!];
  };
  const [row, score] = await best(false);
  const [, factoredScore] = await best(true);
  return { field, term, row, score, factoredScore };
}
