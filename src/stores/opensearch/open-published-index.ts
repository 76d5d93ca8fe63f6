import { TrawlError } from '../../base/errors.ts';
import { checkStemmer } from '../../engine/lexical/stemmed.ts';
import { vectorSpace } from '../../index/manifest/index-manifest.ts';
import { MAX_CANDIDATES } from '../published/candidate-source.ts';
import { type FoundPublication, findPublication, type StorePlace } from '../published/find-publication.ts';
import { openStored, type PublishedIndex, type StoreParts } from '../published/open-stored.ts';
import { type Publication, storedRows } from '../published/publication.ts';
import { type OpenSearchAddress, parseOpenSearchAddress, shownAddress } from './opensearch-address.ts';
import { OPENSEARCH_SCORES, openSearchCandidates } from './opensearch-candidates.ts';
import { type IndexFacts, OpenSearchClient } from './opensearch-client.ts';
import { hasFileFields, indexFiles } from './opensearch-files.ts';
import { openSearchPassages, rowMappings, SIMILARITY } from './stored-rows.ts';
import { hasK1Factor, openSearchWords } from './words/opensearch-words.ts';

/** OpenSearch's "index over the vectors": there is none, every row is scored. */
export const SCRIPT_INDEX = 'SCRIPT';

export type FoundIndex = FoundPublication<IndexFacts>;

export function indexPlace(client: OpenSearchClient, address: OpenSearchAddress): StorePlace<IndexFacts> {
  return {
    kind: 'index',
    name: address.index,
    shown: shownAddress(address),
    describe: (name) => client.describe(name),
    holdsFiles: hasFileFields,
    files: (name) => indexFiles(client, name),
  };
}

/** @throws TrawlError INDEX_VERSION_UNSUPPORTED, and as `findPublication`. */
export async function findIndex(client: OpenSearchClient, address: OpenSearchAddress): Promise<FoundIndex> {
  const place = indexPlace(client, address);
  const found = await findPublication(place);
  const { indexType } = found.publication;
  if (indexType === SCRIPT_INDEX) return found;
  throw new TrawlError(
    'INDEX_VERSION_UNSUPPORTED',
    `${place.shown}: the index ${found.name} was published as ${indexType}; this program searches ${SCRIPT_INDEX}. Use the program that published it.`,
  );
}

/**
 * Opens an index that `trawl publish` loaded into OpenSearch: reads its record, checks that all its rows are there, and fetches the columns
 * for filters and the deleted rows. Filters are evaluated here; OpenSearch gets the rows that pass.
 *
 * @throws TrawlError CONFIG_INVALID, STORE_…, or INDEX_…; nothing stays open then.
 */
export async function openOpenSearchIndex(text: string): Promise<PublishedIndex> {
  const address = parseOpenSearchAddress(text);
  const client = await OpenSearchClient.connect(address);
  try {
    const found = await findIndex(client, address);
    const [problem] = await indexProblems(client, found);
    if (problem !== undefined) throw problem;
    return await openFoundIndex(client, found, () => client.close());
  } catch (error) {
    await client.close();
    throw error;
  }
}

/** Opens an index whose state was checked. `closeClient` is called after the last of its parts was closed. */
export async function openFoundIndex(
  client: OpenSearchClient,
  { name, publication }: Pick<FoundIndex, 'name' | 'publication'>,
  closeClient?: () => Promise<void>,
): Promise<PublishedIndex> {
  const { manifest, words, wordScores } = publication;
  const { dimension, metric } = vectorSpace(manifest)!;
  if (words !== undefined) checkStemmer(`the index ${name} of OpenSearch at ${client.server}`, words);
  const hasFactor = wordScores !== undefined && (await hasK1Factor(client, name, wordScores.probes));
  const openWords: StoreParts['words'] = (liveRows, end) => {
    const counts = new Map(wordScores!.counts.map(({ field, ...each }) => [field, each]));
    const facts = { index: name, rows: manifest.rows, liveRows, words: words!, counts, hasFactor };
    return openSearchWords(client, facts, end);
  };
  return openStored(
    {
      name,
      publication,
      files: indexFiles(client, name),
      source: openSearchCandidates(client, { index: name, dimension, metric }),
      scores: OPENSEARCH_SCORES,
      scoresEveryRow: true,
      passages: openSearchPassages(client, name),
      words: words === undefined || wordScores === undefined ? undefined : openWords,
    },
    closeClient,
  );
}

export async function indexProblems(
  client: OpenSearchClient,
  { name, facts, publication }: FoundIndex,
): Promise<TrawlError[]> {
  const place = `The index ${name} of OpenSearch at ${client.server}`;
  const { status } = await client.health(name);
  if (status === 'red') {
    const message = `${place} lacks shards (its health is red). Start the nodes that have them.`;
    return [new TrawlError('STORE_FAILED', message, { details: { retryAfterS: 10 } })];
  }
  const differs = (difference: string, advice = 'Publish the index again, under another name.'): TrawlError =>
    new TrawlError('STORE_DIFFERS', `${place} ${difference}. ${advice}`);
  const differences = fieldDifferences(facts, publication.words);
  if (differences.length > 0) return differences.map((difference) => differs(`has ${difference}`));
  const problems: TrawlError[] = [];
  const window = Number(facts.settings.max_result_window ?? 10_000);
  if (window <= MAX_CANDIDATES) {
    const found = `returns up to ${window} hits (index.max_result_window), expected ${MAX_CANDIDATES + 1}`;
    problems.push(differs(found, 'Set it, or publish the index again, under another name.'));
  }
  const expected = storedRows(publication);
  const { total } = await client.search(name, { size: 0 });
  if (total !== expected) problems.push(differs(`has ${total} rows, but ${expected} were published`));
  return problems;
}

/** How the fields of an index differ from the published ones, each as `the field row as …; expected …`. */
export function fieldDifferences({ mappings, settings }: IndexFacts, words: Publication['words']): string[] {
  const differences: string[] = [];
  for (const [field, expected] of Object.entries(rowMappings(words).properties)) {
    const found = mappings.properties?.[field] ?? {};
    // OpenSearch returns what differs from its defaults.
    if (Object.entries(expected).every(([key, value]) => found[key] === value)) continue;
    differences.push(`the field ${field} as ${JSON.stringify(found)}; expected ${JSON.stringify(expected)}`);
  }
  if (words === undefined) return differences;
  const { similarity = {} } = settings as {
    similarity?: Record<string, { type?: string; k1?: unknown; b?: unknown } | undefined>;
  };
  const found = similarity[SIMILARITY];
  // Settings come back as texts.
  if (found?.type !== 'BM25' || Number(found.k1) !== words.k1 || Number(found.b) !== words.b) {
    differences.push(
      `the similarity ${SIMILARITY} as ${JSON.stringify(found ?? null)}; expected BM25 with k1 ${words.k1} and b ${words.b}`,
    );
  }
  return differences;
}
