import { statSync } from 'node:fs';
import type { IndexManifest } from '../../src/manifest/index-manifest.ts';
import { type OpenedShard, openIndexDirectory, screenPath, within } from '../../src/retrieval/index-directory.ts';
import { defineCommand, EXIT } from '../command.ts';
import { formatBytes, formatCount, formatNumberOf } from '../format.ts';

export const inspectCommand = defineCommand({
  name: 'inspect',
  summary: 'say what an index was made with and how big it is',
  description:
    'Prints the facts of an index: rows, model with pooling, prefixes and limits, corpus files, shards and sizes. Looks at ' +
    "every file's presence, size and header, as `trawl serve` does before it starts.\n\n" +
    'With --json: the manifest with "folder" and "sizes".',
  positionals: { usage: '<index>', help: { index: 'The index directory.' }, min: 1, max: 1 },
  options: {},
  examples: ['trawl inspect indexes/sample', 'trawl inspect indexes/sample --json'],
  async run({ options, positionals, out }) {
    const directory = openIndexDirectory(positionals[0]!);
    const { manifest } = directory;
    const sizes = {
      vectorBytes: sum(directory.shards.flatMap((shard) => shard.manifest.vectors.map(({ bytes }) => bytes))),
      /** What wants to stay in memory while serving: the screen, else the codes, else the vectors themselves. */
      residentBytes: sum(directory.shards.map(residentBytes)),
      /** Codes behind a screen, of which a search reads about one row in a thousand. */
      touchedBytes: sum(directory.shards.map(touchedBytes)),
      passageBytes: sum(
        directory.shards.map((shard) => statSync(within(shard.folder, shard.manifest.passages.path)).size),
      ),
    };
    if (options.json) {
      out(JSON.stringify({ folder: directory.folder, ...manifest, sizes }));
      return EXIT.ok;
    }
    const { model, corpus } = manifest;
    out(
      [
        directory.folder,
        `  rows          ${formatCount(manifest.rows)} × ${manifest.dimension}, ${manifest.metric}`,
        ...removedRows(manifest),
        `  generation    ${manifest.generation}`,
        `  vectors       ${formatBytes(sizes.vectorBytes)} on disk (${vectorKinds(manifest, directory.shards)})`,
        `  memory        ${formatBytes(sizes.residentBytes)} to stay resident (${codesState(directory.shards)})`,
        ...(sizes.touchedBytes > 0
          ? [
              `                ${formatBytes(sizes.touchedBytes)} of codes behind screens, about one row in a thousand read`,
            ]
          : []),
        `  passages      ${formatBytes(sizes.passageBytes)} on disk`,
        `  model         ${model.name} (${model.architecture}, ${model.precision}), sha256 ${model.sha256.slice(0, 12)}…`,
        `    pooling     ${model.pooling}${model.normalize ? ', normalised' : ', not normalised'}`,
        `    prefixes    query ${JSON.stringify(model.prefixes.query)}, passage ${JSON.stringify(model.prefixes.passage)}`,
        `    max tokens  query ${model.maxTokens.query}, passage ${model.maxTokens.passage}`,
        `    batches     a text's vector has ${model.batchInvariant ? 'the same bits in any batch' : 'other last bits in another batch'}`,
        `  corpus        template ${JSON.stringify(corpus.passageTemplate)}`,
        ...corpus.files.map(
          (file) => `    ${file.name}  ${formatNumberOf(file.passages, 'passage')}, ${formatBytes(file.bytes)}`,
        ),
        ...(corpus.skippedLines > 0 ? [`    ${formatNumberOf(corpus.skippedLines, 'bad line')} left out`] : []),
        ...(corpus.duplicateIds > 0 ? [`    ${formatCount(corpus.duplicateIds)} repeated ids`] : []),
        ...(corpus.truncatedPassages > 0
          ? [`    ${formatNumberOf(corpus.truncatedPassages, 'passage')} truncated`]
          : []),
        `  shards        ${manifest.shards.length}`,
        ...manifest.shards.map(
          (shard) =>
            `    ${shard.path}  rows ${formatCount(shard.firstRow)} to ${formatCount(shard.firstRow + shard.rows - 1)}`,
        ),
        `  written by    ${manifest.writer}`,
      ].join('\n'),
    );
    return EXIT.ok;
  },
});

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function removedRows({ rows, tombstones, lastUpdate }: IndexManifest): string[] {
  return [
    ...(tombstones === null
      ? []
      : [
          `    removed     ${formatCount(tombstones.rows)}; ${formatCount(rows - tombstones.rows)} passages can be found`,
        ]),
    ...(lastUpdate === undefined
      ? []
      : [`    changed     after it was built, last by ${UPDATES[lastUpdate.kind]}, from ${lastUpdate.before}`]),
  ];
}

const UPDATES = {
  update: 'trawl index --update',
  append: 'trawl index --append',
  remove: 'trawl remove',
} as const;

function residentBytes(shard: OpenedShard): number {
  const { manifest, folder } = shard;
  if (manifest.codes === null) return sum(manifest.vectors.map(({ bytes }) => bytes));
  return statSync(screenPath(shard) ?? within(folder, manifest.codes.path)).size;
}

function touchedBytes(shard: OpenedShard): number {
  if (screenPath(shard) === null) return 0;
  return statSync(within(shard.folder, shard.manifest.codes!.path)).size;
}

function codesState(shards: readonly OpenedShard[]): string {
  const without = shards.filter(({ manifest }) => manifest.codes === null).length;
  const screened = shards.filter((shard) => screenPath(shard) !== null).length;
  if (without === 0 && screened === shards.length) return 'the screens; codes and vectors are read a few rows a query';
  if (without === 0) return 'the search codes; vectors are read a few dozen rows a query';
  return `${without} of ${shards.length} shards have no search codes: trawl optimize makes them`;
}

function vectorKinds({ metric }: { metric: string }, shards: readonly OpenedShard[]): string {
  const dtypes = new Set(shards.flatMap(({ manifest }) => manifest.vectors.map(({ dtype }) => dtype)));
  return `${[...dtypes].join(' and ') || 'none'}, ${metric}`;
}
