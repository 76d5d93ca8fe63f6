import { throwIfCancelled } from '../src/abort.ts';
import { TrawlError } from '../src/errors.ts';
import type { IndexManifest } from '../src/manifest/index-manifest.ts';
import { requireVectors } from '../src/manifest/vector-space.ts';
import { indexProblems, SCRIPT_INDEX } from '../src/opensearch/check-index.ts';
import { openFoundIndex } from '../src/opensearch/open-published-index.ts';
import { type OpenSearchAddress, parseOpenSearchAddress, shownAddress } from '../src/opensearch/opensearch-address.ts';
import { OpenSearchClient } from '../src/opensearch/opensearch-client.ts';
import { createFiles, filesIndex, indexFiles } from '../src/opensearch/opensearch-files.ts';
import { documentOfRow, MAX_DOCUMENT_BYTES, rowMappings, rowSettings } from '../src/opensearch/stored-rows.ts';
import { wordsOf } from '../src/opensearch/words/stored-words.ts';
import { ContentSum } from '../src/published/content-sum.ts';
import {
  type Publication,
  type PublicationPlan,
  planOf,
  storedRows,
  writeProgress,
  writePublication,
} from '../src/published/publication.ts';
import { upperNorm } from '../src/published/upper-norm.ts';
import { type IndexDirectory, openIndexDirectory } from '../src/retrieval/opening/index-directory.ts';
import { checkSameIndex, heldIndex } from './held-index.ts';
import { LocalRows } from './local-rows.ts';
import type { PublishProgress, PublishReport } from './publish-index.ts';
import { portable, storeFiles } from './store-files.ts';
import { type RowStore, storeRows } from './store-rows.ts';
import { type VerifiedPublication, verifyPublication } from './verify-publication.ts';
import { wordScoresOf } from './word-scores.ts';

/** Bytes of a call, as OpenSearch's documents recommend, and its rows. */
const CALL_BYTES = 5_000_000;
const CALL_ROWS = 2_000;
const PIECE_BYTES = 65_535;

/** The settings of `trawl publish` without options, and of a build into OpenSearch. */
export const OPENSEARCH_DEFAULTS = { copies: 1, shards: 1, sample: 64 } as const;

export interface PublishOpenSearchOptions {
  /** Copies of each shard, on different nodes. */
  readonly copies: number;
  /** Parts that the rows are divided into; one core works on each for a search. */
  readonly shards: number;
  /** A name that is made to name the index once it is complete. */
  readonly alias: string | undefined;
  /** Rows and questions that are compared at the end. */
  readonly sample: number;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: PublishProgress) => void;
}

/**
 * Loads an index into an index of OpenSearch. A killed run is resumed by the next one; a complete index is only checked. Once the rows are
 * stored, OpenSearch blocks further writes to them. The record that makes it an index is written last, after everything was compared;
 * the alias is moved after that.
 *
 * @throws TrawlError INDEX_EXISTS if the place has another index or something else; STORE_…, INDEX_…, NOT_SUPPORTED.
 */
export async function publishToOpenSearch(
  folder: string,
  place: string,
  options: PublishOpenSearchOptions,
): Promise<PublishReport> {
  const address = parseOpenSearchAddress(place);
  const directory = openIndexDirectory(folder);
  requireVectors(folder, directory.manifest);
  const local = new LocalRows(directory);
  let client: OpenSearchClient | undefined;
  try {
    client = await OpenSearchClient.connect(address);
    const { index } = address;
    const manifest = portable(directory);
    const { plan, complete, resumed } = await begin(client, address, { manifest, local, options });
    const publication = complete ?? (await store(client, index, { plan, manifest, directory, local, options }));
    options.onProgress({ step: 'comparing', done: 0, total: 1 });
    const facts = (await client.describe(index))!;
    const [problem] = await indexProblems(client, { name: index, facts, publication });
    if (problem !== undefined) throw problem;
    const verified = await compare(client, { name: index, publication }, { directory, local, sample: options.sample });
    throwIfCancelled(options.signal);
    if (complete === undefined) await writePublication(indexFiles(client, index), publication);
    if (options.alias !== undefined) await client.setAlias(options.alias, index);
    return {
      address: shownAddress(address),
      collection: index,
      rows: storedRows(publication),
      resumed,
      wasComplete: complete !== undefined,
      alias: options.alias ?? null,
      verified,
    };
  } finally {
    local.close();
    await client?.close();
  }
}

async function compare(
  client: OpenSearchClient,
  found: { readonly name: string; readonly publication: Publication },
  with_: Parameters<typeof verifyPublication>[1],
): Promise<VerifiedPublication> {
  const published = await openFoundIndex(client, found, async () => undefined);
  try {
    return await verifyPublication(published, with_);
  } finally {
    await published.close();
  }
}

/**
 * Makes the indexes, or finds what an earlier run left.
 *
 * @throws TrawlError INDEX_EXISTS for another index or something else, NOT_SUPPORTED for documents that are too long.
 */
async function begin(
  client: OpenSearchClient,
  address: OpenSearchAddress,
  { manifest, local, options }: { manifest: IndexManifest; local: LocalRows; options: PublishOpenSearchOptions },
): Promise<{ plan: PublicationPlan; complete: Publication | undefined; resumed: boolean }> {
  const { index } = address;
  const held = await heldIndex(client, address);
  const { complete, progress } = held;
  const earlier = complete ?? progress;
  const pieces = earlier?.pieces ?? piecesOf(local, options);
  const words = manifest.bm25?.made;
  const plan = planOf(manifest, { indexType: SCRIPT_INDEX, pieces, ...(words === undefined ? {} : { words }) });
  checkSameIndex(held, address, { fingerprint: plan.fingerprint, words });
  const files = indexFiles(client, index);
  const { copies, shards } = options;
  if (held.facts === undefined) {
    if (held.hasFiles) await client.drop(filesIndex(index));
    await createFiles(client, index, copies);
    await client.create(index, { settings: rowSettings({ shards, copies, words }), mappings: rowMappings(words) });
  }
  // Written before the first row, so that an index with rows always says of which index they are.
  if (earlier === undefined) {
    await writeProgress(files, { ...plan, nextRow: 0, largestNorm: 0, contentSum: new ContentSum().hex });
  }
  return { plan, complete, resumed: (progress?.nextRow ?? 0) > 0 };
}

function piecesOf(local: LocalRows, { onProgress }: PublishOpenSearchOptions): number {
  onProgress({ step: 'reading the passages', done: 0, total: 1 });
  const bytes = local.longestDocument();
  if (bytes <= MAX_DOCUMENT_BYTES) return Math.max(1, Math.ceil(bytes / PIECE_BYTES));
  throw new TrawlError(
    'NOT_SUPPORTED',
    `The longest document has ${bytes} bytes; an index in OpenSearch can have up to ${MAX_DOCUMENT_BYTES}. Split the corpus with \`trawl prepare\`.`,
  );
}

/** Stores rows and files, and blocks further writes of rows. */
async function store(
  client: OpenSearchClient,
  index: string,
  {
    plan,
    manifest,
    directory,
    local,
    options: { signal, onProgress },
  }: {
    plan: PublicationPlan;
    manifest: IndexManifest;
    directory: IndexDirectory;
    local: LocalRows;
    options: PublishOpenSearchOptions;
  },
): Promise<Publication> {
  const files = indexFiles(client, index);
  const { dimension } = manifest;
  const { words } = plan;
  const wordsOfRow = words === undefined ? () => ({}) : wordsOf(words);
  const rows: RowStore = {
    files,
    callBytes: CALL_BYTES,
    callRows: CALL_ROWS,
    normOf: (_, vector) => upperNorm(vector, 0, dimension),
    // A row that an interrupted run stored is the same.
    write: (some) =>
      client.storeNew(
        index,
        some.map((row) => [row.row, documentOfRow(row, wordsOfRow(row.document))]),
      ),
  };
  const contents = await storeRows(rows, local, {
    plan,
    dimension,
    signal,
    onProgress: (done) => onProgress({ step: 'storing rows', done, total: local.rows }),
  });
  const stored = await storeFiles(files, directory, {
    signal,
    onProgress: (done, total) => onProgress({ step: 'storing files', done, total }),
  });
  onProgress({ step: 'indexing', done: 0, total: 1 });
  await client.refresh(index);
  await client.changeSettings(index, { index: { blocks: { write: true } } });
  const wordScores = words && (await wordScoresOf(directory, words, local, signal));
  return { ...plan, manifest, ...contents, lookups: local.lookups(), ...stored, ...(wordScores && { wordScores }) };
}
