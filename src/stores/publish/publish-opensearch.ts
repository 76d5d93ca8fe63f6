import { throwIfCancelled } from '../../base/abort.ts';
import { isSameJson } from '../../base/objects.ts';
import { analyser } from '../../engine/lexical/analysis/analysers.ts';
import type { LexicalFields } from '../../engine/lexical/lexical-index.ts';
import type { LexicalField } from '../../engine/lexical/lexical-settings.ts';
import { openLexicalFields } from '../../engine/lexical/open-lexical.ts';
import type { Bm25Record } from '../../index/manifest/schemas.ts';
import { fieldText } from '../../index/passages/document-fields.ts';
import type { IndexDirectory } from '../../search/opening/index-directory.ts';
import {
  fieldDifferences,
  indexPlace,
  indexProblems,
  openFoundIndex,
  SCRIPT_INDEX,
} from '../opensearch/open-published-index.ts';
import { parseOpenSearchAddress } from '../opensearch/opensearch-address.ts';
import { type IndexFacts, OpenSearchClient } from '../opensearch/opensearch-client.ts';
import { createFiles } from '../opensearch/opensearch-files.ts';
import {
  documentOfRow,
  documentWords,
  MAX_DOCUMENT_BYTES,
  rowMappings,
  rowSettings,
} from '../opensearch/stored-rows.ts';
import { checkSameIndex, type HeldPlace, type NamedPlace, occupiedPlace } from '../published/find-publication.ts';
import type { Publication, PublicationPlan, WordProbe } from '../published/publication.ts';
import { PIECE_BYTES, upperNorm } from '../published/published-row.ts';
import type { LocalRows } from './local-rows.ts';
import { type PublishOptions, type PublishReport, publishIndex } from './publish-index.ts';

/** The settings of `trawl publish` without options, and of a build into OpenSearch. */
export const OPENSEARCH_DEFAULTS = { copies: 1, shards: 1, sample: 64 } as const;

export interface PublishOpenSearchOptions extends PublishOptions {
  /** Copies of each shard, on different nodes. */
  readonly copies: number;
  /** Parts that the rows are divided into; one core works on each for a search. */
  readonly shards: number;
}

/** Loads an index into an index of OpenSearch, as `publishIndex` does, and then blocks further writes to its rows. */
export function publishToOpenSearch(
  folder: string,
  text: string,
  options: PublishOpenSearchOptions,
): Promise<PublishReport> {
  const address = parseOpenSearchAddress(text);
  const { index } = address;
  const { copies, shards, signal, onProgress } = options;
  return publishIndex<IndexFacts>(folder, options, async ({ directory, manifest, local }) => {
    const client = await OpenSearchClient.connect(address);
    const place = indexPlace(client, address);
    return {
      place,
      documentBytes: { most: MAX_DOCUMENT_BYTES, aPiece: PIECE_BYTES },
      planned: async () => ({ indexType: SCRIPT_INDEX, words: manifest.bm25?.made }),
      checkHeld: (held, plan) => checkSameWords(held, place, plan),
      create: async ({ words }) => {
        await createFiles(client, index, copies);
        await client.create(index, { settings: rowSettings({ shards, copies, words }), mappings: rowMappings(words) });
      },
      drop: (name) => client.drop(name),
      rowStore: ({ words }) => {
        const wordsIn = words === undefined ? () => ({}) : documentWords(words);
        return {
          // As OpenSearch's documents recommend.
          callBytes: 5_000_000,
          callRows: 2_000,
          normOf: (_, vector) => upperNorm(vector),
          // An interrupted run stored the same rows.
          write: (rows) =>
            client.store(
              index,
              'create',
              rows.map((row) => [row.row, documentOfRow(row, wordsIn(row.document))]),
            ),
        };
      },
      finish: async ({ words }) => {
        onProgress({ step: 'indexing', done: 0, total: 1 });
        await client.refresh(index);
        await client.changeSettings(index, { index: { blocks: { write: true } } });
        return words === undefined ? {} : { wordScores: await wordScoresOf(directory, words, local, signal) };
      },
      problems: async (publication) =>
        indexProblems(client, { name: index, facts: (await client.describe(index))!, publication }),
      open: (publication) => openFoundIndex(client, { name: index, publication }),
      setAlias: (alias) => client.setAlias(alias, index),
      close: () => client.close(),
    };
  });
}

/** @throws TrawlError INDEX_EXISTS if the name has rows of another index or with other words, or other fields. */
export function checkSameWords(
  held: HeldPlace<IndexFacts>,
  place: NamedPlace,
  { fingerprint, words }: Pick<PublicationPlan, 'fingerprint' | 'words'>,
): void {
  const earlier = checkSameIndex(held, place, fingerprint);
  // Rows are not stored again, so their words stay as they are.
  if (earlier !== undefined && !isSameJson(earlier.words, words)) {
    throw occupiedPlace(place, `was published ${wordsText(earlier.words)}, and the folder is now ${wordsText(words)}`);
  }
  if (held.facts === undefined) return;
  const [difference] = fieldDifferences(held.facts, words);
  if (difference !== undefined) throw occupiedPlace(place, `has ${difference}`);
}

function wordsText(words: PublicationPlan['words']): string {
  if (words === undefined) return 'without words for BM25';
  const { fields, analyser, k1, b } = words;
  return `with the words of ${fields.join(' and ')} (${analyser}, k1 ${k1}, b ${b})`;
}

const ROWS_A_READ = 256;

/** What a store's scores of words are checked with: the counts of each field, and one of its words with the best row. */
async function wordScoresOf(
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
      probes.push(await probeOf(lexical, field, await firstTerm(field, words, local, signal), words));
    }
    return { scoredBy: 'OpenSearch', counts, probes };
  } finally {
    await lexical.close();
  }
}

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
  field: LexicalField,
  term: string,
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
