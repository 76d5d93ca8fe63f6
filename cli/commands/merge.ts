import { mergeIndex } from '../../indexer/building/merge-index.ts';
import { formatCount } from '../../src/base/format.ts';
import { duplicateLines, jsonFacts } from '../building/build-summary.ts';
import * as option from '../options/option.ts';
import { defineCommand, EXIT } from '../program/command.ts';

export const mergeCommand = defineCommand({
  name: 'merge',
  summary: 'join the shards that several jobs built into an index',
  description:
    'Checks that the shards in INDEX.partial belong together (same model, corpus, template and options; every line of the ' +
    'corpus in exactly one shard) and writes the manifest of the index. Nothing is copied. If the jobs ran on machines ' +
    'without a shared disk, first copy their shards into one folder, INDEX.partial or INDEX.\n\n' +
    'With --json: {"merged", "folder", "rows", "dimension", "metric", "generation", "model", "corpus", "shards", "duplicates"}.',
  positionals: { usage: '<index>', help: { index: 'The index directory: --out of the jobs.' } },
  options: {
    overwrite: option.flag('Replace an existing index.'),
    'unique-ids': option.flag('Stop if two passages of the index have the same id.'),
  },
  examples: ['trawl merge indexes/wiki18'],
  async run({ options, positionals, signal, out, note }) {
    const { folder, manifest, merged, duplicates, passagesWithoutId } = await mergeIndex(positionals[0]!, {
      overwrite: options.overwrite,
      uniqueIds: options['unique-ids'],
      signal,
    });
    const shards = manifest.shards.length;
    if (options.json) {
      out(JSON.stringify({ merged, folder, ...jsonFacts(manifest), shards, duplicates, passagesWithoutId }));
      return EXIT.ok;
    }
    if (!merged) note(`${folder} is already an index, and has no new shards.`);
    else note(`${folder}: ${formatCount(manifest.rows)} passages in ${shards} shards`);
    for (const line of duplicateLines(duplicates)) note(line);
    return EXIT.ok;
  },
});
