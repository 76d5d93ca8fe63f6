import { checkStemmer } from '../../engine/lexical/stemmed-index.ts';
import { vectorSpace } from '../../index/manifest/vector-space.ts';
import { openStored, type PublishedIndex, type StoreParts } from '../published/open-stored.ts';
import { type FoundIndex, findIndex, indexProblems } from './check-index.ts';
import { parseOpenSearchAddress } from './opensearch-address.ts';
import { OpenSearchCandidates } from './opensearch-candidates.ts';
import { OpenSearchClient } from './opensearch-client.ts';
import { indexFiles } from './opensearch-files.ts';
import { openSearchPassages } from './opensearch-passages.ts';
import { OPENSEARCH_SCORES } from './score-script.ts';
import { OpenSearchWords } from './words/opensearch-words.ts';
import { hasK1Factor } from './words/word-scale.ts';

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
  closeClient: () => Promise<void>,
): Promise<PublishedIndex> {
  const { manifest, words, wordScores } = publication;
  const { dimension, metric } = vectorSpace(manifest)!;
  if (words !== undefined) checkStemmer(`the index ${name} of OpenSearch at ${client.server}`, words);
  const hasFactor = wordScores !== undefined && (await hasK1Factor(client, name, wordScores.probes));
  const openWords: StoreParts['words'] = (liveRows, end) => {
    const counts = new Map(wordScores!.counts.map(({ field, ...each }) => [field, each]));
    const facts = { index: name, rows: manifest.rows, liveRows, words: words!, counts, hasFactor };
    return new OpenSearchWords(client, facts, end);
  };
  return openStored(
    {
      name,
      publication,
      files: indexFiles(client, name),
      source: new OpenSearchCandidates(client, { index: name, dimension, metric }),
      scores: OPENSEARCH_SCORES,
      scoresEveryRow: true,
      passages: openSearchPassages(client, name),
      words: words === undefined || wordScores === undefined ? undefined : openWords,
    },
    closeClient,
  );
}
