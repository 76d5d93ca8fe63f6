import { statSync } from 'node:fs';
import { formatBytes, formatCount, formatNumberOf } from '../../src/base/format.ts';
import type { ModelIdentity } from '../../src/encoder/identity/model-identity.ts';
import type { Bm25Record } from '../../src/index/manifest/schemas.ts';
import { shardLexical } from '../../src/index/manifest/shard-manifest.ts';
import {
  type OpenedShard,
  openIndexDirectory,
  prefilterPath,
  residentBytes,
  within,
} from '../../src/search/opening/index-directory.ts';
import { isPublishedAddress } from '../../src/stores/published/published-address.ts';
import { lines } from '../output/lines.ts';
import { defineCommand, EXIT, INDEX_OR_ADDRESS } from '../program/command.ts';
import { inspectPublished } from '../stores/inspect-published.ts';

export const inspectCommand = defineCommand({
  name: 'inspect',
  takesStoreAddress: true,
  summary: 'show how an index was built and its sizes',
  description:
    'Prints rows, model with pooling, prefixes and limits, corpus files, shards and sizes. Like `trawl serve` at its start, ' +
    'it checks that every file exists and has the right size and header.\n\n' +
    'With --json: the manifest with "folder" and "sizes"; of an address in Milvus or OpenSearch with "address", "collection", "indexType" and "stored".',
  positionals: INDEX_OR_ADDRESS,
  options: {},
  examples: ['trawl inspect indexes/sample', 'trawl inspect indexes/sample --json'],
  async run({ options, positionals, out }) {
    const place = positionals[0]!;
    if (isPublishedAddress(place)) return inspectPublished(place, { options, out }, modelLines);
    const directory = openIndexDirectory(place);
    const { manifest } = directory;
    const sizes = {
      vectorBytes: sum(directory.shards.flatMap((shard) => shard.manifest.vectors.map(({ bytes }) => bytes))),
      /** The bytes that every search reads: per shard the prefilter, else the codes, else the vectors. */
      residentBytes: sum(directory.shards.map(residentBytes)),
      /** Codes of shards with a prefilter: a search reads about a thousandth of them. */
      touchedBytes: sum(directory.shards.map(touchedBytes)),
      /** Bytes of the inverted indexes, with deleted rows. */
      wordBytes: sum([
        ...directory.shards.flatMap((shard) =>
          (shardLexical(shard.manifest, manifest)?.indexes ?? []).map(
            ({ path }) => statSync(within(shard.folder, path)).size,
          ),
        ),
        ...(manifest.bm25?.deleted ?? []).map(({ bytes }) => bytes),
      ]),
      /** Columns for filters. */
      columnBytes: sum(directory.columns.flatMap(({ paths }) => paths.map((path) => statSync(path).size))),
      passageBytes: sum(
        directory.shards.map((shard) => statSync(within(shard.folder, shard.manifest.passages.path)).size),
      ),
    };
    if (options.json) {
      out(JSON.stringify({ folder: directory.folder, ...manifest, sizes }));
      return EXIT.ok;
    }
    const { model, corpus, tombstones, lastUpdate, bm25, columns = [] } = manifest;
    out(
      lines(
        directory.folder,
        `  rows          ${formatCount(manifest.rows)}${model === null ? '' : ` × ${manifest.dimension}, ${manifest.metric}`}`,
        tombstones !== null &&
          `    deleted     ${formatCount(tombstones.rows)}; ${formatCount(manifest.rows - tombstones.rows)} passages remain`,
        lastUpdate !== undefined &&
          `    changed     last by ${UPDATES[lastUpdate.kind]}, from generation ${lastUpdate.before}`,
        `  generation    ${manifest.generation}`,
        model !== null &&
          `  vectors       ${formatBytes(sizes.vectorBytes)} on disk (${vectorTypes(manifest, directory.shards)})`,
        model !== null &&
          `  memory        ${formatBytes(sizes.residentBytes)} resident for fast searches (${codesState(directory.shards)})`,
        sizes.touchedBytes > 0 &&
          `                ${formatBytes(sizes.touchedBytes)} of codes in shards with prefilters; a search reads about a thousandth of them`,
        bm25 !== undefined && wordLine(bm25.made, sizes.wordBytes),
        columns.length > 0 &&
          `  columns       ${formatBytes(sizes.columnBytes)} on disk: ${columns.map(({ name, type }) => `${name} (${type})`).join(', ')}`,
        `  passages      ${formatBytes(sizes.passageBytes)} on disk`,
        ...(model === null ? [] : modelLines(model)),
        `  corpus        template ${JSON.stringify(corpus.passageTemplate)}`,
        ...corpus.files.map(
          (file) => `    ${file.name}  ${formatNumberOf(file.passages, 'passage')}, ${formatBytes(file.bytes)}`,
        ),
        corpus.skippedLines > 0 && `    ${formatNumberOf(corpus.skippedLines, 'bad line')} skipped`,
        corpus.duplicateIds > 0 && `    ${formatCount(corpus.duplicateIds)} repeated ids`,
        corpus.truncatedPassages > 0 && `    ${formatNumberOf(corpus.truncatedPassages, 'passage')} truncated`,
        `  shards        ${manifest.shards.length}`,
        ...manifest.shards.map(
          (shard) =>
            `    ${shard.path}  rows ${formatCount(shard.firstRow)} to ${formatCount(shard.firstRow + shard.rows - 1)}`,
        ),
        `  written by    ${manifest.writer}`,
      ).join('\n'),
    );
    return EXIT.ok;
  },
});

function wordLine({ analyser, fields, k1, b }: Bm25Record, bytes: number): string {
  return `  words         ${formatBytes(bytes)} on disk (BM25 over ${fields.join(', ')}; analyser ${analyser}, k1 ${k1}, b ${b})`;
}

function modelLines(model: ModelIdentity): string[] {
  const { architecture, precision, endpoint } = model;
  const kind = [architecture, endpoint === undefined ? precision : endpoint.software].filter((part) => part !== null);
  return lines(
    `  model         ${model.name} (${kind.join(', ')}), sha256 ${model.sha256.slice(0, 12)}…`,
    `    pooling     ${endpoint === undefined ? model.pooling : "the endpoint's"}${model.normalize ? ', normalised' : ', not normalised'}`,
    `    prefixes    query ${JSON.stringify(model.prefixes.query)}, passage ${JSON.stringify(model.prefixes.passage)}`,
    model.queryTemplate !== undefined && `    template    ${model.queryTemplate}`,
    `    max tokens  query ${model.maxTokens.query ?? 'unknown'}, passage ${model.maxTokens.passage ?? 'unknown'}`,
    `    batches     vectors ${model.batchInvariant ? 'do not depend on the batch' : 'depend on the batch in their last bits'}`,
  );
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

const UPDATES = {
  update: 'trawl index --update',
  append: 'trawl index --append',
  remove: 'trawl remove',
} as const;

function touchedBytes(shard: OpenedShard): number {
  if (prefilterPath(shard) === null) return 0;
  return statSync(within(shard.folder, shard.manifest.codes!.path)).size;
}

function codesState(shards: readonly OpenedShard[]): string {
  const without = shards.filter(({ manifest }) => manifest.codes === null).length;
  const prefiltered = shards.filter((shard) => prefilterPath(shard) !== null).length;
  if (without === 0 && prefiltered === shards.length) return 'prefilters; a query reads few rows of codes and vectors';
  if (without === 0) return 'search codes; a query reads a few dozen vectors';
  return `${without} of ${shards.length} shards have no search codes; trawl optimize adds them`;
}

function vectorTypes({ metric }: { metric: string | null }, shards: readonly OpenedShard[]): string {
  const dtypes = new Set(shards.flatMap(({ manifest }) => manifest.vectors.map(({ dtype }) => dtype)));
  return `${[...dtypes].join(' and ') || 'none'}, ${metric}`;
}
