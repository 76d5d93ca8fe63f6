import { TrawlError } from '../../base/errors.ts';
import { indexProblems, SCRIPT_INDEX } from '../opensearch/check-index.ts';
import { openFoundIndex } from '../opensearch/open-published-index.ts';
import { type OpenSearchAddress, parseOpenSearchAddress, shownAddress } from '../opensearch/opensearch-address.ts';
import { OpenSearchClient } from '../opensearch/opensearch-client.ts';
import { createFiles, filesIndex, indexFiles } from '../opensearch/opensearch-files.ts';
import { documentOfRow, MAX_DOCUMENT_BYTES, rowMappings, rowSettings } from '../opensearch/stored-rows.ts';
import { wordsOf } from '../opensearch/words/stored-words.ts';
import { type Publication, type PublicationPlan, planOf, writePublication } from '../published/publication.ts';
import { upperNorm } from '../published/upper-norm.ts';
import { checkSameIndex, heldIndex } from './held-index.ts';
import type { LocalRows } from './local-rows.ts';
import {
  type BegunPublication,
  type PublishOptions,
  type PublishReport,
  type PublishSource,
  publishIndex,
} from './publish-index.ts';
import { storeFiles } from './store-files.ts';
import { type RowStore, storeRows } from './store-rows.ts';
import { wordScoresOf } from './word-scores.ts';

/** Bytes of a call, as OpenSearch's documents recommend, and its rows. */
const CALL_BYTES = 5_000_000;
const CALL_ROWS = 2_000;
const PIECE_BYTES = 65_535;

/** The settings of `trawl publish` without options, and of a build into OpenSearch. */
export const OPENSEARCH_DEFAULTS = { copies: 1, shards: 1, sample: 64 } as const;

export interface PublishOpenSearchOptions extends PublishOptions {
  /** Copies of each shard, on different nodes. */
  readonly copies: number;
  /** Parts that the rows are divided into; one core works on each for a search. */
  readonly shards: number;
}

/**
 * Loads an index into an index of OpenSearch, as `publishIndex` says. Once the rows are stored, OpenSearch blocks further writes to them.
 */
export async function publishToOpenSearch(
  folder: string,
  place: string,
  options: PublishOpenSearchOptions,
): Promise<PublishReport> {
  const address = parseOpenSearchAddress(place);
  const { index } = address;
  return publishIndex(folder, options, async (source) => {
    const client = await OpenSearchClient.connect(address);
    return {
      address: shownAddress(address),
      collection: index,
      begin: () => begin(client, address, source, options),
      store: (plan) => store(client, index, { ...source, plan }, options),
      check: async (publication) => {
        const facts = (await client.describe(index))!;
        const [problem] = await indexProblems(client, { name: index, facts, publication });
        if (problem !== undefined) throw problem;
      },
      open: (publication) => openFoundIndex(client, { name: index, publication }, async () => undefined),
      complete: (publication) => writePublication(indexFiles(client, index), publication),
      setAlias: (alias) => client.setAlias(alias, index),
      close: () => client.close(),
    };
  });
}

async function begin(
  client: OpenSearchClient,
  address: OpenSearchAddress,
  { manifest, local }: PublishSource,
  options: PublishOpenSearchOptions,
): Promise<BegunPublication> {
  const { index } = address;
  const held = await heldIndex(client, address);
  const { complete, progress } = held;
  const earlier = complete ?? progress;
  const pieces = earlier?.pieces ?? piecesOf(local, options);
  const words = manifest.bm25?.made;
  const plan = planOf(manifest, { indexType: SCRIPT_INDEX, pieces, words });
  checkSameIndex(held, address, { fingerprint: plan.fingerprint, words });
  const { copies, shards } = options;
  if (held.facts === undefined) {
    if (held.hasFiles) await client.drop(filesIndex(index));
    await createFiles(client, index, copies);
    await client.create(index, { settings: rowSettings({ shards, copies, words }), mappings: rowMappings(words) });
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
  { plan, manifest, directory, local }: PublishSource & { readonly plan: PublicationPlan },
  { signal, onProgress }: PublishOpenSearchOptions,
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
