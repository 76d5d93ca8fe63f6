import { INDEX_TYPES, PUBLISH_DEFAULTS } from '../../publish/publish-index.ts';
import { TrawlError } from '../../src/errors.ts';
import { isMilvusAddress } from '../../src/milvus/milvus-address.ts';
import { defineCommand } from '../command.ts';
import { publishFolder } from '../milvus/publish-folder.ts';

export const publishCommand = defineCommand({
  name: 'publish',
  takesMilvus: true,
  summary: 'load an index into Milvus, to be searched past one machine',
  description:
    'Loads the vectors, passages, columns for filters and the manifest of an index into a collection of Milvus, compares a sample ' +
    'of them bit for bit, and the first hits of questions with those of the folder. Then every command that ' +
    'reads an index takes the address: `trawl serve milvus://…` (docs/cluster.md). With FLAT, the default, the answers have the same ' +
    'bits as from the folder.\n\n' +
    'A killed or stopped command resumes: the same command continues where it was. A collection of another index is not changed. ' +
    'To replace the index of a running server, publish into a new collection with --alias, and reload the server.\n\n' +
    'Needs the package @zilliz/milvus2-sdk-node (npm install @zilliz/milvus2-sdk-node). Inverted indexes for BM25 are not loaded.\n\n' +
    'With --json: {"address", "collection", "rows", "resumed", "wasComplete", "alias", "verified": {"rows", "questions", "same"}}.',
  positionals: {
    usage: '<index> <address>',
    help: {
      index: 'The index directory.',
      address:
        'milvus://[USER@]HOST[:PORT]/DATABASE/COLLECTION, or milvus+tls://… for TLS. Passwords are in TRAWL_MILVUS_CREDENTIALS_FILE (docs/cluster.md).',
    },
    min: 2,
    max: 2,
  },
  options: {
    alias: {
      type: 'string',
      value: 'NAME',
      help: 'Make this name stand for the collection once it is complete and compared, in one step. Servers of milvus://…/NAME use it after a reload.',
    },
    'index-type': {
      type: 'choice',
      choices: INDEX_TYPES,
      default: PUBLISH_DEFAULTS.indexType,
      help: "Milvus's index over the vectors: FLAT is exact and has the bits of the folder; HNSW is approximate, and replies say exact: false.",
    },
    replicas: {
      type: 'integer',
      min: 1,
      max: 64,
      default: PUBLISH_DEFAULTS.replicas,
      help: 'Copies of the collection in the memory of query nodes; each needs nodes of its own.',
    },
    channels: {
      type: 'integer',
      min: 1,
      max: 16,
      default: PUBLISH_DEFAULTS.channels,
      help: 'Channels over which Milvus receives the rows (its "shards"); more only speed up loading.',
    },
    sample: {
      type: 'integer',
      min: 0,
      max: 10_000,
      default: PUBLISH_DEFAULTS.sample,
      help: 'Number of rows, and of questions made of them, that are compared at the end.',
    },
  },
  resumable: true,
  examples: [
    'trawl publish indexes/wiki18 milvus://localhost:19530/default/wiki18',
    'trawl publish indexes/wiki18 milvus://localhost:19530/default/wiki18_b --alias wiki18',
  ],
  async run({ options, positionals, signal, out, note }) {
    const [folder, address] = positionals as [string, string];
    if (isMilvusAddress(folder) || !isMilvusAddress(address)) {
      throw new TrawlError(
        'USAGE',
        'Expected an index directory, then an address: trawl publish INDEX milvus://HOST/DATABASE/COLLECTION.',
      );
    }
    const settings = {
      indexType: options['index-type'],
      replicas: options.replicas,
      channels: options.channels,
      alias: options.alias,
      sample: options.sample,
    };
    return publishFolder(folder, address, settings, { quiet: options.quiet, json: options.json, signal, out, note });
  },
});
