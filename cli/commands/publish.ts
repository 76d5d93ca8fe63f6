import { usageError } from '../../src/base/errors.ts';
import { isOpenSearchAddress } from '../../src/stores/opensearch/opensearch-address.ts';
import { INDEX_TYPES, MILVUS_DEFAULTS } from '../../src/stores/publish/publish-milvus.ts';
import { isPublishedAddress } from '../../src/stores/published/published-address.ts';
import * as option from '../options/option.ts';
import { defineCommand } from '../program/command.ts';
import { type PublishSettings, publishFolder } from '../stores/publish-folder.ts';

export const publishCommand = defineCommand({
  name: 'publish',
  takesStoreAddress: true,
  summary: 'load an index into Milvus or OpenSearch, to be searched past one machine',
  description:
    'Loads the vectors, passages, columns for filters and the manifest of an index into a collection of Milvus or an index of OpenSearch, compares a sample ' +
    "of them bit for bit, and compares the first hits of questions with the folder's. Then every command that " +
    'reads an index takes the address: `trawl serve milvus://…` (docs/cluster.md). In OpenSearch, and in Milvus with FLAT, the default, the answers have the same ' +
    'bits as from the folder.\n\n' +
    'A killed or stopped command resumes: the same command continues where it was. What another index was published as is not changed. ' +
    'To replace the index of a running server, publish under a new name with --alias, and reload the server.\n\n' +
    'Milvus needs the package @zilliz/milvus2-sdk-node, OpenSearch @opensearch-project/opensearch (npm install …). User and password of ' +
    'OpenSearch are in the file that TRAWL_OPENSEARCH_CREDENTIALS_FILE names (docs/cluster.md). Inverted indexes for BM25 are not loaded.\n\n' +
    'With --json: {"address", "collection", "rows", "resumed", "wasComplete", "alias", "verified": {"rows", "questions", "same"}}.',
  positionals: {
    usage: '<index> <address>',
    help: {
      index: 'The index directory.',
      address:
        'milvus://[USER@]HOST[:PORT]/DATABASE/COLLECTION or opensearch://HOST[:PORT][,HOST…]/INDEX; milvus+tls:// and opensearch+https:// for TLS. Passwords are in TRAWL_MILVUS_CREDENTIALS_FILE and TRAWL_OPENSEARCH_CREDENTIALS_FILE (docs/cluster.md).',
    },
  },
  options: {
    alias: option.text(
      'NAME',
      'Make this name stand for what was published once it is complete and compared, in one step. Servers of …/NAME use it after a reload.',
    ),
    'index-type': option.choice(
      { choices: INDEX_TYPES, default: MILVUS_DEFAULTS.indexType },
      "Milvus's index over the vectors: FLAT is exact and has the bits of the folder; HNSW is approximate, and replies say exact: false.",
    ),
    replicas: option.integer(
      { min: 1, max: 64, default: MILVUS_DEFAULTS.replicas },
      'Copies of the rows, each on nodes of its own; in Milvus, in their memory.',
    ),
    channels: option.integer(
      { min: 1, max: 16, default: MILVUS_DEFAULTS.channels },
      'Channels over which Milvus receives the rows (its "shards"); more only speed up loading.',
    ),
    shards: option.integer(
      { min: 1, max: 1024, default: 1 },
      'OpenSearch: parts that the rows are divided into. A search uses one core for each.',
    ),
    sample: option.integer(
      { min: 0, max: 10_000, default: MILVUS_DEFAULTS.sample },
      'Number of rows, and of questions made of them, that are compared at the end.',
    ),
  },
  resumable: true,
  examples: [
    'trawl publish indexes/wiki18 milvus://localhost:19530/default/wiki18',
    'trawl publish indexes/wiki18 milvus://localhost:19530/default/wiki18_b --alias wiki18',
    'trawl publish indexes/wiki18 opensearch://localhost:9200/wiki18 --shards 8 --replicas 2',
  ],
  async run(context) {
    const { options, positionals, given } = context;
    const [folder, address] = positionals as [string, string];
    if (isPublishedAddress(folder) || !isPublishedAddress(address)) {
      throw usageError(
        'Expected an index directory, then an address: trawl publish INDEX milvus://HOST/DATABASE/COLLECTION, or opensearch://HOST/INDEX.',
      );
    }
    const unused = (isOpenSearchAddress(address) ? ['index-type', 'channels'] : ['shards']).find((name) =>
      given.has(name),
    );
    if (unused !== undefined) {
      throw usageError(`--${unused} is not for ${isOpenSearchAddress(address) ? 'OpenSearch' : 'Milvus'}.`);
    }
    const common = { alias: options.alias, sample: options.sample };
    const settings: PublishSettings = isOpenSearchAddress(address)
      ? { ...common, store: 'OpenSearch', copies: options.replicas, shards: options.shards }
      : {
          ...common,
          store: 'Milvus',
          indexType: options['index-type'],
          replicas: options.replicas,
          channels: options.channels,
        };
    return publishFolder(folder, address, settings, context);
  },
});
