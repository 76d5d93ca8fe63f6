import { TrawlError } from '../../base/errors.ts';
import { MAX_CANDIDATES } from '../published/candidate-source.ts';
import { type Publication, readPublication, storedRows } from '../published/publication.ts';
import { type OpenSearchAddress, shownAddress } from './opensearch-address.ts';
import type { IndexFacts, OpenSearchClient } from './opensearch-client.ts';
import { filesIndex, hasFileFields, indexFiles } from './opensearch-files.ts';
import { rowMappings } from './stored-rows.ts';
import { SIMILARITY } from './words/stored-words.ts';

/** OpenSearch's "index over the vectors": there is none, every row is scored. */
export const SCRIPT_INDEX = 'SCRIPT';

/** A published index as it is in OpenSearch. */
export interface FoundIndex {
  /** The index's own name, which an alias is resolved to: a swap must not mix two indexes. */
  readonly name: string;
  readonly facts: IndexFacts;
  readonly publication: Publication;
}

/** @throws TrawlError INDEX_NOT_FOUND, INDEX_FILE_FOREIGN, or an error of `readPublication`. */
export async function findIndex(client: OpenSearchClient, address: OpenSearchAddress): Promise<FoundIndex> {
  const shown = shownAddress(address);
  const facts = await client.describe(address.index);
  if (facts === undefined) {
    throw new TrawlError(
      'INDEX_NOT_FOUND',
      `${shown}: there is no such index or alias. Publish an index with \`trawl publish INDEX ${shown}\`.`,
    );
  }
  const { name } = facts;
  const files = await client.describe(filesIndex(name));
  if (files === undefined || !hasFileFields(files)) {
    throw new TrawlError(
      'INDEX_FILE_FOREIGN',
      `${shown}: the index ${name} was not made by \`trawl publish\`: ${filesIndex(name)} is ${files === undefined ? 'missing' : 'of something else'}.`,
    );
  }
  const publication = await readPublication(indexFiles(client, name));
  if (publication === undefined) {
    throw new TrawlError(
      'INDEX_NOT_FOUND',
      `${shown}: the publication into ${name} is unfinished. Run the same \`trawl publish\` again; it continues.`,
    );
  }
  if (publication.indexType !== SCRIPT_INDEX) {
    throw new TrawlError(
      'INDEX_VERSION_UNSUPPORTED',
      `${shown}: the index ${name} was published as ${publication.indexType}; this program searches ${SCRIPT_INDEX}. Use the program that published it.`,
    );
  }
  return { name, facts, publication };
}

/** The reasons why answers of the index could be wrong or incomplete. */
export async function indexProblems(
  client: OpenSearchClient,
  { name, facts, publication }: FoundIndex,
): Promise<TrawlError[]> {
  const problems: TrawlError[] = [];
  const place = `The index ${name} of OpenSearch at ${client.server}`;
  const { status } = await client.health(name);
  if (status === 'red') {
    const message = `${place} lacks shards (its health is red). Start the nodes that have them.`;
    return [new TrawlError('STORE_FAILED', message, { details: { retryAfterS: 10 } })];
  }
  for (const difference of fieldDifferences(facts, publication.words)) {
    problems.push(
      new TrawlError('STORE_DIFFERS', `${place} has ${difference}. Publish the index again, under another name.`),
    );
  }
  if (problems.length > 0) return problems;
  const window = Number(facts.settings.max_result_window ?? 10_000);
  if (window <= MAX_CANDIDATES) {
    problems.push(
      new TrawlError(
        'STORE_DIFFERS',
        `${place} returns up to ${window} hits (index.max_result_window), expected ${MAX_CANDIDATES + 1}. Set it, or publish the index again, under another name.`,
      ),
    );
  }
  const expected = storedRows(publication);
  const { total } = await client.search(name, { size: 0 });
  if (total !== expected) {
    problems.push(
      new TrawlError(
        'STORE_DIFFERS',
        `${place} has ${total} rows, but ${expected} were published. Publish the index again, under another name.`,
      ),
    );
  }
  return problems;
}

/** How the fields of an index differ from those that are published, each as `the field row as …; expected …`. */
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
