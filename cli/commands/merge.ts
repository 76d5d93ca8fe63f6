import { mergeIndex } from '../../indexer/build/merge-index.ts';
import { duplicateLines, jsonFacts } from '../build-summary.ts';
import { defineCommand, EXIT } from '../command.ts';
import { formatCount } from '../format.ts';

export const mergeCommand = defineCommand({
  name: 'merge',
  summary: 'make one index of the shards that several jobs built',
  description:
    'Checks that the shards in INDEX.partial belong together (model, corpus, template, options; every line of the corpus in ' +
    'one shard) and writes the manifest of the index; nothing is copied. Shards that were built on machines without a ' +
    'common disk are first put into one folder: INDEX.partial, or INDEX.\n\n' +
    'With --json: {"merged", "folder", "rows", "dimension", "metric", "generation", "model", "corpus", "shards", "duplicates"}.',
  positionals: { usage: '<index>', help: { index: 'The --out of the jobs.' }, min: 1, max: 1 },
  options: {
    overwrite: { kind: 'flag', help: 'Replace an index that stands there.' },
    'unique-ids': { kind: 'flag', help: 'Stop when two passages have the same id, in whatever shards.' },
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
    if (!merged) note(`${folder} is an index already, and no shards wait.`);
    else note(`${folder}: ${formatCount(manifest.rows)} passages in ${shards} shards`);
    for (const line of duplicateLines(duplicates)) note(line);
    return EXIT.ok;
  },
});
